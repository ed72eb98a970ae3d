//! Listening sockets and the loop that accepts.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::connection;
use crate::core::SharedCore;

/// Connections that the kernel keeps for us until we accept them.
const BACKLOG: i32 = 1024;

/// Pause after accept failed for want of file descriptors or memory, which last for a while.
const PAUSE: Duration = Duration::from_millis(100);

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// As it was configured.
    pub address: String,
    /// What the system said.
    pub source: io::Error,
}

/// Listens on `HOST:PORT`, on the first address that the host's name gives. Port 0 takes a free one.
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

/// Accepts connections and starts a task for each, for ever.
pub(crate) async fn accept(core: SharedCore, listener: TcpListener) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                failing = false;
                welcome(&core, stream, peer);
            }
            Err(error) => {
                core.with(|core| core.counters.accept_errors += 1);
                // One line for the whole time, which may be long.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "cannot accept connections; trying on");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn welcome(core: &SharedCore, stream: TcpStream, peer: SocketAddr) {
    // Both fail only if the peer is gone already.
    let Ok(local) = stream.local_addr() else { return };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let serve = connection::serve(core.clone(), stream, peer, local);
    // The task yields by itself after each read; tokio's budget would stop it mid-turn.
    tokio::task::spawn_local(tokio::task::unconstrained(serve));
}
