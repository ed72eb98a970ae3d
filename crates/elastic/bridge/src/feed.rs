//! From an exchange into an elastic queue: a durable queue is bound to the exchange, consumed, and what
//! it has is published to the elastic queue. A message is acknowledged to the durable queue when the
//! elastic queue has acknowledged it, as that queue means it.
//!
//! Whatever goes wrong ends the consumer, which gives back what is under way; after a backoff all of it
//! begins anew. So a message may come into the elastic queue twice, and is never lost on the way.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use quelea_broker::{ChannelId, ConnectionId, Consume, Effect};
use quelea_elastic_client::{Client, Error, MessageSeq, Producer, PublishError};
use quelea_node::{Backoff, Core, CoreHandle, CoreStopped, InternalClient};
use quelea_store::Ticket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::counters::BridgeCounters;
use crate::declare;
use crate::front::{CLOSE_MAX, RELAY_MAX, stopped};
use crate::message::{Incoming, Unfit};
use crate::settings::FeedSettings;
use crate::trouble::{Told, Trouble};

/// Deliveries that are looked at before the broker is told anything.
const BATCH_MESSAGES_MAX: usize = 1_024;

/// An exchange and its elastic queue.
pub(crate) struct Feed {
    pub(crate) core: CoreHandle,
    pub(crate) client: Client,
    pub(crate) settings: Arc<FeedSettings>,
    pub(crate) user: Arc<str>,
    pub(crate) counters: Arc<BridgeCounters>,
}

/// A consumer of the durable queue.
struct Consumer {
    connection: ConnectionId,
    channel: ChannelId,
    effects: UnboundedReceiver<Effect>,
}

/// Messages on their way, oldest first. There are no more than the prefetch.
#[derive(Default)]
struct Flow {
    /// For which the producer has no room yet, with their delivery tags.
    waiting: VecDeque<(u64, Incoming)>,
    /// That are published and not acknowledged.
    published: VecDeque<(MessageSeq, u64)>,
    /// Each kind of message that is not fed is told once.
    told: Told,
}

/// What the durable queue is told.
#[derive(Debug, Default, PartialEq)]
struct Settled {
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
        let (mut backoff, mut told) = (Backoff::new(), Told::default());
        loop {
            let trouble = match self.live(&mut backoff, &mut told, &mut stop).await {
                Ok(()) | Err(Trouble::CoreStopped(_)) => return,
                Err(trouble) => trouble,
            };
            let reason = trouble.to_string();
            if told.is_new(&reason) {
                let FeedSettings { exchange, queue, through, .. } = &*self.settings;
                tracing::warn!(%exchange, %through, %queue, reason, "an exchange does not feed for now");
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(backoff.next_wait()) => {}
            }
        }
    }

    /// From the elastic queue's relay to the first trouble, or to the stop.
    async fn live(
        &self,
        backoff: &mut Backoff,
        told: &mut Told,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), Trouble> {
        let queue = self.settings.queue.to_string();
        let opened = tokio::select! {
            biased;
            () = stopped(stop) => return Ok(()),
            opened = timeout(RELAY_MAX, self.client.producer(queue)) => opened,
        };
        let producer = opened.map_err(|_| Trouble::NoRelay(RELAY_MAX.as_secs()))??;
        let mut consumer = self.consume().await?;
        let served = self.serve(&mut consumer, &producer, backoff, told, stop).await;
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
    async fn consume(&self) -> Result<Consumer, Trouble> {
        let (sender, effects) = unbounded_channel();
        let (user, settings) = (Arc::clone(&self.user), Arc::clone(&self.settings));
        let consuming =
            self.core.promise(move |core| match begin(core, &user, &settings, sender) {
                Ok((connection, channel, ticket)) => (Ok((connection, channel)), ticket),
                Err(trouble) => (Err(trouble), Ticket::NONE),
            });
        let (connection, channel) = consuming.await??;
        Ok(Consumer { connection, channel, effects })
    }

    async fn serve(
        &self,
        consumer: &mut Consumer,
        producer: &Producer,
        backoff: &mut Backoff,
        told: &mut Told,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), Trouble> {
        let (mut flow, mut known) = (Flow::default(), MessageSeq(0));
        loop {
            let mut settled = Settled::default();
            tokio::select! {
                biased;
                () = stopped(stop) => return self.end(consumer, producer, flow).await,
                acknowledged = producer.acknowledged_after(known), if !flow.published.is_empty() => {
                    known = acknowledged?;
                    settled.below = self.acknowledged(&mut flow, known);
                    self.went_well(backoff, told);
                }
                // While the producer has no room nothing more is looked at.
                effect = consumer.effects.recv(), if flow.waiting.is_empty() => {
                    self.take(effect.ok_or(CoreStopped)?, consumer, &mut flow, &mut settled)?;
                }
            }
            self.publish(producer, &mut flow, &mut settled)?;
            self.settle(consumer, settled).await?;
        }
    }

    /// A delivery, and those that are here behind it.
    fn take(
        &self,
        first: Effect,
        consumer: &mut Consumer,
        flow: &mut Flow,
        settled: &mut Settled,
    ) -> Result<(), Trouble> {
        let mut next = Some(first);
        while let Some(effect) = next {
            match effect {
                Effect::Deliver { delivery_tag, message, .. } => {
                    match Incoming::new(&self.settings.queue, &message) {
                        Ok(incoming) => flow.waiting.push_back((delivery_tag, incoming)),
                        Err(Unfit::Repeated) => {
                            self.counters.not_fed.fetch_add(1, Relaxed);
                            settled.repeated.push(delivery_tag);
                        }
                        Err(Unfit::Parts(error)) => {
                            self.refuse(delivery_tag, error, &mut flow.told, settled);
                        }
                    }
                }
                Effect::ConsumerCancelled { .. } => {
                    return Err(Trouble::QueueGone(self.settings.through.to_string()));
                }
                Effect::CloseConnection { reason, .. } => {
                    return Err(Trouble::Closed(reason.text()));
                }
                _ => {}
            }
            let more = flow.waiting.len() < BATCH_MESSAGES_MAX;
            next = if more { consumer.effects.try_recv().ok() } else { None };
        }
        Ok(())
    }

    /// Publishes what the producer has room for.
    fn publish(
        &self,
        producer: &Producer,
        flow: &mut Flow,
        settled: &mut Settled,
    ) -> Result<(), Trouble> {
        while let Some((tag, message)) = flow.waiting.pop_front() {
            match message.publish(producer) {
                Ok(sequence) => flow.published.push_back((sequence, tag)),
                Err(Error::Publish(PublishError::Full { .. })) => {
                    flow.waiting.push_front((tag, message));
                    return Ok(());
                }
                Err(Error::Publish(error @ PublishError::Message(_))) => {
                    self.refuse(tag, error, &mut flow.told, settled);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn refuse(&self, tag: u64, error: impl Display, told: &mut Told, settled: &mut Settled) {
        if told.is_new("a message is no message of an elastic queue") {
            let FeedSettings { queue, through, .. } = &*self.settings;
            tracing::warn!(%queue, %through, %error, "messages are not fed; the others are counted");
        }
        self.counters.not_fed.fetch_add(1, Relaxed);
        settled.unfit.push(tag);
    }

    /// The tag up to which all is done now.
    fn acknowledged(&self, flow: &mut Flow, below: MessageSeq) -> Option<u64> {
        let (count, tag) = flow.acknowledge(below);
        self.counters.fed.fetch_add(count as u64, Relaxed);
        tag
    }

    fn went_well(&self, backoff: &mut Backoff, told: &mut Told) {
        backoff.reset();
        if told.is_over() {
            let FeedSettings { exchange, queue, through, .. } = &*self.settings;
            tracing::info!(%exchange, %through, %queue, "the exchange feeds again");
        }
    }

    async fn settle(&self, consumer: &Consumer, settled: Settled) -> Result<(), CoreStopped> {
        if settled == Settled::default() {
            return Ok(());
        }
        let Consumer { connection, channel, .. } = *consumer;
        let tell = move |core: &mut Core| {
            let now = core.now();
            // A tag is unknown if the connection was closed meanwhile: all of it went back then.
            for tag in settled.unfit {
                let _ = core.broker.reject(now, channel, tag, false);
            }
            for tag in settled.repeated {
                let _ = core.broker.ack(now, channel, tag, false);
            }
            if let Some(last) = settled.below {
                let _ = core.broker.ack(now, channel, last, true);
            }
            core.broker.output_drained(now, connection, usize::MAX);
        };
        self.core.post(tell).await
    }

    /// Waits a moment for what is published: what is acknowledged need not come again.
    async fn end(
        &self,
        consumer: &Consumer,
        producer: &Producer,
        mut flow: Flow,
    ) -> Result<(), Trouble> {
        let Some((last, _)) = flow.published.back().copied() else { return Ok(()) };
        let all = producer.acknowledged_below(MessageSeq(last.0 + 1));
        let _ = timeout(CLOSE_MAX, all).await;
        let below = self.acknowledged(&mut flow, producer.done_below());
        Ok(self.settle(consumer, Settled { below, ..Settled::default() }).await?)
    }
}

impl Flow {
    /// The elastic queue has all below: how many that are, and the last one's tag.
    fn acknowledge(&mut self, below: MessageSeq) -> (usize, Option<u64>) {
        let count = self.published.partition_point(|(sequence, _)| *sequence < below);
        (count, self.published.drain(..count).next_back().map(|(_, tag)| tag))
    }
}

/// On the core's thread: the connection, the durable queue, its bindings and the consumer.
fn begin(
    core: &mut Core,
    user: &str,
    settings: &FeedSettings,
    effects: UnboundedSender<Effect>,
) -> Result<(ConnectionId, ChannelId, Ticket), Trouble> {
    let FeedSettings { vhost, exchange, binding_keys, through, queue, prefetch } = settings;
    let name = format!("feed of elastic queue {queue}");
    let client = InternalClient { user, vhost, local: "", name: &name, protocol: "EQS 1" };
    let (connection, channel) = core.open_internal(client, effects)?;
    let mut consume = || -> Result<Ticket, Trouble> {
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
        Ok(ticket) => Ok((connection, channel, ticket)),
        Err(trouble) => {
            core.detach(connection);
            Err(trouble)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_durable_queue_is_told_of_what_the_elastic_queue_has_and_no_more() {
        let mut flow = Flow::default();
        // The messages between were not fed.
        flow.published.extend([(0, 1), (1, 4), (2, 5)].map(|(at, tag)| (MessageSeq(at), tag)));
        assert_eq!(flow.acknowledge(MessageSeq(0)), (0, None));
        assert_eq!(flow.acknowledge(MessageSeq(2)), (2, Some(4)));
        assert_eq!(flow.acknowledge(MessageSeq(2)), (0, None));
        assert_eq!(flow.acknowledge(MessageSeq(9)), (1, Some(5)));
        assert!(flow.published.is_empty());
    }
}
