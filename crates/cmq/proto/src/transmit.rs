//! What the driver sends.

use core::net::SocketAddr;

use bytes::Bytes;

/// What the driver has to give to the kernel in one call.
#[derive(Debug)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// One datagram, or a train of them.
    pub bytes: Bytes,
    /// Each datagram's bytes, if it is a train; the last may be shorter.
    pub segment_bytes: Option<usize>,
    /// Whether the kernel has to be allowed to fragment it: it was made, and may not be changed any
    /// more, when the path still carried as much.
    pub may_fragment: bool,
}
