//! The listening socket and the loop that accepts.

use std::io;
use std::sync::Once;

use quelea_net::{Acceptor, ListenError};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use crate::connection;
use crate::node::SharedNode;

/// What the kernel takes of a connection beyond what it has sent. The rest waits in the client's ring, where
/// all listeners share the bytes and the slow ones are known by them; in the kernel it would be up to 4 MiB of
/// copies for each listener, which leave the processor's cache before they are read. What is under way is not
/// bounded by this, so that long paths are filled as before.
const UNSENT_BYTES_MAX: u32 = 256 * 1024;

/// Listens on `HOST:PORT`, on the first address that the host's name gives. Within a runtime.
pub(crate) fn listen(address: &str) -> Result<TcpListener, ListenError> {
    let failed = |source| ListenError { address: address.to_owned(), source };
    TcpListener::from_std(quelea_net::listen(address)?).map_err(failed)
}

/// Prepares a connection. Fails only if the peer is gone already.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    quelea_net::prepare_socket(stream)?;
    // A listener that holds producers, or spills, may work for hours on what it has.
    quelea_net::allow_stalls(stream)?;
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        // A kernel that does not have it takes more of slow listeners: it costs memory, nothing else.
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            tracing::warn!(%error, "the kernel does not bound what it takes of a connection (TCP_NOTSENT_LOWAT)");
        });
    }
    Ok(())
}

/// Accepts connections and starts a task for each, for ever.
pub(crate) async fn accept(node: SharedNode, listener: TcpListener) {
    let mut acceptor = Acceptor::new(listener, "connections");
    loop {
        let (stream, _) = acceptor.accept(|| ()).await;
        if prepare(&stream).is_ok() {
            let serve = connection::serve(node.clone(), stream);
            // The task yields by itself after each read; tokio's budget would stop it mid-way.
            tokio::task::spawn_local(tokio::task::unconstrained(serve));
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
