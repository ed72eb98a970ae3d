//! Accepts peers, as many as may be, and lets them shake hands.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quelea_elastic_zmtp::{Event, Peer, SocketType};
use quelea_net::{Acceptor, Front, SignInFailures};
use tokio::net::{TcpListener, TcpStream};

use super::config::ZmtpConfig;
use super::settings;
use super::wire::{End, Wire};

/// Connections of one side that have not said who they are: more wait until some have, or their ten
/// seconds are over.
const HANDSHAKES_MAX: usize = 1_024;
/// Wait when too many shake hands.
const PAUSE: Duration = Duration::from_millis(100);

/// What both sides of an edge share: how many connections they may have together, and who was refused.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    connections_max: usize,
    open: Rc<Cell<usize>>,
    turned_away: Arc<AtomicU64>,
    failures: SignInFailures,
}

impl Admission {
    /// Creates an admission of so many connections, those that shake hands included.
    pub(crate) fn new(connections_max: usize, failures: SignInFailures) -> Self {
        Self { connections_max, open: Rc::default(), turned_away: Arc::default(), failures }
    }

    /// Counts what is turned away there.
    pub(crate) fn counting(self, turned_away: Arc<AtomicU64>) -> Self {
        Self { turned_away, ..self }
    }

    /// Counts one connection more, unless there is no place: then that is counted, and logged when
    /// their number has doubled.
    fn enter(&self, address: SocketAddr) -> Option<Counted> {
        if self.open.get() < self.connections_max {
            return Some(Counted::begin(&self.open));
        }
        let turned_away = self.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        if turned_away.is_power_of_two() {
            let limit = self.connections_max;
            tracing::warn!(%address, limit, turned_away, "too many ZMTP connections: one is closed");
        }
        None
    }

    fn refuse(&self, address: SocketAddr, end: &End) {
        if let End::Protocol(error) = end
            && let Some(proof) = error.failed_sign_in()
        {
            let peer = address.ip().to_canonical();
            let failed = self.failures.add(Front::Zmtp, peer, proof);
            if failed.is_logged() {
                let in_row = failed.in_row;
                tracing::warn!(%address, reason = %end, in_row, "a ZMTP peer is refused");
            }
        } else {
            tracing::warn!(%address, reason = %end, "a ZMTP peer is refused");
        }
    }
}

/// Serves whoever connects and is let in, for ever.
pub(crate) async fn accept<S, F>(
    socket: TcpListener,
    config: Rc<ZmtpConfig>,
    ours: SocketType,
    admission: Admission,
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
        let Some(place) = admission.enter(address) else { continue };
        // It fails only if the peer is gone already.
        if quelea_net::prepare_socket(&stream).is_ok() {
            let (config, serve, admission) = (Rc::clone(&config), serve.clone(), admission.clone());
            let guard = Counted::begin(&shaking);
            tokio::task::spawn_local(async move {
                let peer = shake_hands(stream, address, &config, ours, &admission).await;
                drop(guard);
                if let Some((wire, peer)) = peer {
                    serve(wire, peer).await;
                }
                drop(place);
            });
        }
    }
}

async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    config: &ZmtpConfig,
    ours: SocketType,
    admission: &Admission,
) -> Option<(Wire, Peer)> {
    let mut wire =
        Wire::new(stream, address, settings(config, ours), config.security.for_connection());
    match until_ready(&mut wire).await {
        Ok(peer) => Some((wire, peer)),
        // Health checks and port scanners do so all the time.
        Err(End::Closed | End::Broken(_)) => None,
        Err(end) => {
            admission.refuse(address, &end);
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

/// Counts one handshake, or one connection, while it lives.
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn begin(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
