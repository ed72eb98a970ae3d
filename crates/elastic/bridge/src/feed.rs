//! From an exchange into an elastic queue: a durable queue is bound to the exchange, consumed, and what
//! it has is published to the elastic queue. A message is acknowledged to the durable queue when the
//! elastic queue has acknowledged it, as that queue means it.
//!
//! Whatever goes wrong ends the consumer, which requeues what is under way; after a backoff all of it
//! begins anew. So a message may come into the elastic queue twice, and is never lost on the way.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use quelea_broker::{ChannelId, ConnectionId, Consume, Effect};
use quelea_elastic_client::{Client, Error, MessageSeq, Producer, PublishError};
use quelea_node::{
    Backoff, Core, CoreHandle, CoreStopped, InternalChannel, InternalClient, LogOnce, stopped,
    stops_before_retry,
};
use quelea_store::Ticket;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::counters::BridgeCounters;
use crate::declare;
use crate::fault::BridgeFault;
use crate::message::{Incoming, Unfeedable};
use crate::settings::FeedSettings;
use crate::stop::{CLOSE_MAX, opened};

/// Deliveries that are looked at before the broker is answered.
const BATCH_MESSAGES_MAX: usize = 1_024;

/// An exchange and its elastic queue.
pub(crate) struct Feed {
    pub(crate) core: CoreHandle,
    pub(crate) client: Client,
    pub(crate) settings: Arc<FeedSettings>,
    pub(crate) user: Arc<str>,
    pub(crate) counters: Arc<BridgeCounters>,
}

/// Messages on their way, oldest first. There are no more than the prefetch.
#[derive(Default)]
struct InFlight {
    /// For which the producer has no room yet, with their delivery tags.
    waiting: VecDeque<(u64, Incoming)>,
    /// That are published and not acknowledged.
    published: VecDeque<(MessageSeq, u64)>,
    /// Each kind of message that is not fed is logged once.
    log: LogOnce,
}

/// What the durable queue is to settle.
#[derive(Debug, Default, PartialEq)]
struct Settlement {
    /// All up to this tag are done.
    below: Option<u64>,
    /// So are these: they came from this elastic queue.
    repeated: Vec<u64>,
    /// No elastic queue can carry these.
    unfit: Vec<u64>,
}

impl Feed {
    /// Runs until `stop` changes or the core stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let (mut backoff, mut log) = (Backoff::new(), LogOnce::default());
        loop {
            let fault = match self.live(&mut backoff, &mut log, &mut stop).await {
                Ok(()) | Err(BridgeFault::CoreStopped(_)) => return,
                Err(fault) => fault,
            };
            let reason = fault.to_string();
            if log.is_new(&reason) {
                let FeedSettings { exchange, queue, through, .. } = &*self.settings;
                tracing::warn!(%exchange, %through, %queue, reason, "an exchange does not feed for now");
            }
            if stops_before_retry(&mut stop, &mut backoff).await {
                return;
            }
        }
    }

    /// Feeds the elastic queue's relay until the first fault, or the stop.
    async fn live(
        &self,
        backoff: &mut Backoff,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), BridgeFault> {
        let queue = self.settings.queue.to_string();
        let Some(producer) = opened(stop, self.client.producer(queue)).await? else {
            return Ok(());
        };
        let mut consumer = self.consume().await?;
        let served = self.serve(&mut consumer, &producer, backoff, log, stop).await;
        let connection = consumer.connection;
        // What is not acknowledged goes back to the durable queue.
        let detached = self.core.call(move |core| core.detach(connection)).await;
        served?;
        detached?;
        // All of it is acknowledged, or it is given up: nobody waits for it here.
        let _ = timeout(CLOSE_MAX, producer.close()).await;
        Ok(())
    }

    /// Declares, binds and consumes the durable queue.
    async fn consume(&self) -> Result<InternalChannel, BridgeFault> {
        let (sender, effects) = unbounded_channel();
        let consuming = declare::when_checked(&self.core, || {
            let (user, settings) = (Arc::clone(&self.user), Arc::clone(&self.settings));
            let sender = sender.clone();
            move |core: &mut Core| begin(core, &user, &settings, sender)
        });
        let (connection, channel) = consuming.await??;
        Ok(InternalChannel { connection, channel, effects })
    }

    async fn serve(
        &self,
        consumer: &mut InternalChannel,
        producer: &Producer,
        backoff: &mut Backoff,
        log: &mut LogOnce,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), BridgeFault> {
        let (mut in_flight, mut known) = (InFlight::default(), MessageSeq(0));
        loop {
            let mut settlement = Settlement::default();
            tokio::select! {
                biased;
                () = stopped(stop) => return self.end(consumer, producer, in_flight).await,
                acknowledged = producer.acknowledged_after(known), if !in_flight.published.is_empty() => {
                    known = acknowledged?;
                    settlement.below = self.acknowledged(&mut in_flight, known);
                    self.recovered(backoff, log);
                }
                // While the producer has no room nothing more is looked at.
                effect = consumer.effects.recv(), if in_flight.waiting.is_empty() => {
                    self.take(effect.ok_or(CoreStopped)?, consumer, &mut in_flight, &mut settlement)?;
                }
            }
            self.publish(producer, &mut in_flight, &mut settlement)?;
            self.settle(consumer, settlement).await?;
        }
    }

    /// Takes a delivery, and those that are here behind it.
    fn take(
        &self,
        first: Effect,
        consumer: &mut InternalChannel,
        in_flight: &mut InFlight,
        settlement: &mut Settlement,
    ) -> Result<(), BridgeFault> {
        let mut next = Some(first);
        while let Some(effect) = next {
            match effect {
                Effect::Deliver { delivery_tag, message, .. } => {
                    match Incoming::new(&self.settings.queue, &message) {
                        Ok(incoming) => in_flight.waiting.push_back((delivery_tag, incoming)),
                        Err(Unfeedable::Repeated) => {
                            self.counters.not_fed.fetch_add(1, Relaxed);
                            settlement.repeated.push(delivery_tag);
                        }
                        Err(Unfeedable::Parts(error)) => {
                            self.refuse(delivery_tag, error, &mut in_flight.log, settlement);
                        }
                    }
                }
                Effect::ConsumerCancelled { .. } => {
                    return Err(BridgeFault::QueueGone(self.settings.through.to_string()));
                }
                Effect::CloseConnection { reason, .. } => {
                    return Err(BridgeFault::Closed(reason.text()));
                }
                _ => {}
            }
            let more = in_flight.waiting.len() < BATCH_MESSAGES_MAX;
            next = if more { consumer.effects.try_recv().ok() } else { None };
        }
        Ok(())
    }

    /// Publishes what the producer has room for.
    fn publish(
        &self,
        producer: &Producer,
        in_flight: &mut InFlight,
        settlement: &mut Settlement,
    ) -> Result<(), BridgeFault> {
        while let Some((tag, message)) = in_flight.waiting.pop_front() {
            match message.publish(producer) {
                Ok(sequence) => in_flight.published.push_back((sequence, tag)),
                Err(Error::Publish(PublishError::Full { .. })) => {
                    in_flight.waiting.push_front((tag, message));
                    return Ok(());
                }
                Err(Error::Publish(error @ PublishError::Message(_))) => {
                    self.refuse(tag, error, &mut in_flight.log, settlement);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn refuse(
        &self,
        tag: u64,
        error: impl Display,
        log: &mut LogOnce,
        settlement: &mut Settlement,
    ) {
        if log.is_new("a message is no message of an elastic queue") {
            let FeedSettings { queue, through, .. } = &*self.settings;
            tracing::warn!(%queue, %through, %error, "messages are not fed; the others are counted");
        }
        self.counters.not_fed.fetch_add(1, Relaxed);
        settlement.unfit.push(tag);
    }

    /// Counts what the elastic queue has, which is all below, as fed. Returns the tag up to which
    /// all is done now.
    fn acknowledged(&self, in_flight: &mut InFlight, below: MessageSeq) -> Option<u64> {
        let (count, tag) = in_flight.acknowledge(below);
        self.counters.fed.fetch_add(count as u64, Relaxed);
        tag
    }

    fn recovered(&self, backoff: &mut Backoff, log: &mut LogOnce) {
        backoff.reset();
        if log.resolved() {
            let FeedSettings { exchange, queue, through, .. } = &*self.settings;
            tracing::info!(%exchange, %through, %queue, "the exchange feeds again");
        }
    }

    async fn settle(
        &self,
        consumer: &InternalChannel,
        settlement: Settlement,
    ) -> Result<(), CoreStopped> {
        if settlement == Settlement::default() {
            return Ok(());
        }
        let InternalChannel { connection, channel, .. } = *consumer;
        let settle = move |core: &mut Core| {
            let now = core.now();
            // A tag is unknown if the connection was closed meanwhile: all of it went back then.
            for tag in settlement.unfit {
                let _ = core.broker.reject(now, channel, tag, false);
            }
            for tag in settlement.repeated {
                let _ = core.broker.ack(now, channel, tag, false);
            }
            if let Some(last) = settlement.below {
                let _ = core.broker.ack(now, channel, last, true);
            }
            core.broker.output_drained(now, connection, usize::MAX);
        };
        self.core.post(settle).await
    }

    /// Waits a moment for what is published: what is acknowledged need not come again.
    async fn end(
        &self,
        consumer: &InternalChannel,
        producer: &Producer,
        mut in_flight: InFlight,
    ) -> Result<(), BridgeFault> {
        let Some((last, _)) = in_flight.published.back().copied() else { return Ok(()) };
        let all = producer.acknowledged_below(MessageSeq(last.0 + 1));
        let _ = timeout(CLOSE_MAX, all).await;
        let below = self.acknowledged(&mut in_flight, producer.done_below());
        Ok(self.settle(consumer, Settlement { below, ..Settlement::default() }).await?)
    }
}

impl InFlight {
    /// Takes out all below, which the elastic queue has. Returns how many that are, and the last
    /// one's tag.
    fn acknowledge(&mut self, below: MessageSeq) -> (usize, Option<u64>) {
        let count = self.published.partition_point(|(sequence, _)| *sequence < below);
        (count, self.published.drain(..count).next_back().map(|(_, tag)| tag))
    }
}

/// Opens, on the core's thread, the connection, the durable queue, its bindings and the consumer.
fn begin(
    core: &mut Core,
    user: &str,
    settings: &FeedSettings,
    effects: UnboundedSender<Effect>,
) -> Result<((ConnectionId, ChannelId), Ticket), BridgeFault> {
    let FeedSettings { vhost, exchange, binding_keys, through, queue, prefetch } = settings;
    let name = format!("feed of elastic queue {queue}");
    let client = InternalClient { user, vhost, local: "", name: &name, protocol: "EQS 1" };
    let (connection, channel) = core.open_internal(client, effects)?;
    let mut consume = || -> Result<Ticket, BridgeFault> {
        let declared = declare::durable_queue(core, channel, through)?;
        // The default exchange has all queues bound already.
        let keys = binding_keys.iter().filter(|_| !exchange.is_empty());
        let bound = declare::bindings(core, channel, through, exchange, keys)?;
        let now = core.now();
        core.broker.set_prefetch(now, channel, *prefetch, false);
        let consume = Consume { queue: through.to_string(), ..Consume::default() };
        core.broker.consume(now, channel, &consume)?;
        Ok(declared.join(bound))
    };
    match consume() {
        Ok(ticket) => Ok(((connection, channel), ticket)),
        Err(fault) => {
            core.detach(connection);
            Err(fault)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_elastic_queue_has_is_acknowledged() {
        let mut in_flight = InFlight::default();
        // The messages between were not fed.
        in_flight.published.extend([(0, 1), (1, 4), (2, 5)].map(|(at, tag)| (MessageSeq(at), tag)));
        assert_eq!(in_flight.acknowledge(MessageSeq(0)), (0, None));
        assert_eq!(in_flight.acknowledge(MessageSeq(2)), (2, Some(4)));
        assert_eq!(in_flight.acknowledge(MessageSeq(2)), (0, None));
        assert_eq!(in_flight.acknowledge(MessageSeq(9)), (1, Some(5)));
        assert!(in_flight.published.is_empty());
    }
}
