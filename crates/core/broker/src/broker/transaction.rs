//! The end of an AMQP transaction: many operations, recovered as a whole or not at all.

use std::collections::BTreeMap;

use quelea_model::limits::TX_TARGETS_MAX;
use quelea_model::{Message, QueueId, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use super::publish::PublishRoute;
use crate::error::CommitError;
use crate::ids::ChannelId;
use crate::messaging::Messaging;

impl Broker {
    /// Checks whether all of a transaction's messages would be taken, if they were published now,
    /// those where [`Broker::check_publish`] has found that they go with what it returned: between
    /// this and the end of the transaction nothing may happen that is not part of it. A queue that
    /// refuses what is too much (`x-overflow`) has to have room for all of them at once.
    ///
    /// # Errors
    /// [`CommitError`]; nothing has changed then.
    pub fn check_commit<'a>(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        messages: impl Iterator<Item = (&'a Message, Option<&'a PublishRoute>)>,
    ) -> Result<(), CommitError> {
        let mut coming: BTreeMap<QueueId, (u64, u64)> = BTreeMap::new();
        let mut targets = 0;
        for (message, route) in messages {
            let found;
            let route = match route {
                Some(route) => {
                    self.check_properties(channel, message.properties())?;
                    route
                }
                None => {
                    let (exchange, key) = (message.exchange(), message.routing_key());
                    found = self.check_publish(channel, exchange, key, message.properties())?;
                    &found
                }
            };
            targets += route.len();
            if targets > TX_TARGETS_MAX {
                return Err(CommitError::TooManyTargets { found: targets, max: TX_TARGETS_MAX });
            }
            let queues = route.queues().iter();
            for id in queues.filter(|id| {
                self.messaging.queues.get(**id).is_some_and(|queue| queue.refuses_overflow())
            }) {
                let (count, bytes) = coming.entry(*id).or_default();
                *count += 1;
                *bytes += message.body().len() as u64;
            }
        }
        for (id, (count, bytes)) in coming {
            if !self.messaging.has_room(id, now, count, bytes)
                && let Some(queue) = self.messaging.queues.get(id)
            {
                let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
                return Err(CommitError::QueueFull { vhost, queue, count, bytes });
            }
        }
        Ok(())
    }

    /// What is published and settled from here to [`Broker::end_atomic`] goes into the log as one.
    /// Call nothing but `publish`, `ack`, `nack` and `reject` in between.
    pub fn begin_atomic(&mut self) {
        let Messaging { queues, log, .. } = &mut self.messaging;
        // What was settled before is not part of it.
        queues.flush_acks(log);
        log.begin_transaction();
    }

    /// Ends what [`Broker::begin_atomic`] began; commit-ok leaves when the ticket is reached.
    pub fn end_atomic(&mut self) -> Ticket {
        let Messaging { queues, log, .. } = &mut self.messaging;
        queues.flush_acks(log);
        let durability = log.end_transaction();
        self.messaging.ticket(durability)
    }
}
