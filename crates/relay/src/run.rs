//! A relay process from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use quelea_elastic::relay::Relay;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::listener::{ListenError, accept, listen};
use crate::node::{Node, SharedNode};
use crate::zmtp::{self, ZmtpAddresses};

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

/// Where a relay listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// For native clients.
    pub native: SocketAddr,
    /// For ZeroMQ's sockets.
    pub zmtp: ZmtpAddresses,
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All that it had was written.
    Drained,
    /// Its time was over, or it was told to stop at once: messages may have been lost, and are announced
    /// to who reads on elsewhere.
    Cut,
}

/// Stops a relay from another thread: once to have it drain, twice to have it end at once.
#[derive(Clone, Debug)]
pub struct Stopper(mpsc::Sender<()>);

impl Stopper {
    /// The end that a relay is given, with what stops it.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel(2);
        (Self(sender), receiver)
    }

    /// See the type. Does nothing if the relay has ended.
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
        let zmtp = config.zmtp.as_ref().map(|zmtp| zmtp::start(&node, zmtp)).transpose()?;
        ready(Addresses { native: address, zmtp: zmtp.unwrap_or_default() });
        Ok(serve(node, clock, config.drain, stop).await)
    })
}

/// Runs turns until the end.
async fn serve(
    node: SharedNode,
    clock: Clock,
    drain: Duration,
    mut stop: mpsc::Receiver<()>,
) -> Stopped {
    let wake = node.with(|node| node.wake());
    let mut timer = pin!(sleep_until(Instant::now().into()));
    let mut stops = true;
    loop {
        let deadline = node.with(Node::turn);
        let (until, drained) =
            node.with(|node| (node.relay.drains_until(), node.relay.is_drained()));
        if drained {
            return Stopped::Drained;
        }
        if until.is_some_and(|until| until <= clock.now()) {
            return Stopped::Cut;
        }
        let deadline = until.map_or(deadline, |until| until.min(deadline));
        timer.as_mut().reset(clock.instant(deadline).into());
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = &mut timer => {}
            told = stop.recv(), if stops => match told {
                Some(()) if until.is_some() => return Stopped::Cut,
                Some(()) => node.with(|node| {
                    let deadline_ms = u32::try_from(drain.as_millis()).unwrap_or(u32::MAX);
                    node.relay.drain(deadline_ms);
                }),
                None => stops = false,
            },
        }
    }
}
