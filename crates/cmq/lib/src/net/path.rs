//! How large a datagram may be, by the address that it goes to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

use quelea_cmq_proto::limits::DATAGRAM_BYTES_MAX;
use rustix::net::sockopt::{ip_mtu, ipv6_mtu};

/// Addresses whose path is remembered; beyond, all are asked anew.
const ADDRESSES_MAX: usize = 65_536;

/// IPv4 and UDP headers.
const HEADERS_V4: usize = 20 + 8;
/// IPv6 and UDP headers.
const HEADERS_V6: usize = 40 + 8;

/// The paths' sizes. The kernel knows the interface's MTU and what routers reported; a socket that is
/// connected (which sends nothing) can be asked.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: Mutex<HashMap<IpAddr, usize>>,
}

impl Paths {
    /// Returns how many bytes a datagram to `address` may have; asks the kernel once.
    pub(super) fn bytes(&self, address: IpAddr) -> Option<usize> {
        let known =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&address).copied();
        known.or_else(|| self.query(address))
    }

    /// Asks again: a datagram was too large.
    pub(super) fn query(&self, address: IpAddr) -> Option<usize> {
        let bytes = query_kernel(address)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        known.insert(address, bytes);
        Some(bytes)
    }
}

/// Returns how many bytes a datagram to `address` may have, as the kernel knows; none if there is no
/// way to it.
pub(super) fn query_kernel(address: IpAddr) -> Option<usize> {
    // Any port will do: nothing is sent.
    const DISCARD: u16 = 9;
    let any = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(address, DISCARD)).ok()?;
    let (mtu, headers) = match address {
        IpAddr::V4(_) => (ip_mtu(&socket).ok()?, HEADERS_V4),
        IpAddr::V6(_) => (ipv6_mtu(&socket).ok()?, HEADERS_V6),
    };
    Some((mtu as usize).saturating_sub(headers).min(DATAGRAM_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_carries_the_largest_datagrams() {
        let paths = Paths::default();
        assert_eq!(paths.bytes(IpAddr::V4(Ipv4Addr::LOCALHOST)), Some(DATAGRAM_BYTES_MAX));
        assert_eq!(paths.bytes(IpAddr::V4(Ipv4Addr::LOCALHOST)), Some(DATAGRAM_BYTES_MAX));
    }
}
