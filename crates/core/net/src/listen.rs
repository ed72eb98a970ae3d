//! Listening sockets.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel keeps for us until we accept them: all clients may come at once after a failover.
const BACKLOG: i32 = 4_096;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// As it was configured.
    pub address: String,
    /// What the system said.
    pub source: io::Error,
}

/// Listens on `HOST:PORT`, on the first address of the host's name. Port 0 takes a free one.
///
/// # Errors
/// [`ListenError`] if the name is unknown or the port is taken.
pub fn listen(address: &str) -> Result<std::net::TcpListener, ListenError> {
    let failed = |source| ListenError { address: address.to_owned(), source };
    let resolved = address.to_socket_addrs().map_err(failed)?.next();
    let resolved = resolved.ok_or_else(|| failed(io::Error::other("the name has no address")))?;
    bind(resolved).map_err(failed)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the old connections' sockets to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
