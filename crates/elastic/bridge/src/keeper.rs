//! The keeper: relays bring an elastic queue's messages, it stores them in a durable queue, and says so
//! when the store has them (EQS §VI: persistence with a final acknowledgement).

mod batch;
mod connection;
mod durable_publisher;
mod ledger;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quelea_net::SignInFailures;
use quelea_node::{Backoff, CoreHandle};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinSet, spawn_local};

use crate::counters::BridgeCounters;
use connection::Connection;
use ledger::Ledger;
use quelea_node::stopped;

/// What every relay's connection needs.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(crate) core: CoreHandle,
    pub(crate) user: Arc<str>,
    pub(crate) loopback_only: bool,
    pub(crate) vhost: Arc<str>,
    pub(crate) key: Bytes,
    /// Relays at once; further ones wait to be accepted.
    pub(crate) connections_max: usize,
    /// Relays with a wrong key, or from where the user may not come from.
    pub(crate) failures: SignInFailures,
    pub(crate) counters: Arc<BridgeCounters>,
    /// Only the core's thread takes it, one call after the other.
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

impl Keeper {
    /// Takes relays until `stop` changes.
    pub(crate) async fn run(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(self.connections_max));
        let mut connections = JoinSet::new();
        let mut backoff = Backoff::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(_) = connections.join_next() => continue,
                accepted = async {
                    // Nobody closes it.
                    let place = Arc::clone(&places).acquire_owned().await.ok();
                    (place, listener.accept().await)
                } => accepted,
            };
            match accepted {
                (place, Ok((socket, peer))) => {
                    backoff.reset();
                    let (keeper, stop) = (self.clone(), stop.clone());
                    connections.spawn_local(async move {
                        let _place = place;
                        keeper.counters.keeping.fetch_add(1, Relaxed);
                        let counters = Arc::clone(&keeper.counters);
                        // In a task of its own, so that a panic ends this connection only.
                        let served = spawn_local(Connection::serve(keeper, socket, peer, stop));
                        if served.await.is_err() {
                            tracing::error!(%peer, "the task of a relay's messages panicked");
                        }
                        counters.keeping.fetch_sub(1, Relaxed);
                    });
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "the keeper cannot take a connection for now");
                    tokio::time::sleep(backoff.next_wait()).await;
                }
            }
        }
        while connections.join_next().await.is_some() {}
    }
}
