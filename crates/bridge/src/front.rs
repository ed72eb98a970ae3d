//! The bridge's thread: it keeps, feeds and delivers, and stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use quelea_net::CoreHandle;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use crate::counters::BridgeCounters;
use crate::keeper::Keeper;
use crate::settings::BridgeSettings;

/// The running bridge.
#[derive(Debug)]
pub struct BridgeFront {
    keep_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum BridgeStartError {
    /// The listener is of no use.
    #[error("cannot listen for what elastic queues keep: {0}")]
    Listener(std::io::Error),
    /// There is no thread for it.
    #[error("cannot start the bridge's thread: {0}")]
    Thread(std::io::Error),
}

/// What the thread does.
struct Work {
    keeper: Option<(Keeper, std::net::TcpListener)>,
}

impl BridgeFront {
    /// Begins to keep, to feed and to deliver.
    ///
    /// # Errors
    /// [`BridgeStartError`].
    pub fn start(
        core: &CoreHandle,
        settings: BridgeSettings,
        counters: &Arc<BridgeCounters>,
    ) -> Result<Self, BridgeStartError> {
        let BridgeSettings { keep, user, loopback_only, vhost, key, .. } = settings;
        let keep_address = keep.as_ref().map(std::net::TcpListener::local_addr).transpose();
        let keep_address = keep_address.map_err(BridgeStartError::Listener)?;
        let keeper =
            Keeper::new(core.clone(), user, loopback_only, vhost, key, Arc::clone(counters));
        let work = Work { keeper: keep.map(|listener| (keeper, listener)) };
        let (stop, stopped) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BridgeStartError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("elastic-bridge".to_owned())
            .spawn(move || {
                work.run(&runtime, &stopped);
                runtime.shutdown_background();
            })
            .map_err(BridgeStartError::Thread)?;
        Ok(Self { keep_address, stop, thread })
    }

    /// Where relays bring what is to be kept.
    #[must_use]
    pub const fn keep_address(&self) -> Option<SocketAddr> {
        self.keep_address
    }

    /// Takes nothing more, acknowledges what is safe, gives back what is under way, and waits until
    /// that is done. The broker has to run meanwhile.
    pub fn stop(self) {
        // Without a receiver it has stopped already.
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::warn!("the bridge's thread panicked");
        }
    }
}

impl Work {
    fn run(self, runtime: &Runtime, stop: &watch::Receiver<bool>) {
        let tasks = LocalSet::new();
        runtime.block_on(tasks.run_until(async {
            let mut ends = Vec::new();
            if let Some((keeper, listener)) = self.keeper {
                match TcpListener::from_std(listener) {
                    Ok(listener) => ends.push(spawn_local(keeper.run(listener, stop.clone()))),
                    Err(error) => tracing::error!(%error, "nothing is kept for elastic queues"),
                }
            }
            for end in ends {
                if end.await.is_err() {
                    // The hook has logged where. The other ways go on.
                    tracing::error!("a task of the bridge panicked");
                }
            }
        }));
    }
}

/// Waits until the bridge stops; at once if it does already.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could stop it and is gone has stopped it.
    let _ = stop.wait_for(|stop| *stop).await;
}
