//! Accepts peers and lets them shake hands.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use quelea_elastic_zmtp::{Event, Peer, SocketType};
use quelea_net::Acceptor;
use tokio::net::{TcpListener, TcpStream};

use super::config::ZmtpConfig;
use super::settings;
use super::wire::{End, Wire};

/// Connections of one side that have not said who they are: more wait until some have, or their ten
/// seconds are over.
const HANDSHAKES_MAX: usize = 1_024;
/// Wait when too many shake hands.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves whoever connects and is let in, for ever.
pub(crate) async fn accept<S, F>(
    socket: TcpListener,
    config: Rc<ZmtpConfig>,
    ours: SocketType,
    serve: S,
) where
    S: Fn(Wire, Peer) -> F + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    let shaking = Rc::new(Cell::new(0_usize));
    let mut acceptor = Acceptor::new(socket, "ZMTP connections");
    loop {
        if shaking.get() >= HANDSHAKES_MAX {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let (stream, address) = acceptor.accept(|| ()).await;
        // It fails only if the peer is gone already.
        if quelea_net::prepare_socket(&stream).is_ok() {
            let (config, serve) = (Rc::clone(&config), serve.clone());
            let guard = Shaking::begin(&shaking);
            tokio::task::spawn_local(async move {
                let peer = shake_hands(stream, address, &config, ours).await;
                drop(guard);
                if let Some((wire, peer)) = peer {
                    serve(wire, peer).await;
                }
            });
        }
    }
}

async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    config: &ZmtpConfig,
    ours: SocketType,
) -> Option<(Wire, Peer)> {
    let mut wire =
        Wire::new(stream, address, settings(config, ours), config.security.for_connection());
    match until_ready(&mut wire).await {
        Ok(peer) => Some((wire, peer)),
        // Health checks and port scanners do so all the time.
        Err(End::Closed | End::Broken(_)) => None,
        Err(end) => {
            tracing::warn!(%address, reason = %end, "a ZMTP peer is refused");
            wire.close().await;
            None
        }
    }
}

async fn until_ready(wire: &mut Wire) -> Result<Peer, End> {
    loop {
        wire.step(true).await?;
        if let Some(Event::Ready(peer)) = wire.event()? {
            return Ok(peer);
        }
    }
}

/// Counts one handshake while it lives.
struct Shaking(Rc<Cell<usize>>);

impl Shaking {
    fn begin(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Shaking {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
