//! `HOST:PORT/MAILBOX`, as the command line and the configuration name a CMQ peer.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// The port that is meant when none is given.
const PORT: u16 = 4711;

/// A host by name or address, its port, and a mailbox there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    host: String,
    port: u16,
    /// Who there.
    pub mailbox: u64,
}

/// Why a text names no peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not HOST[:PORT][/MAILBOX]: {reason}")]
pub struct PeerError {
    text: String,
    reason: &'static str,
}

impl Peer {
    /// Looks up the socket's address. A name with addresses of both families means the IPv4 one: a
    /// sender of datagrams cannot find out which of them is listened at, and both ends choose
    /// alike.
    ///
    /// # Errors
    /// As the operating system says; or that there is none.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let found: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        let chosen = found.iter().find(|address| address.is_ipv4()).or_else(|| found.first());
        chosen.copied().ok_or_else(|| io::Error::other("the name has no address"))
    }
}

impl FromStr for Peer {
    type Err = PeerError;

    fn from_str(text: &str) -> Result<Self, PeerError> {
        let refuse = |reason| PeerError { text: text.to_owned(), reason };
        let (socket, mailbox) = match text.split_once('/') {
            Some((socket, mailbox)) => (socket, mailbox),
            None => (text, "0"),
        };
        let mailbox =
            mailbox.parse().map_err(|_| refuse("the mailbox is no integer of 64 bits"))?;
        let (host, port) = if let Some(bracketed) = socket.strip_prefix('[') {
            let (host, rest) = bracketed.split_once(']').ok_or_else(|| refuse("no ] behind ["))?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(refuse("only :PORT may follow the ]")),
            }
        } else {
            match socket.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(refuse("an IPv6 address stands in brackets, as in [::1]:4711"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (socket, None),
            }
        };
        if host.is_empty() {
            return Err(refuse("there is no host"));
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| refuse("the port is not within 0 to 65535"))?,
            None => PORT,
        };
        Ok(Self { host: host.to_owned(), port, mailbox })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, mailbox } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}/{mailbox}")
        } else {
            write!(f, "{host}:{port}/{mailbox}")
        }
    }
}

/// Returns where to bind a socket that only sends to `peer`: not where others could reach it if the
/// peer is on this machine.
#[must_use]
pub fn local_address(peer: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match peer.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_and_mailbox_may_be_left_out() {
        for (text, shown) in [
            ("127.0.0.1:4711", "127.0.0.1:4711/0"),
            ("localhost", "localhost:4711/0"),
            ("example.org:9/7", "example.org:9/7"),
            ("h/18446744073709551615", "h:4711/18446744073709551615"),
            ("[::1]:5/3", "[::1]:5/3"),
            ("[fe80::1%eth0]", "[fe80::1%eth0]:4711/0"),
        ] {
            let peer: Peer = text.parse().unwrap();
            assert_eq!(peer.to_string(), shown);
            assert_eq!(shown.parse::<Peer>().unwrap(), peer);
        }
    }

    #[test]
    fn a_wrong_peer_says_what_is_wrong_with_it() {
        for (text, reason) in [
            ("", "no host"),
            (":4711", "no host"),
            ("::1:4711", "brackets"),
            ("[::1:4711", "no ] behind"),
            ("[::1]4711", "only :PORT"),
            ("h:65536", "the port"),
            ("h:", "the port"),
            ("h:1/", "the mailbox"),
            ("h:1/-1", "the mailbox"),
            ("h:1/18446744073709551616", "the mailbox"),
        ] {
            let error = text.parse::<Peer>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_of_both_families_are_found() {
        let address = |text: &str| text.parse::<Peer>().unwrap().resolve().unwrap().to_string();
        assert_eq!(address("127.0.0.1:1/2"), "127.0.0.1:1");
        assert_eq!(address("[::1]:1"), "[::1]:1");
        assert!(["127.0.0.1:4711", "[::1]:4711"].contains(&address("localhost").as_str()));
    }

    #[test]
    fn a_sender_binds_where_only_its_peer_reaches_it() {
        for (peer, local) in [
            ("127.0.0.1:4711", "127.0.0.1:0"),
            ("192.0.2.1:4711", "0.0.0.0:0"),
            ("[::1]:4711", "[::1]:0"),
            ("[2001:db8::1]:4711", "[::]:0"),
        ] {
            assert_eq!(local_address(peer.parse().unwrap()).to_string(), local);
        }
    }
}
