//! A relay process from its start to its end.

use std::io;
use std::pin::pin;
use std::time::Instant;

use quelea_elastic_core::relay::Relay;
use quelea_elastic_proto::Time;
use quelea_net::ListenError;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::control::Control;
use crate::keeper;
use crate::listener::{accept, listen};
use crate::node::{Node, SharedNode, take_spill_answers};
use crate::spill::SpillStore;
use crate::zmtp;

/// Why a relay does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A field is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The runtime.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All that it had was written.
    Drained,
    /// Its time was over, or it was stopped at once: messages may have been lost, and are announced
    /// to who reads on elsewhere.
    Cut,
    /// No directory knew it for too long, and nobody used it.
    Orphaned,
}

/// How long after a drain's deadline the directory may take to say STOP.
const STOP_GRACE_MS: u64 = 5_000;

/// Stops a relay from another thread: once to have it drain, twice to have it end at once.
#[derive(Clone, Debug)]
pub struct Stopper(mpsc::Sender<()>);

impl Stopper {
    /// Creates what stops a relay, and the end that the relay is given.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel(2);
        (Self(sender), receiver)
    }

    /// Stops it, or ends it at once if it was stopped before. Does nothing if the relay has ended.
    pub fn stop(&self) {
        // A third one has nothing to add.
        let _ = self.0.try_send(());
    }
}

/// Serves until it is stopped. Calls `ready` with its addresses when clients can connect.
///
/// # Errors
/// If it cannot start.
pub fn run(
    config: &Config,
    stop: mpsc::Receiver<()>,
    ready: impl FnOnce(Addresses),
) -> Result<Stopped, RunError> {
    config.check()?;
    let system = |what| move |source| RunError::System { what, source };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(system("start the runtime"))?;
    runtime.block_on(async {
        let listener = listen(&config.listen)?;
        let address = listener.local_addr().map_err(system("read the listener's address"))?;
        let clock = Clock::start();
        let node = SharedNode::new(Node::new(Relay::new(config.relay(), clock.now()), clock));
        tokio::task::spawn_local(accept(node.clone(), listener));
        let start = |zmtp| zmtp::start(&node, zmtp, config.connections_max);
        let zmtp = config.zmtp.as_ref().map(start).transpose()?;
        let addresses = Addresses { native: address, zmtp: zmtp.unwrap_or_default() };
        if let Some(spill) = &config.spill {
            let store = SpillStore::start(spill.clone());
            let (store, answers) = store.map_err(system("start the thread that spills"))?;
            tokio::task::spawn_local(take_spill_answers(node.clone(), answers));
            node.with(|node| node.spill_to(store, spill.bytes_max));
        }
        if let Some(directory) = &config.directory {
            node.with(|node| node.alone_since = Some(clock.now()));
            let control = Control::new(node.clone(), directory.clone(), config, addresses);
            tokio::task::spawn_local(control.run());
        }
        tokio::task::spawn_local(keeper::run(node.clone(), config.key.clone()));
        ready(addresses);
        Ok(serve(node, clock, config, stop).await)
    })
}

/// Runs turns until the end.
async fn serve(
    node: SharedNode,
    clock: Clock,
    config: &Config,
    mut stop: mpsc::Receiver<()>,
) -> Stopped {
    let wake = node.with(|node| node.wake());
    let mut timer = pin!(sleep_until(Instant::now().into()));
    let (mut stops, mut stopping) = (true, false);
    loop {
        let deadline = node.with(Node::turn);
        let deadline = match node.with(|node| end(node, config, stopping)) {
            End::Now(stopped) => return stopped,
            End::At(at) => at.min(deadline),
            End::Never => deadline,
        };
        timer.as_mut().reset(clock.instant(deadline).into());
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = &mut timer => {}
            signal = stop.recv(), if stops => match signal {
                Some(()) if stopping => return Stopped::Cut,
                Some(()) => {
                    stopping = true;
                    let deadline_ms = u32::try_from(config.drain.as_millis()).unwrap_or(u32::MAX);
                    node.with(|node| {
                        node.is_stopping = true;
                        // A directory that drains it has set the time.
                        if node.relay.drains_until().is_none() {
                            node.relay.drain(deadline_ms);
                        }
                    });
                }
                None => stops = false,
            },
        }
    }
}

/// Whether and when a relay ends.
enum End {
    Now(Stopped),
    At(Time),
    Never,
}

fn end(node: &mut Node, config: &Config, by_signal: bool) -> End {
    let now = node.clock.now();
    let drained = node.relay.is_drained();
    if node.stop_ordered {
        return End::Now(if drained { Stopped::Drained } else { Stopped::Cut });
    }
    if let Some(until) = node.relay.drains_until() {
        // A directory that has it drained takes the listeners away and says STOP; a little later than the
        // deadline nobody will say it any more.
        let led = config.directory.is_some() && node.alone_since.is_none();
        let alone = by_signal && !led;
        if alone && config.directory.is_some() {
            // Its directory stops with it, or is gone: nobody would move its producers.
            node.relay.send_clients_away();
            let left = node.relay.connections() > 0;
            if left && node.relay.has_writable() {
                node.want_turn();
            }
            return match (left, until <= now) {
                (false, _) => End::Now(Stopped::Drained),
                (true, true) => End::Now(if drained { Stopped::Drained } else { Stopped::Cut }),
                (true, false) => End::At(until),
            };
        }
        let until = if alone { until } else { until.plus_ms(STOP_GRACE_MS) };
        return match (alone && drained, until <= now) {
            (true, _) => End::Now(Stopped::Drained),
            (false, true) => End::Now(if drained { Stopped::Drained } else { Stopped::Cut }),
            (false, false) => End::At(until),
        };
    }
    if let (Some(since), Some(directory)) = (node.alone_since, &config.directory) {
        let timeout = u64::try_from(directory.orphan_timeout.as_millis()).unwrap_or(u64::MAX);
        let until = since.plus_ms(timeout);
        if until > now {
            return End::At(until);
        }
        if node.relay.connections() == 0 {
            return End::Now(Stopped::Orphaned);
        }
    }
    End::Never
}
