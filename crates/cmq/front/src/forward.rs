//! From queues to peers: a consumer whose messages are pushed, and acknowledged to the queue when the
//! peer has them.
//!
//! Whatever goes wrong ends the consumer, which requeues what is under way; after a
//! backoff all of it begins anew: the peer's name is looked up again, a new socket is opened, and the
//! queue, which may have been declared again, is consumed again.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use quelea_broker::{Consume, ConsumeError, Effect, OpenError};
use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key, Outcome, PushError};
use quelea_model::Message;
use quelea_node::{
    Backoff, CoreHandle, CoreStopped, InternalChannel, LogOnce, stopped, stops_before_retry,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::forward_state::ForwardState;
use crate::peer::{Peer, local_address};
use crate::publish::inside;
use crate::settings::ForwardSettings;

/// Bytes that are pushed before their acknowledgement is waited for.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// How long a clean stop waits for what is under way, and again for what is then left to send.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// One queue and its peer.
pub(crate) struct Forward {
    pub(crate) core: CoreHandle,
    pub(crate) config: Config,
    pub(crate) user: Arc<str>,
    pub(crate) state: Arc<ForwardState>,
}

/// Why it does not go on for now.
#[derive(Debug, thiserror::Error)]
enum ForwardFault {
    #[error(transparent)]
    CoreStopped(#[from] CoreStopped),
    #[error("cannot find the peer: {0}")]
    Resolve(std::io::Error),
    #[error("cannot open a socket: {0}")]
    Socket(std::io::Error),
    #[error("{0}")]
    Destination(#[from] quelea_cmq::DestinationError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error("the queue is gone")]
    QueueGone,
    #[error("the broker closes the connection: {0}")]
    Closed(String),
    #[error("the peer has acknowledged nothing within {} ms", .0.as_millis())]
    Silent(Duration),
    #[error("the peer was given up")]
    GivenUp,
}

impl ForwardFault {
    /// Returns whether only the peer can end the trouble.
    const fn is_of_peer(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::GivenUp)
    }
}

/// What a stop found.
enum Stop {
    /// The queue has the acknowledgements of all that was pushed.
    Settled,
    /// What was under way goes back to the queue.
    Requeued,
}

/// What was pushed and is not settled.
#[derive(Default)]
struct Batch {
    messages: Vec<(u64, Arc<Message>)>,
    bytes: usize,
}

impl Forward {
    /// Runs until `stop` changes or the core stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let (mut backoff, mut log) = (Backoff::new(), LogOnce::default());
        loop {
            let trouble = match self.live(&mut backoff, &mut log, &mut stop).await {
                Ok(()) | Err(ForwardFault::CoreStopped(_)) => return,
                Err(trouble) => trouble,
            };
            let reason = trouble.to_string();
            self.state.failed(&reason, trouble.is_of_peer());
            if log.is_new(&reason) {
                let ForwardSettings { queue, vhost, to, .. } = &self.state.settings;
                tracing::warn!(%queue, %vhost, %to, reason, "a queue is not forwarded for now");
            }
            if stops_before_retry(&mut stop, &mut backoff).await {
                return;
            }
        }
    }

    /// Forwards once, from the look-up of the peer's name to the first trouble, or to the stop.
    async fn live(
        &self,
        backoff: &mut Backoff,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), ForwardFault> {
        let settings = &self.state.settings;
        let address = tokio::select! {
            biased;
            () = stopped(stop) => return Ok(()),
            address = resolve(&settings.to) => address?,
        };
        let endpoint = Endpoint::bind(local_address(address), self.config.clone());
        let endpoint = endpoint.map_err(ForwardFault::Socket)?;
        let options = DestinationOptions { mode: settings.mode, ..DestinationOptions::default() };
        let dest = endpoint.dest(Key::new(address, settings.to.mailbox), options)?;
        let mut subscription = self.subscribe(&endpoint).await?;
        self.state.opened(&dest);
        let served = self.serve(&mut subscription, &dest, backoff, log, stop).await;
        self.state.closed();
        let connection = subscription.connection;
        let detached = self.core.call(move |core| core.detach(connection)).await;
        // What is in the queue again is not to be sent any more.
        let within = if matches!(served, Ok(Stop::Settled)) { CLOSE_MAX } else { Duration::ZERO };
        // It waits, so it has a thread of its own.
        let _ = tokio::task::spawn_blocking(move || endpoint.close(within)).await;
        detached?;
        served.map(drop)
    }

    async fn subscribe(&self, endpoint: &Endpoint) -> Result<InternalChannel, ForwardFault> {
        let (sender, effects) = unbounded_channel();
        let local = endpoint.local_addr().to_string();
        let (user, settings) = (Arc::clone(&self.user), self.state.settings.clone());
        let subscribed = self.core.call(move |core| {
            let ForwardSettings { queue, vhost, to, prefetch, .. } = settings;
            let name = format!("CMQ forward to {to}");
            let client = inside(&user, &vhost, &local, &name);
            let (connection, channel) = core.open_internal(client, sender)?;
            let now = core.now();
            core.broker.set_prefetch(now, channel, prefetch, false);
            let consume = Consume { queue: queue.to_string(), ..Consume::default() };
            if let Err(error) = core.broker.consume(now, channel, &consume) {
                core.detach(connection);
                return Err(ForwardFault::Consume(error));
            }
            Ok((connection, channel))
        });
        let (connection, channel) = subscribed.await??;
        Ok(InternalChannel { connection, channel, effects })
    }

    async fn serve(
        &self,
        subscription: &mut InternalChannel,
        dest: &Dest,
        backoff: &mut Backoff,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Stop, ForwardFault> {
        loop {
            let first = tokio::select! {
                biased;
                () = stopped(stop) => return Ok(Stop::Settled),
                effect = subscription.effects.recv() => effect.ok_or(CoreStopped)?,
            };
            let batch = gather(first, &mut subscription.effects)?;
            let count = batch.messages.len() as u64;
            let mut pushing = pin!(self.push(&batch, dest));
            let pushed = tokio::select! {
                biased;
                () = stopped(stop) => match timeout(CLOSE_MAX, &mut pushing).await {
                    Ok(pushed) => pushed.map(Some),
                    Err(_) => Ok(None),
                },
                pushed = &mut pushing => pushed.map(Some),
            };
            match pushed {
                Ok(Some(settled)) => {
                    self.settle(subscription, settled).await?;
                    self.state.succeeded();
                }
                Ok(None) => {
                    self.state.requeue(count);
                    return Ok(Stop::Requeued);
                }
                Err(trouble) => {
                    self.state.requeue(count);
                    return Err(trouble);
                }
            }
            if log.resolved() {
                let ForwardSettings { queue, vhost, to, .. } = &self.state.settings;
                tracing::info!(%queue, %vhost, %to, "the queue is forwarded again");
            }
            backoff.reset();
        }
    }

    /// Pushes a batch, and waits for its acknowledgement where there is one.
    async fn push(&self, batch: &Batch, dest: &Dest) -> Result<Settled, ForwardFault> {
        let mut settled = Settled::default();
        let within = self.state.settings.timeout;
        for (tag, message) in &batch.messages {
            let body = message.body();
            let pushed = match dest.try_push(body) {
                Err(PushError::WouldBlock) => {
                    unless_silent(dest, within, dest.push_async(body)).await?
                }
                pushed => pushed,
            };
            match pushed {
                Ok(()) => settled.pushed(*tag),
                Err(error @ PushError::TooLarge { .. }) => {
                    let ForwardSettings { queue, to, .. } = &self.state.settings;
                    tracing::debug!(%queue, %to, %error, "a message cannot be forwarded");
                    settled.unfit.push(*tag);
                }
                Err(_) => return Err(ForwardFault::GivenUp),
            }
        }
        dest.flush();
        if self.state.settings.mode.is_reliable() {
            acknowledged(dest, within).await?;
        }
        Ok(settled)
    }

    /// Acknowledges to the queue, or requeues.
    async fn settle(
        &self,
        subscription: &InternalChannel,
        settled: Settled,
    ) -> Result<(), CoreStopped> {
        self.state.forwarded.fetch_add(settled.count, Relaxed);
        self.state.not_forwarded.fetch_add(settled.unfit.len() as u64, Relaxed);
        let InternalChannel { connection, channel, .. } = *subscription;
        self.core
            .post(move |core| {
                let now = core.now();
                // A tag is unknown when the connection was closed meanwhile: all of it went back then.
                for tag in settled.unfit {
                    let _ = core.broker.nack(now, channel, tag, false, false);
                }
                if let Some(last) = settled.last {
                    let _ = core.broker.ack(now, channel, last, true);
                }
                core.broker.output_drained(now, connection, usize::MAX);
            })
            .await
    }
}

/// What happens to a batch at the queue.
#[derive(Debug, Default)]
struct Settled {
    /// The last one that the peer has, and how many.
    last: Option<u64>,
    count: u64,
    /// Those that CMQ cannot carry.
    unfit: Vec<u64>,
}

impl Settled {
    const fn pushed(&mut self, tag: u64) {
        self.last = Some(tag);
        self.count += 1;
    }
}

/// Gathers a delivery and those that are here behind it.
fn gather(first: Effect, effects: &mut UnboundedReceiver<Effect>) -> Result<Batch, ForwardFault> {
    let mut batch = Batch::default();
    let mut next = Some(first);
    while let Some(effect) = next {
        match effect {
            Effect::Deliver { delivery_tag, message, .. } => {
                batch.bytes += message.body().len();
                batch.messages.push((delivery_tag, message));
            }
            Effect::ConsumerCancelled { .. } => return Err(ForwardFault::QueueGone),
            Effect::CloseConnection { reason, .. } => {
                return Err(ForwardFault::Closed(reason.text()));
            }
            _ => {}
        }
        next = if batch.bytes < BATCH_BYTES_MAX { effects.try_recv().ok() } else { None };
    }
    Ok(batch)
}

/// Waits until the peer has all that was pushed.
async fn acknowledged(dest: &Dest, within: Duration) -> Result<(), ForwardFault> {
    match unless_silent(dest, within, dest.wait_acknowledged_async()).await? {
        Outcome::Acknowledged => Ok(()),
        Outcome::Abandoned | Outcome::Closed => Err(ForwardFault::GivenUp),
        Outcome::TimedOut => Err(ForwardFault::Silent(within)),
    }
}

/// Waits for `done`, however long that takes, as long as the peer is not silent for `within`.
async fn unless_silent<T>(
    dest: &Dest,
    within: Duration,
    done: impl Future<Output = T>,
) -> Result<T, ForwardFault> {
    // Of these one changes with each acknowledgement, and with what leaves for the room that it made.
    let seen = || dest.stats().map(|stats| (stats.datagrams, stats.kept_bytes));
    let mut done = pin!(done);
    let mut before = seen();
    loop {
        if let Ok(done) = timeout(within, &mut done).await {
            return Ok(done);
        }
        let now = seen();
        if now == before {
            return Err(ForwardFault::Silent(within));
        }
        before = now;
    }
}

/// Looks up the peer's address. Names are looked up by a call that waits, so it has a thread of its
/// own.
async fn resolve(peer: &Peer) -> Result<SocketAddr, ForwardFault> {
    let peer = peer.clone();
    let found = tokio::task::spawn_blocking(move || peer.resolve()).await;
    found.map_err(|_| CoreStopped)?.map_err(ForwardFault::Resolve)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::task::{Context, Poll, Waker};

    use quelea_cmq::{MailboxOptions, Mode};
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_acknowledges_some_of_a_batch_is_not_silent() {
        const WITHIN: Duration = Duration::from_secs(10);
        // Timers are of whole milliseconds.
        const LATER: Duration = Duration::from_millis(10_001);
        let bind = || Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let (here, there) = (bind(), bind());
        let taken =
            MailboxOptions { acknowledged_by_application: true, ..MailboxOptions::default() };
        let queue = there.queue(0, taken).unwrap();
        let options =
            DestinationOptions { mode: Mode::ReliableOrdered, ..DestinationOptions::default() };
        let dest = here.dest(Key::new(there.local_addr(), 0), options).unwrap();
        for message in [b"first", b"other"] {
            dest.push(message).unwrap();
            dest.flush();
        }
        let mut receipts = [(); 2].map(|()| queue.pop().unwrap().receipt()).into_iter();
        let kept = || dest.stats().unwrap().kept_bytes;
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = pin!(acknowledged(&dest, WITHIN));
        assert!(waiting.as_mut().poll(&mut context).is_pending());

        let before = kept();
        queue.acknowledge(receipts.next().unwrap());
        while kept() == before {
            std::thread::yield_now();
        }
        advance(LATER).await;
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "half is acknowledged");
        advance(LATER).await;
        let silent = waiting.as_mut().poll(&mut context);
        assert!(matches!(silent, Poll::Ready(Err(ForwardFault::Silent(WITHIN)))), "{silent:?}");
    }

    #[tokio::test]
    async fn what_a_dead_peer_never_got_is_not_acknowledged_to_the_queue() {
        // Nobody reads it.
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let options = DestinationOptions {
            mode: Mode::ReliableOrdered,
            dead_after: Some(Duration::from_millis(50)),
            ..DestinationOptions::default()
        };
        let dest = endpoint.dest(Key::new(peer.local_addr().unwrap(), 0), options).unwrap();
        dest.push(b"durable").unwrap();
        let waited = acknowledged(&dest, Duration::from_secs(300)).await;
        assert!(matches!(waited, Err(ForwardFault::GivenUp)), "{waited:?}");
    }
}
