//! Which addresses count as one peer.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns what limits and turns by address go by: of IPv6 the network of 64 bits, since a customer has
/// all of it.
#[must_use]
pub fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        // A program of this machine has as many of these as it likes.
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_an_address_of_ipv4_is() {
        let network = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("127.0.0.1"), network("127.9.9.9"));
        assert_eq!(network("127.0.0.1"), network("::1"));
    }
}
