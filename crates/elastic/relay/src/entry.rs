//! A queue's stable entry for ZeroMQ's sockets: they keep their connections here, and the native client
//! re-routes for them. Relays may come, move producers and die; a PUB or SUB sees none of it.
//!
//! Each PUB is a native producer of its own (`producer.rs`), so that the directory can place and move it
//! as any other. All SUBs share one native listener (`feed.rs`): what it takes goes into a relay core of
//! this process, which has a ring for each SUB and counts what each loses, by the same edge that relays
//! have. One thread serves an entry.

mod counters;
mod feed;
mod lost_notice;
mod producer;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quelea_elastic_client::{Client, Options};
use quelea_elastic_core::relay::{Relay, RelayConfig};
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_zmtp::SocketType;
use quelea_net::{ListenError, SignInFailures};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

pub use self::counters::{EntryCount, EntryCounters};
use self::producer::Producers;
use crate::clock::Clock;
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::node::{Node, SharedNode};
use crate::zmtp::{self, Admission, ZmtpAddresses, ZmtpConfig, accept};

/// Bytes of messages of one PUB that no relay has acknowledged yet; then its socket is not read. A
/// relocation takes milliseconds, and a failover is ridden out in the PUB's own queue.
const WINDOW_BYTES: usize = 4 << 20;
/// How often the relay core's counts are taken over.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// The configuration of an entry.
#[derive(Clone, Debug)]
pub struct EntryConfig {
    /// The queue.
    pub queue: String,
    /// Its two sides, of which at least one is on.
    pub zmtp: ZmtpConfig,
    /// What happens to a SUB that is too slow.
    pub slow: SlowPolicy,
    /// What may wait for one SUB, in bytes.
    pub ring_bytes_max: u64,
    /// Most connections of both sides together, those that shake hands included; further ones are closed at once.
    pub connections_max: usize,
}

/// An entry that has its addresses, and serves nobody yet.
#[derive(Debug)]
pub struct BoundEntry {
    config: EntryConfig,
    producers: Option<TcpListener>,
    listeners: Option<TcpListener>,
}

/// An entry that serves.
#[derive(Debug)]
pub struct Entry {
    addresses: ZmtpAddresses,
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// A field is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be had.
    #[error("{field}: {error}")]
    Listen {
        /// The field that names it.
        field: &'static str,
        /// What the system said.
        error: ListenError,
    },
    /// The client of the queue.
    #[error(transparent)]
    Client(#[from] quelea_elastic_client::Error),
    /// The runtime or the thread.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl EntryConfig {
    /// Checks all fields, and listens.
    ///
    /// # Errors
    /// The first field that is wrong, or an address that cannot be had.
    pub fn bind(self) -> Result<BoundEntry, EntryError> {
        self.check()?;
        let listen = |field, address: &str| match address {
            "" => Ok(None),
            address => {
                let listener = quelea_net::listen(address);
                listener.map(Some).map_err(|error| EntryError::Listen { field, error })
            }
        };
        let producers = listen("zmtp_in", &self.zmtp.producers)?;
        let listeners = listen("zmtp_out", &self.zmtp.listeners)?;
        Ok(BoundEntry { config: self, producers, listeners })
    }

    /// Checks whether it can serve, as far as that shows without an address.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), EntryError> {
        self.relay().check()?;
        let sides = [&self.zmtp.producers, &self.zmtp.listeners];
        if sides.iter().all(|address| address.is_empty()) {
            let fault = "neither it nor zmtp_out is given".to_owned();
            return Err(ConfigError { field: "zmtp_in", fault }.into());
        }
        if self.slow == SlowPolicy::Spill {
            let fault = "an entry has no file to spill to".to_owned();
            return Err(ConfigError { field: "slow", fault }.into());
        }
        Ok(())
    }

    /// Returns the configuration of the relay core behind the SUBs.
    fn relay(&self) -> Config {
        let mut config = Config::standalone(&self.queue);
        config.settings.slow = self.slow;
        config.settings.ring_bytes_max = self.ring_bytes_max;
        config
    }
}

impl BoundEntry {
    /// Returns the name of the queue that it is for.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.config.queue
    }

    /// Limits the connections that it takes to as many as `limit` makes of those that were
    /// configured.
    pub fn limit_connections(&mut self, limit: impl FnOnce(usize) -> usize) {
        self.config.connections_max = limit(self.config.connections_max);
    }

    /// Serves the queue that these directories know (`HOST:PORT`, any of which will do), as who has
    /// this key. Peers that may not be here are counted in `failures`.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub fn start(
        self,
        directories: Vec<String>,
        key: Bytes,
        failures: SignInFailures,
        counters: Arc<EntryCounters>,
    ) -> Result<Entry, EntryError> {
        let system = |what| move |source| EntryError::System { what, source };
        let address = |listener: &Option<TcpListener>| -> Result<Option<SocketAddr>, EntryError> {
            let address = listener.as_ref().map(TcpListener::local_addr).transpose();
            address.map_err(system("read the listener's address"))
        };
        let addresses = ZmtpAddresses {
            producers: address(&self.producers)?,
            listeners: address(&self.listeners)?,
        };
        let options = Options {
            name: format!("zmtp entry of {}", self.config.queue),
            key,
            window_bytes: WINDOW_BYTES,
            ..Options::default()
        };
        let client = Client::connect(directories, options)?;
        let (stop, stopped) = mpsc::channel(1);
        let body = move || {
            let mut runtime = Builder::new_current_thread();
            match runtime.enable_all().build_local(LocalOptions::default()) {
                Ok(runtime) => runtime.block_on(self.serve(client, failures, &counters, stopped)),
                Err(error) => tracing::error!(%error, "a ZMTP entry has no runtime"),
            }
        };
        let thread = std::thread::Builder::new().name("zmtp-entry".to_owned()).spawn(body);
        let thread = thread.map_err(system("start the entry's thread"))?;
        Ok(Entry { addresses, stop, thread })
    }

    async fn serve(
        self,
        client: Client,
        failures: SignInFailures,
        counters: &Arc<EntryCounters>,
        mut stopped: mpsc::Receiver<()>,
    ) {
        let clock = Clock::start();
        let relay: RelayConfig = self.config.relay().relay();
        let node = SharedNode::new(Node::new(Relay::new(relay, clock.now()), clock));
        let zmtp = Rc::new(self.config.zmtp.clone());
        let admission = Admission::new(self.config.connections_max, failures)
            .counting(Arc::clone(&counters.turned_away));
        let producers = Producers::new(client.clone(), &self.config.queue, Arc::clone(counters));
        if let Some(socket) = self.producers.and_then(registered) {
            let producers = producers.clone();
            let serve = move |wire, peer| producers.clone().serve(wire, peer);
            let (zmtp, admission) = (Rc::clone(&zmtp), admission.clone());
            tokio::task::spawn_local(accept(socket, zmtp, SocketType::Xsub, admission, serve));
        }
        if let Some(socket) = self.listeners.and_then(registered) {
            let (queue, counters) = (self.config.queue.clone(), Arc::clone(counters));
            tokio::task::spawn_local(feed::run(node.clone(), client, queue, counters));
            let node = node.clone();
            let serve = move |wire, peer| zmtp::listener::serve(node.clone(), wire, peer);
            tokio::task::spawn_local(accept(socket, zmtp, SocketType::Xpub, admission, serve));
        }
        let stop = async {
            // An error is the end of who would say it, which means the same.
            let _ = stopped.recv().await;
            producers.stop().await;
        };
        tokio::select! {
            never = turns(&node, clock) => match never {},
            never = count(&node, counters) => match never {},
            () = stop => {}
        }
    }
}

/// Registers with the runtime a socket that was bound before there was one. Returns `None`, and
/// logs why, if that fails.
fn registered(socket: TcpListener) -> Option<tokio::net::TcpListener> {
    let registered = tokio::net::TcpListener::from_std(socket);
    registered.inspect_err(|error| tracing::error!(%error, "a ZMTP entry cannot accept")).ok()
}

/// Hands out what waits, whenever somebody has something.
async fn turns(node: &SharedNode, clock: Clock) -> Infallible {
    let wake = node.with(|node| node.wake());
    let mut timer = pin!(sleep_until(Instant::now().into()));
    loop {
        let deadline = node.with(Node::turn);
        timer.as_mut().reset(clock.instant(deadline).into());
        tokio::select! {
            () = wake.notified() => {}
            () = &mut timer => {}
        }
    }
}

async fn count(node: &SharedNode, counters: &EntryCounters) -> Infallible {
    let mut ticks = interval(COUNT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        node.with(|node| counters.take_over(&node.relay));
    }
}

impl Entry {
    /// Returns where it listens.
    #[must_use]
    pub const fn addresses(&self) -> ZmtpAddresses {
        self.addresses
    }

    /// Has it stop, without waiting for it.
    pub fn begin_stop(&self) {
        // It fails if it was stopped before, or the thread has ended, which is what is wanted.
        let _ = self.stop.try_send(());
    }

    /// Stops it: what was read of PUBs is given to relays, for some seconds at most. Waits; not within a
    /// runtime.
    pub fn stop(self) {
        self.begin_stop();
        if self.thread.join().is_err() {
            tracing::error!("a ZMTP entry's thread broke");
        }
    }
}
