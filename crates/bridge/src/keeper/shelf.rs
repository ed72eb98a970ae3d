//! What is done on the core's thread for one relay's stream: its messages are published into the durable
//! queue, each once.

use std::sync::Arc;

use quelea_broker::{ChannelId, ConnectionId, DeclareQueueError, Effect, OpenError};
use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_net::{Core, InsideClient};
use quelea_store::Ticket;
use tokio::sync::mpsc::UnboundedSender;

use super::batch::Batch;
use super::ledger::{Ledger, Stored};
use crate::declare;
use crate::message::Outgoing;
use crate::publish::{Obstacle, publish};

/// A relay's way into the durable queue.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// The elastic queue.
    pub(crate) queue: Arc<str>,
    /// The durable queue.
    pub(crate) target: Arc<str>,
    pub(crate) connection: ConnectionId,
    channel: ChannelId,
}

/// Why there is no way in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShelfError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Declare(#[from] DeclareQueueError),
}

/// What came of an attempt to publish a batch.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// For each producer of the batch, in its order: all below are published.
    pub(crate) kept: Vec<(ClientId, MessageSeq)>,
    /// Messages that were published, and those that had been before.
    pub(crate) published: u64,
    pub(crate) repeated: u64,
    /// What stopped it; then the rest is for another attempt.
    pub(crate) obstacle: Option<Obstacle>,
}

impl Shelf {
    /// Opens it; a durable queue that is not there is declared.
    pub(crate) fn open(
        core: &mut Core,
        client: InsideClient<'_>,
        effects: UnboundedSender<Effect>,
        queue: Arc<str>,
        target: Arc<str>,
    ) -> Result<(Self, Ticket), ShelfError> {
        let (connection, channel) = core.open_inside(client, effects)?;
        let shelf = Self { queue, target, connection, channel };
        match shelf.declare(core) {
            Ok(ticket) => Ok((shelf, ticket)),
            Err(error) => {
                core.detach(connection);
                Err(error.into())
            }
        }
    }

    fn declare(&self, core: &mut Core) -> Result<Ticket, DeclareQueueError> {
        declare::durable_queue(core, self.channel, &self.target)
    }

    /// Publishes what of the batch is not published, in order, up to the first obstacle. What was is
    /// safe when the store has reached the ticket.
    pub(crate) fn publish(
        &self,
        core: &mut Core,
        ledger: &mut Ledger,
        batch: &Batch,
    ) -> (Attempt, Ticket) {
        let (mut attempt, mut ticket) = (Attempt::default(), Ticket::NONE);
        if !core.broker.accepts_publishes() {
            attempt.obstacle = Some(Obstacle::Busy);
            return (attempt, ticket);
        }
        for run in &batch.runs {
            let begin = run.first.0;
            let known = ledger.get(&self.target, run.producer);
            let mut stored = known.unwrap_or(Stored { below: run.first, ticket: Ticket::NONE });
            let before = stored.below.0.saturating_sub(begin).min(run.messages.len() as u64);
            attempt.repeated += before;
            for (index, message) in run.messages.iter().enumerate().skip(before as usize) {
                let sequence = MessageSeq(begin + index as u64);
                match self.publish_one(core, run.producer, sequence, message) {
                    Ok(promised) => {
                        stored.below = MessageSeq(sequence.0 + 1);
                        stored.ticket = stored.ticket.join(promised);
                        attempt.published += 1;
                    }
                    Err(obstacle) => {
                        attempt.obstacle = Some(obstacle);
                        break;
                    }
                }
            }
            ticket = ticket.join(stored.ticket);
            ledger.set(&self.target, run.producer, stored);
            attempt.kept.push((run.producer, stored.below));
            if attempt.obstacle.is_some() {
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
        message: &bytes::Bytes,
    ) -> Result<Ticket, Obstacle> {
        let message = Outgoing::new(&self.queue, producer, sequence, message);
        match publish(core, self.channel, "", &self.target, &message) {
            // The queue was deleted: it is declared anew, once.
            Err(Obstacle::Unroutable { .. }) if self.declare(core).is_ok() => {
                publish(core, self.channel, "", &self.target, &message)
            }
            published => published,
        }
    }
}
