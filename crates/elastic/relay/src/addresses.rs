//! Where a relay listens.

use std::net::SocketAddr;

use crate::zmtp::ZmtpAddresses;

/// Where a relay listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// For native clients.
    pub native: SocketAddr,
    /// For ZeroMQ's sockets.
    pub zmtp: ZmtpAddresses,
}
