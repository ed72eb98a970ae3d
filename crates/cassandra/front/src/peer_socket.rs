//! The socket by which front-ends speak with each other: a lossy mailbox of CMQ, sealed with the cluster's key. Whatever is
//! not sealed with it, or was recorded and comes again, ends in CMQ.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quelea_cassandra_store::{PeerSocket, Receiving};
use quelea_cmq::{
    Config, Dest, DestinationOptions, Endpoint, Key, MailboxOptions, Mode, PreSharedKey, Queue,
    WhenFull,
};

/// The mailbox of every front-end.
const MAILBOX: u64 = 0;

/// Bytes of what the others said that wait to be taken in. More is lost.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Bytes that wait to be sent to others. The oldest go first.
const OUTGOING_BYTES_MAX: usize = 4 << 20;

/// Addresses of others that are remembered, those of front-ends that are gone among them.
const ADDRESSES_MAX: usize = 512;

/// When one that nothing was sent to makes room.
const UNUSED: Duration = Duration::from_secs(60);

/// How a front-end speaks with the others.
#[derive(Clone, Debug, Default)]
pub struct PeerSettings {
    /// The address (UDP) at which it hears them; empty: it neither hears nor tells them anything.
    pub listen: String,
    /// Where they reach it, port 0 being that at which it listens; empty: where it listens, or where this machine reaches
    /// Cassandra.
    pub advertise: String,
}

/// The socket.
#[derive(Debug)]
pub(crate) struct CmqSocket {
    endpoint: Endpoint,
    queue: Queue,
    address: SocketAddr,
    others: Mutex<BTreeMap<SocketAddr, Other>>,
}

#[derive(Debug)]
struct Other {
    dest: Dest,
    used_at: Instant,
}

impl CmqSocket {
    /// Binds it.
    ///
    /// # Errors
    /// As the operating system says.
    pub(crate) fn bind(
        settings: &PeerSettings,
        nodes: &[String],
        key: [u8; 32],
    ) -> io::Result<Self> {
        let config = Config {
            pre_shared_key: Some(PreSharedKey(key)),
            outbox_bytes_max: OUTGOING_BYTES_MAX,
            destinations_max: 2 * ADDRESSES_MAX,
            ..Config::default()
        };
        let endpoint = Endpoint::bind(&settings.listen, config)?;
        let local = endpoint.local_addr();
        let mut address = match settings.advertise.as_str() {
            "" => reachable(local, nodes)?,
            given => given.to_socket_addrs()?.next().unwrap_or(local),
        };
        if address.port() == 0 {
            address.set_port(local.port());
        }
        let options = MailboxOptions { bytes_max: WAITING_BYTES_MAX, ..MailboxOptions::default() };
        let queue = endpoint.queue(MAILBOX, options).map_err(io::Error::other)?;
        Ok(Self { endpoint, queue, address, others: Mutex::default() })
    }

    fn dest(&self, to: SocketAddr) -> Option<Dest> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(other) = others.get_mut(&to) {
            other.used_at = now;
            return Some(other.dest.clone());
        }
        if others.len() >= ADDRESSES_MAX {
            let is_unused = |_: &SocketAddr, other: &mut Other| now - other.used_at >= UNUSED;
            for (_, unused) in others.extract_if(.., is_unused) {
                unused.dest.close();
            }
        }
        if others.len() >= ADDRESSES_MAX {
            return None;
        }
        let options = DestinationOptions {
            mode: Mode::Lossy,
            credit: false,
            when_full: WhenFull::DropOldest,
            ..DestinationOptions::default()
        };
        let dest = self.endpoint.dest(Key::new(to, MAILBOX), options).ok()?;
        others.insert(to, Other { dest: dest.clone(), used_at: now });
        Some(dest)
    }
}

impl PeerSocket for CmqSocket {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        if let Some(dest) = self.dest(to)
            && dest.try_push(datagram).is_ok()
        {
            // What is said is worth something now only.
            dest.flush();
        }
    }

    fn try_receive(&self) -> Option<Vec<u8>> {
        self.queue.try_pop().map(|message| message.bytes.to_vec())
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async { self.queue.pop_async().await.map(|message| message.bytes.to_vec()) })
    }
}

/// Returns where others reach a socket that is bound to `local`: if that is no address in
/// particular, at that by which this machine reaches Cassandra.
fn reachable(local: SocketAddr, nodes: &[String]) -> io::Result<SocketAddr> {
    if !local.ip().is_unspecified() {
        return Ok(local);
    }
    let mut found = Err(io::Error::other("no node of Cassandra has an address"));
    for node in nodes.iter().filter_map(|node| node.to_socket_addrs().ok()).flatten() {
        let any: IpAddr = match node {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        if any.is_ipv6() != local.is_ipv6() {
            continue;
        }
        // Nothing is sent: the system only says by which way it would.
        let probe = UdpSocket::bind((any, 0))?;
        found = probe.connect(node).and_then(|()| probe.local_addr());
        if found.is_ok() {
            break;
        }
    }
    Ok(SocketAddr::new(found?.ip(), local.port()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const KEY: [u8; 32] = [7; 32];

    fn socket(key: [u8; 32]) -> CmqSocket {
        let listen = "127.0.0.1:0".to_owned();
        let settings = PeerSettings { listen, ..PeerSettings::default() };
        CmqSocket::bind(&settings, &[], key).unwrap()
    }

    /// Waits for something that is said until it comes: it is said again and again, since it may be lost.
    fn heard(from: &CmqSocket, to: &CmqSocket, said: &[u8]) -> Option<Vec<u8>> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            from.send(to.address(), said);
            if let Some(message) = to.queue.pop_timeout(Duration::from_millis(100)) {
                return Some(message.bytes.to_vec());
            }
        }
        None
    }

    #[test]
    fn front_ends_with_the_clusters_key_hear_each_other() {
        let (one, other) = (socket(KEY), socket(KEY));
        assert_eq!(heard(&one, &other, b"there"), Some(b"there".to_vec()));
        assert_eq!(heard(&other, &one, b"and back"), Some(b"and back".to_vec()));
    }

    #[test]
    fn what_is_not_sealed_with_the_key_is_dropped_and_counted() {
        let (one, stranger) = (socket(KEY), socket([8; 32]));
        let plain = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let began = Instant::now();
        // Until one that is sealed well has passed after them.
        while one.endpoint.stats().proto.dropped.not_authentic == 0 {
            assert!(began.elapsed() < PATIENCE);
            stranger.send(one.address(), b"forged");
            plain.push(Key::new(one.address(), MAILBOX), b"not sealed").unwrap();
            plain.flush();
            std::thread::yield_now();
        }
        let friend = socket(KEY);
        assert_eq!(heard(&friend, &one, b"well"), Some(b"well".to_vec()));
        assert!(std::iter::from_fn(|| one.try_receive()).all(|bytes| bytes == b"well"));
    }

    #[test]
    fn a_socket_at_no_address_in_particular_is_reached_where_cassandra_is() {
        let local: SocketAddr = "0.0.0.0:4711".parse().unwrap();
        let nodes = ["127.0.0.1:9042".to_owned()];
        assert_eq!(reachable(local, &nodes).unwrap().to_string(), "127.0.0.1:4711");
        assert!(reachable(local, &[]).is_err());
        let bound: SocketAddr = "127.0.0.2:4711".parse().unwrap();
        assert_eq!(reachable(bound, &[]).unwrap(), bound);
    }

    #[test]
    fn addresses_of_front_ends_that_are_gone_are_bounded() {
        let one = socket(KEY);
        for port in 0..2 * ADDRESSES_MAX as u16 {
            one.send(SocketAddr::from(([127, 0, 0, 1], 20_000 + port)), b"x");
        }
        assert_eq!(one.others.lock().unwrap().len(), ADDRESSES_MAX);
    }
}
