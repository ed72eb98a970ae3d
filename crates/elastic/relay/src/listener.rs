//! The listening socket and the loop that accepts.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Once;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::connection;
use crate::node::SharedNode;

/// Connections that the kernel keeps for us until we accept them: all of a queue's clients may come at
/// once after a failover.
const BACKLOG: i32 = 4_096;

/// What the kernel takes of a connection beyond what it has sent. The rest waits in the client's ring, where
/// all listeners share the bytes and the slow ones are known by them; in the kernel it would be up to 4 MiB of
/// copies for each listener, which leave the processor's cache before they are read. What is under way is not
/// bounded by this, so that long paths are filled as before.
const UNSENT_BYTES_MAX: u32 = 256 * 1024;

/// Wait after accept failed for want of file descriptors or memory, which last for a while.
const PAUSE: Duration = Duration::from_millis(100);

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// As it was given.
    pub address: String,
    /// What the system said.
    pub source: io::Error,
}

/// Listens on `HOST:PORT`, on the first address that the host's name gives. Within a runtime.
pub(crate) fn listen(address: &str) -> Result<TcpListener, ListenError> {
    let source = |source| ListenError { address: address.to_owned(), source };
    TcpListener::from_std(listen_early(address)?).map_err(source)
}

/// The same before there is a runtime.
pub(crate) fn listen_early(address: &str) -> Result<std::net::TcpListener, ListenError> {
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

/// Fails only if the peer is gone already.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    quelea_net::prepare_socket(stream)?;
    // A listener that holds producers, or spills, may work for hours on what it has.
    quelea_net::allow_stalls(stream)?;
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        // A kernel that does not have it takes more of slow listeners: it costs memory, nothing else.
        static TOLD: Once = Once::new();
        TOLD.call_once(|| {
            tracing::warn!(%error, "the kernel does not bound what it takes of a connection (TCP_NOTSENT_LOWAT)");
        });
    }
    Ok(())
}

/// Accepts connections and starts a task for each, for ever.
pub(crate) async fn accept(node: SharedNode, listener: TcpListener) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                failing = false;
                if prepare(&stream).is_ok() {
                    let serve = connection::serve(node.clone(), stream);
                    // The task yields by itself after each read; tokio's budget would stop it mid-way.
                    tokio::task::spawn_local(tokio::task::unconstrained(serve));
                }
            }
            Err(error) => {
                // One line for the whole time, which may be long.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "cannot accept connections; trying on");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_keeps_what_is_not_sent_out_of_the_kernel() {
        let listener = listen("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.expect("a client");
        prepare(&stream).expect("it is there");
        let unsent_max = SockRef::from(&stream).tcp_notsent_lowat().expect("Linux has it");
        assert_eq!(unsent_max, UNSENT_BYTES_MAX);
    }
}
