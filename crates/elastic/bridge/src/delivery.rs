//! From an elastic queue to an exchange: a listener takes what matches its prefixes, and publishes it. A
//! message is acknowledged to the elastic queue when the broker's store has it.
//!
//! While the broker, or a queue behind the exchange, takes nothing, the listener takes nothing either,
//! and the elastic queue does what it does for slow listeners.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use quelea_broker::{ChannelId, Effect};
use quelea_elastic_client::{Client, Event, Listener};
use quelea_node::{
    Backoff, Core, CoreHandle, CoreStopped, InternalChannel, InternalClient, LogOnce, Promise,
    stopped, stops_before_retry,
};
use quelea_store::Ticket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until, timeout};

use crate::counters::BridgeCounters;
use crate::fault::BridgeFault;
use crate::message::Outgoing;
use crate::publish::{PublishRefusal, publish};
use crate::settings::DeliverySettings;
use crate::stop::{CLOSE_MAX, opened};

/// A batch takes the core's thread for about a millisecond at most.
const BATCH_MESSAGES_MAX: usize = 1_024;

/// Bytes of a batch, but for its last message.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Attempts whose messages are published and not safe; no more is taken beyond.
const UNSTORED_MAX: usize = 64;

/// An elastic queue and its exchange.
pub(crate) struct Delivery {
    pub(crate) core: CoreHandle,
    pub(crate) client: Client,
    pub(crate) settings: Arc<DeliverySettings>,
    pub(crate) user: Arc<str>,
    pub(crate) body_bytes_max: usize,
    pub(crate) counters: Arc<BridgeCounters>,
}

/// What was taken at once.
struct Batch {
    messages: Arc<[Outgoing]>,
    /// Those before are published, or cannot be.
    done: usize,
    /// When to try again.
    again_at: Option<Instant>,
}

/// What came of an attempt to publish a batch.
#[derive(Debug, Default)]
struct Attempt {
    /// Messages that are dealt with, in their order; of these no queue took so many, and why.
    done: usize,
    dropped: u64,
    cause: Option<PublishRefusal>,
    /// What stopped it; then the rest is for another attempt.
    refusal: Option<PublishRefusal>,
}

/// What changes while messages are delivered.
struct Session {
    listener: Listener,
    broker: Option<InternalChannel>,
    batch: Option<Batch>,
    /// Attempts that the store has not reached.
    unstored: usize,
    to_store: UnboundedSender<(Promise, u64)>,
    stored: UnboundedReceiver<u64>,
    backoff: Backoff,
    /// That messages are dropped is logged once, whatever their keys are.
    log: LogOnce,
}

impl Delivery {
    /// Runs until `stop` changes or the core stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let (mut backoff, mut log) = (Backoff::new(), LogOnce::default());
        loop {
            let fault = match self.live(&mut log, &mut stop).await {
                Ok(()) | Err(BridgeFault::CoreStopped(_)) => return,
                Err(fault) => fault,
            };
            self.warn(&mut log, &fault);
            if stops_before_retry(&mut stop, &mut backoff).await {
                return;
            }
        }
    }

    fn warn(&self, log: &mut LogOnce, fault: &BridgeFault) {
        let reason = fault.to_string();
        if log.is_new(&reason) {
            let DeliverySettings { queue, vhost, exchange, .. } = &*self.settings;
            tracing::warn!(%queue, %vhost, %exchange, reason, "an elastic queue is not delivered for now");
        }
    }

    /// Delivers from the elastic queue's relays until the first fault with them, or the stop.
    async fn live(
        &self,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), BridgeFault> {
        let DeliverySettings { queue, prefixes, .. } = &*self.settings;
        let listening = self.client.listener(&**queue, prefixes.iter().map(|prefix| &**prefix));
        let Some(listener) = opened(stop, listening).await? else { return Ok(()) };
        let (to_store, promises) = unbounded_channel();
        let (reached, stored) = unbounded_channel();
        spawn_local(await_store(promises, reached));
        let mut session = Session::new(listener, to_store, stored);
        let served = self.serve(&mut session, log, stop).await;
        if let Some(broker) = session.broker.take() {
            self.core.call(move |core| core.detach(broker.connection)).await?;
        }
        served?;
        let _ = timeout(CLOSE_MAX, session.listener.close()).await;
        Ok(())
    }

    async fn serve(
        &self,
        session: &mut Session,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), BridgeFault> {
        loop {
            let again_at = session.batch.as_ref().map(|batch| batch.again_at);
            let waits = again_at.flatten();
            if again_at.is_some() && waits.is_none_or(|at| at <= Instant::now()) {
                self.attempt(session, log).await?;
                continue;
            }
            let has_room = session.unstored < UNSTORED_MAX && session.batch.is_none();
            tokio::select! {
                biased;
                () = stopped(stop) => {
                    session.end().await;
                    return Ok(());
                }
                stored = session.stored.recv() => {
                    session.unstored -= 1;
                    session.listener.acknowledge(stored.ok_or(CoreStopped)?);
                }
                closed = closed(session.broker.as_mut()) => {
                    session.broker = None;
                    self.warn(log, &closed?);
                }
                () = sleep_until(waits.unwrap_or_else(Instant::now)), if waits.is_some() => {}
                event = session.listener.next(), if has_room => {
                    session.batch = self.gather(event?, &mut session.listener)?;
                }
            }
        }
    }

    /// Takes an event, and those that are here behind it. Returns their messages as a batch, if
    /// there are any.
    fn gather(&self, first: Event, listener: &mut Listener) -> Result<Option<Batch>, BridgeFault> {
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(event) = next {
            match event {
                Event::Message(message) => {
                    bytes += message.framed().len();
                    let (producer, sequence) = (message.producer, message.sequence);
                    let queue = &self.settings.queue;
                    messages.push(Outgoing::new(queue, producer, sequence, message.framed()));
                }
                Event::Gap(gap) => {
                    let missed =
                        gap.messages.unwrap_or_else(|| gap.to.0.saturating_sub(gap.from.0));
                    self.counters.gaps.fetch_add(missed, Relaxed);
                }
                Event::Notice { text, .. } => {
                    tracing::debug!(queue = %self.settings.queue, text, "the directory says");
                }
            }
            let more = messages.len() < BATCH_MESSAGES_MAX && bytes < BATCH_BYTES_MAX;
            next = if more { listener.try_next()? } else { None };
        }
        let some = !messages.is_empty();
        Ok(some.then(|| Batch { messages: messages.into(), done: 0, again_at: None }))
    }

    /// Publishes what is left of the batch, as far as it goes.
    async fn attempt(&self, session: &mut Session, log: &mut LogOnce) -> Result<(), BridgeFault> {
        let Some(batch) = &mut session.batch else { return Ok(()) };
        let channel = match &session.broker {
            Some(broker) => broker.channel,
            None => match self.open().await {
                Ok(broker) => session.broker.insert(broker).channel,
                Err(BridgeFault::CoreStopped(stopped)) => return Err(stopped.into()),
                Err(fault) => {
                    self.warn(log, &fault);
                    batch.again_at = Some(Instant::now() + session.backoff.next_wait());
                    return Ok(());
                }
            },
        };
        let (settings, messages) = (Arc::clone(&self.settings), Arc::clone(&batch.messages));
        let (from, body_bytes_max) = (batch.done, self.body_bytes_max);
        let publish = move |core: &mut Core| {
            publish_all(core, channel, &settings, &messages[from..], body_bytes_max)
        };
        let (attempt, promise) = self.core.begin(publish).await?;
        if attempt.done > 0 {
            // Somebody makes room: there may be more soon.
            session.backoff.reset();
            batch.done += attempt.done;
            session.unstored += 1;
            // It only fails when the store has: that is reported by the other end.
            let _ = session.to_store.send((promise, attempt.done as u64));
        }
        let delivered = attempt.done as u64 - attempt.dropped;
        self.counters.delivered.fetch_add(delivered, Relaxed);
        self.counters.not_delivered.fetch_add(attempt.dropped, Relaxed);
        if let Some(cause) = attempt.cause
            && session.log.is_new("messages are dropped")
        {
            let DeliverySettings { queue, exchange, .. } = &*self.settings;
            tracing::warn!(%queue, %exchange, %cause, "messages are dropped; the others are counted");
        }
        match attempt.refusal {
            Some(refusal) => {
                // A channel that is gone is not there the next time either.
                if !refusal.passes()
                    && let Some(InternalChannel { connection, .. }) = session.broker.take()
                {
                    self.core.call(move |core| core.detach(connection)).await?;
                }
                self.warn(log, &refusal.into());
                batch.again_at = Some(Instant::now() + session.backoff.next_wait());
            }
            None => {
                session.batch = None;
                if log.resolved() {
                    let DeliverySettings { queue, exchange, .. } = &*self.settings;
                    tracing::info!(%queue, %exchange, "the elastic queue is delivered again");
                }
            }
        }
        Ok(())
    }

    async fn open(&self) -> Result<InternalChannel, BridgeFault> {
        let (sender, effects) = unbounded_channel();
        let (user, settings) = (Arc::clone(&self.user), Arc::clone(&self.settings));
        let opened = self.core.call(move |core| {
            let DeliverySettings { queue, vhost, .. } = &*settings;
            let name = format!("delivery of elastic queue {queue}");
            let (user, protocol) = (&*user, "EQS 1");
            core.open_internal(
                InternalClient { user, vhost, local: "", name: &name, protocol },
                sender,
            )
        });
        let (connection, channel) = opened.await??;
        Ok(InternalChannel { connection, channel, effects })
    }
}

impl Session {
    fn new(
        listener: Listener,
        to_store: UnboundedSender<(Promise, u64)>,
        stored: UnboundedReceiver<u64>,
    ) -> Self {
        let (broker, batch, backoff, log) = (None, None, Backoff::new(), LogOnce::default());
        Self { listener, broker, batch, unstored: 0, to_store, stored, backoff, log }
    }

    /// Waits a moment for what is published, and says so.
    async fn end(&mut self) {
        let mut waiting = pin!(tokio::time::sleep(CLOSE_MAX));
        while self.unstored > 0 {
            tokio::select! {
                () = &mut waiting => return,
                stored = self.stored.recv() => match stored {
                    Some(messages) => self.listener.acknowledge(messages),
                    None => return,
                },
            }
            self.unstored -= 1;
        }
    }
}

/// Publishes in order, up to the first refusal, on the core's thread. Returns how far it got, with
/// the ticket of what it published.
fn publish_all(
    core: &mut Core,
    channel: ChannelId,
    settings: &DeliverySettings,
    messages: &[Outgoing],
    body_bytes_max: usize,
) -> (Attempt, Ticket) {
    let (mut attempt, mut ticket) = (Attempt::default(), Ticket::NONE);
    if !core.broker.accepts_publishes() {
        attempt.refusal = Some(PublishRefusal::Busy);
        return (attempt, ticket);
    }
    for message in messages {
        let routing_key = settings.routing_key.as_deref().unwrap_or(&message.routing_key);
        let published = match message.body.len() {
            value if value > body_bytes_max => {
                Err(PublishRefusal::TooLarge { value, limit: body_bytes_max })
            }
            _ => publish(core, channel, &settings.exchange, routing_key, message),
        };
        match published {
            Ok(promised) => ticket = ticket.join(promised),
            Err(cause @ (PublishRefusal::Unroutable { .. } | PublishRefusal::TooLarge { .. })) => {
                attempt.dropped += 1;
                attempt.cause = Some(cause);
            }
            Err(refusal) => {
                attempt.refusal = Some(refusal);
                break;
            }
        }
        attempt.done += 1;
    }
    (attempt, ticket)
}

/// Says of attempts in their order how many messages are safe.
async fn await_store(
    mut promises: UnboundedReceiver<(Promise, u64)>,
    reached: UnboundedSender<u64>,
) {
    while let Some((promise, messages)) = promises.recv().await {
        // The store failed, or the core stops: nothing is safe any more.
        if promise.kept().await.is_err() || reached.send(messages).is_err() {
            return;
        }
    }
}

/// Waits until the broker closes the connection; for ever if there is none.
async fn closed(broker: Option<&mut InternalChannel>) -> Result<BridgeFault, CoreStopped> {
    let Some(broker) = broker else { return std::future::pending().await };
    loop {
        let effect = broker.effects.recv().await.ok_or(CoreStopped)?;
        if let Effect::CloseConnection { reason, .. } = effect {
            return Ok(BridgeFault::Closed(reason.text()));
        }
    }
}
