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
    bind(resolve(address).map_err(failed)?).map_err(failed)
}

/// Returns whether who listens on `HOST:PORT` does so on every address of this machine, so that
/// nobody elsewhere can connect to it by that text. Nothing is bound; a name that is not known is
/// not every address, and [`listen`] refuses it.
#[must_use]
pub fn is_every_address(address: &str) -> bool {
    resolve(address).is_ok_and(|address| address.ip().to_canonical().is_unspecified())
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let resolved = address.to_socket_addrs()?.next();
    resolved.ok_or_else(|| io::Error::other("the name has no address"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_known_by_its_text() {
        for every in ["0.0.0.0:0", "[::]:5670", "[::ffff:0.0.0.0]:1"] {
            assert!(is_every_address(every), "{every}");
        }
        for one in ["127.0.0.1:0", "[::1]:5670", "10.0.0.7:1", "", "0.0.0.0"] {
            assert!(!is_every_address(one), "{one}");
        }
    }
}
