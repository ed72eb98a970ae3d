//! What the driver needs of the operating system: two implementations, so that the rest is the same
//! everywhere. `linux` gives whole trains to the kernel; `portable` has only what std has.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::multicast;

mod datagram_io;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod path;
mod pool;
mod portable;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub(crate) use datagram_io::{Amount, Net, NetCounters, Reader, Received, SendError};
pub(crate) use pool::Pool;

/// Asked of the kernel for the socket's receive buffer; it is what all senders' windows share. Four
/// megabytes are 60 trains, and still fit into a last-level cache.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Asked of the kernel for the send buffer: enough for trains that wait in a device's queue.
pub(crate) const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Buffers of the kernel that one round of receiving takes before they are given to the state machine:
/// its lock is taken once for all of them.
pub(crate) const RECEIVE_BATCH: usize = 8;

/// How often and how long a send waits for room in the kernel before the datagrams count as lost.
pub(crate) const SEND_RETRIES: u32 = 10;
/// One such wait.
pub(crate) const SEND_RETRY: Duration = Duration::from_millis(1);

/// By which calls an endpoint uses its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The system's own: on Linux trains by UDP_SEGMENT and UDP_GRO.
    #[default]
    Native,
    /// Those that std has, as on systems without a driver of their own: a call for each datagram.
    Portable,
}

/// Sets `socket` up for `backend`.
pub(crate) fn open(socket: socket2::Socket, backend: Backend) -> io::Result<Box<dyn Net>> {
    multicast::only_what_was_joined(&socket);
    match backend {
        #[cfg(target_os = "linux")]
        Backend::Native => Ok(Box::new(linux::Linux::new(socket)?)),
        _ => Ok(Box::new(portable::Portable::new(socket)?)),
    }
}

/// Returns an address as the socket takes it: a socket of IPv6 reaches IPv4 by mapped addresses.
pub(crate) fn for_socket(is_ipv6: bool, address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if is_ipv6 => {
            SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port())
        }
        other => other,
    }
}

/// Returns the address behind a mapped one, so that a peer has one name.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}
