//! What is done on the core's thread for one relay's stream: its messages are published into the durable
//! queue, each once.

use std::sync::Arc;

use bytes::Bytes;
use quelea_broker::{ChannelId, ConnectionId, DeclareQueueError, Effect, OpenError};
use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_node::{Core, InternalClient};
use quelea_store::Ticket;
use tokio::sync::mpsc::UnboundedSender;

use super::batch::{Batch, Run};
use super::ledger::{Ledger, Stored};
use crate::declare::{self, NameChecked};
use crate::message::Outgoing;
use crate::publish::{PublishRefusal, publish};

/// A relay's way into the durable queue.
#[derive(Clone, Debug)]
pub(crate) struct DurablePublisher {
    /// The elastic queue.
    pub(crate) queue: Arc<str>,
    /// The durable queue.
    pub(crate) target: Arc<str>,
    pub(crate) connection: ConnectionId,
    channel: ChannelId,
}

/// Why there is no way in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublisherError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Declare(#[from] DeclareQueueError),
}

impl NameChecked for PublisherError {
    fn is_name_being_checked(&self) -> bool {
        matches!(self, Self::Declare(error) if error.is_name_being_checked())
    }
}

/// What came of an attempt to publish a batch.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Where the next one goes on.
    pub(crate) at: Position,
    /// The runs that it brought to their end, in order: the producer, and one past its last message.
    pub(crate) kept: Vec<(ClientId, MessageSeq)>,
    /// Messages that were published, and those that had been before.
    pub(crate) published: u64,
    pub(crate) repeated: u64,
    /// What stopped it; then the rest is for another attempt.
    pub(crate) refusal: Option<PublishRefusal>,
}

/// How far a batch is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Runs that are done, and messages of the one behind them.
    runs: usize,
    messages: usize,
}

impl Attempt {
    const fn from(at: Position) -> Self {
        Self { at, kept: Vec::new(), published: 0, repeated: 0, refusal: None }
    }

    /// Publishes what is left of a run, but for what is stored.
    fn publish(
        &mut self,
        run: &Run,
        stored: &mut Stored,
        mut publish: impl FnMut(MessageSeq, &Bytes) -> Result<Ticket, PublishRefusal>,
    ) {
        while let Some(message) = run.messages.get(self.at.messages) {
            let sequence = run.sequence(self.at.messages);
            if let Some(end) = stored.end_of(sequence) {
                let before =
                    ((end.0 - sequence.0) as usize).min(run.messages.len() - self.at.messages);
                self.repeated += before as u64;
                self.at.messages += before;
                continue;
            }
            match publish(sequence, message) {
                Ok(ticket) => stored.add(sequence, ticket),
                Err(refusal) => {
                    self.refusal = Some(refusal);
                    return;
                }
            }
            self.published += 1;
            self.at.messages += 1;
        }
        self.kept.push((run.producer, run.sequence(run.messages.len())));
        self.at = Position { runs: self.at.runs + 1, messages: 0 };
    }
}

impl DurablePublisher {
    /// Opens it; a durable queue that is not there is declared.
    pub(crate) fn open(
        core: &mut Core,
        client: InternalClient<'_>,
        effects: UnboundedSender<Effect>,
        queue: Arc<str>,
        target: Arc<str>,
    ) -> Result<(Self, Ticket), PublisherError> {
        let (connection, channel) = core.open_internal(client, effects)?;
        let publisher = Self { queue, target, connection, channel };
        match publisher.declare(core) {
            Ok(ticket) => Ok((publisher, ticket)),
            Err(error) => {
                core.detach(connection);
                Err(error.into())
            }
        }
    }

    fn declare(&self, core: &mut Core) -> Result<Ticket, DeclareQueueError> {
        declare::durable_queue(core, self.channel, &self.target)
    }

    /// Publishes from there on what of the batch is not published, in order, up to the first refusal.
    /// What was is safe when the store has reached the ticket.
    pub(crate) fn publish(
        &self,
        core: &mut Core,
        ledger: &mut Ledger,
        batch: &Batch,
        from: Position,
    ) -> (Attempt, Ticket) {
        let (mut attempt, mut ticket) = (Attempt::from(from), Ticket::NONE);
        if !core.broker.accepts_publishes() {
            attempt.refusal = Some(PublishRefusal::Busy);
            return (attempt, ticket);
        }
        for run in &batch.runs[from.runs..] {
            let stored = ledger.of(&self.target, run.producer);
            attempt.publish(run, stored, |sequence, message| {
                self.publish_one(core, run.producer, sequence, message)
            });
            ticket = ticket.join(stored.ticket);
            if attempt.refusal.is_some() {
                break;
            }
        }
        (attempt, ticket)
    }

    fn publish_one(
        &self,
        core: &mut Core,
        producer: ClientId,
        sequence: MessageSeq,
        message: &Bytes,
    ) -> Result<Ticket, PublishRefusal> {
        let message = Outgoing::new(&self.queue, producer, sequence, message);
        match publish(core, self.channel, "", &self.target, &message) {
            // The queue was deleted: it is declared anew, once.
            Err(PublishRefusal::Unroutable { .. }) => {
                self.declare(core)?;
                publish(core, self.channel, "", &self.target, &message)
            }
            published => published,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVING: ClientId = ClientId(9);

    fn run(sequences: std::ops::Range<u64>) -> Run {
        let messages = sequences.clone().map(|sequence| sequence.to_string().into()).collect();
        Run { producer: MOVING, first: MessageSeq(sequences.start), messages }
    }

    /// A durable queue that refuses when it has so many messages.
    #[derive(Default)]
    struct Queue {
        messages: Vec<u64>,
        limit: Option<usize>,
        stored: Stored,
    }

    impl Queue {
        /// Publishes one run from there on.
        fn bring(&mut self, run: &Run, from: Position) -> Attempt {
            let mut attempt = Attempt::from(from);
            let Self { messages, limit, stored } = self;
            attempt.publish(run, stored, |sequence, message| {
                if limit.is_some_and(|limit| messages.len() >= limit) {
                    return Err(PublishRefusal::Full);
                }
                assert_eq!(*message, sequence.0.to_string());
                messages.push(sequence.0);
                Ok(Ticket::NONE)
            });
            attempt
        }

        /// Publishes a run that meets no refusal; what is acknowledged of it, and how much was there before.
        fn take(&mut self, sequences: std::ops::Range<u64>) -> (u64, u64) {
            let run = run(sequences);
            let attempt = self.bring(&run, Position::default());
            assert!(attempt.refusal.is_none());
            assert_eq!(attempt.at, Position { runs: 1, messages: 0 });
            assert_eq!(attempt.published + attempt.repeated, run.messages.len() as u64);
            let [(MOVING, below)] = attempt.kept[..] else { panic!("{:?}", attempt.kept) };
            (below.0, attempt.repeated)
        }
    }

    #[test]
    fn a_moving_producers_messages_are_published_once_in_either_order() {
        let mut queue = Queue::default();
        assert_eq!(queue.take(0..50), (50, 0));
        assert_eq!(queue.take(50..100), (100, 0));
        assert_eq!(queue.take(100..150), (150, 0));
        assert_eq!(queue.messages, Vec::from_iter(0..150));

        let mut queue = Queue::default();
        assert_eq!(queue.take(0..50), (50, 0));
        // The relay to which it moved is ahead of the one that it left.
        assert_eq!(queue.take(100..150), (150, 0));
        assert_eq!(queue.take(50..100), (100, 0));
        assert_eq!(queue.messages, Vec::from_iter((0..50).chain(100..150).chain(50..100)));
        // A third relay brings all of it again.
        assert_eq!(queue.take(20..160), (160, 130));
        assert_eq!(queue.messages.len(), 160);
    }

    #[test]
    fn what_comes_again_over_a_hole_fills_it_and_nothing_else() {
        let mut queue = Queue::default();
        queue.take(100..150);
        assert_eq!(queue.take(50..149), (149, 49));
        assert_eq!(queue.messages, Vec::from_iter((100..150).chain(50..100)));
    }

    #[test]
    fn a_run_goes_on_where_it_stopped_and_is_done_when_published() {
        let mut queue = Queue { limit: Some(55), ..Queue::default() };
        queue.take(100..150);
        let run = run(90..160);
        let stopped = queue.bring(&run, Position::default());
        assert!(matches!(stopped.refusal, Some(PublishRefusal::Full)));
        assert_eq!((&stopped.kept[..], stopped.published, stopped.repeated), (&[][..], 5, 0));
        assert_eq!(stopped.at, Position { runs: 0, messages: 5 });
        queue.limit = None;
        let done = queue.bring(&run, stopped.at);
        assert_eq!(done.kept, [(MOVING, MessageSeq(160))]);
        assert_eq!((done.published, done.repeated), (15, 50));
        assert_eq!(queue.messages.len(), 70);
    }
}
