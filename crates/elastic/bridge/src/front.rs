//! The bridge's thread: it keeps, feeds and delivers, and stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use quelea_elastic_client::{Client, Options};
use quelea_node::CoreHandle;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use crate::counters::BridgeCounters;
use crate::delivery::Delivery;
use crate::feed::Feed;
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
    /// Nobody knows the elastic queues.
    #[error("a feed or a delivery: {0}")]
    Client(#[from] quelea_elastic_client::Error),
}

/// What the thread does.
struct Work {
    keeper: Option<(Keeper, std::net::TcpListener)>,
    feeds: Vec<Feed>,
    deliveries: Vec<Delivery>,
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
        let keep_address = settings.keep.as_ref().map(std::net::TcpListener::local_addr);
        let keep_address = keep_address.transpose().map_err(BridgeStartError::Listener)?;
        let work = Work::new(core, settings, counters)?;
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

    /// Returns where relays bring what is to be kept.
    #[must_use]
    pub const fn keep_address(&self) -> Option<SocketAddr> {
        self.keep_address
    }

    /// Takes nothing more, acknowledges what is safe, requeues what is under way, and waits until
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
    fn new(
        core: &CoreHandle,
        settings: BridgeSettings,
        counters: &Arc<BridgeCounters>,
    ) -> Result<Self, BridgeStartError> {
        let BridgeSettings { keep, user, loopback_only, vhost, key, directories, .. } = settings;
        let (failures, connections_max) = (settings.failures, settings.keep_connections_max);
        let client = |acknowledge_by_hand| {
            let (name, key) = ("quelea bridge".to_owned(), key.clone());
            let options = Options { name, key, acknowledge_by_hand, ..Options::default() };
            Client::connect(directories.iter().map(String::as_str), options)
        };
        let feed = |settings| {
            Ok(Feed {
                core: core.clone(),
                client: client(false)?,
                settings: Arc::new(settings),
                user: Arc::clone(&user),
                counters: Arc::clone(counters),
            })
        };
        let delivery = |of| {
            Ok(Delivery {
                core: core.clone(),
                client: client(true)?,
                settings: Arc::new(of),
                user: Arc::clone(&user),
                body_bytes_max: settings.body_bytes_max,
                counters: Arc::clone(counters),
            })
        };
        let feeds = settings.feeds.into_iter().map(feed);
        let feeds = feeds.collect::<Result<_, quelea_elastic_client::Error>>()?;
        let deliveries = settings.deliveries.into_iter().map(delivery);
        let deliveries = deliveries.collect::<Result<_, quelea_elastic_client::Error>>()?;
        let (user, counters) = (Arc::clone(&user), Arc::clone(counters));
        let keeper = keep.map(|listener| {
            let keeper = Keeper {
                core: core.clone(),
                user,
                loopback_only,
                vhost,
                key: key.clone(),
                connections_max,
                failures,
                counters,
                ledger: Arc::default(),
            };
            (keeper, listener)
        });
        Ok(Self { keeper, feeds, deliveries })
    }

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
            ends.extend(self.feeds.into_iter().map(|feed| spawn_local(feed.run(stop.clone()))));
            let deliveries = self.deliveries.into_iter();
            ends.extend(deliveries.map(|delivery| spawn_local(delivery.run(stop.clone()))));
            for end in ends {
                if end.await.is_err() {
                    // The hook has logged where. The other ways go on.
                    tracing::error!("a task of the bridge panicked");
                }
            }
        }));
    }
}
