//! Emptying and deleting queues.

use quelea_model::{QueueId, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use crate::access::Operation;
use crate::error::{NoSuchQueueId, QueueError, QueueInUse, ResourceError};
use crate::ids::ChannelId;
use crate::messaging::Purge;
use crate::reply::{Purged, QueueDeleted};
use crate::topology_changes::TopologyAction;

impl Broker {
    /// Purges a queue (queue.purge): ready messages go; unacknowledged ones stay.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn purge_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
    ) -> Result<Purged, QueueError> {
        let id = self.find_queue(channel, name, Operation::Read)?;
        self.note_queue_change(channel, id, TopologyAction::PurgeQueue);
        let (purged, left) = self.messaging.purge(id, now, Purge::Ready);
        self.work.spend(left);
        self.go_on_removing();
        Ok(purged)
    }

    /// Empties a queue of all but what AMQP clients have not settled: messages in flight through SQS
    /// and delayed ones go too.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn purge_queue_by_id(
        &mut self,
        now: Timestamp,
        id: QueueId,
    ) -> Result<Purged, NoSuchQueueId> {
        let queue = self.messaging.queues.get_mut(id).ok_or(NoSuchQueueId { queue: id })?;
        queue.purged_at = Some(now);
        let (purged, left) = self.messaging.purge(id, now, Purge::ReadyAndInvisible);
        self.work.spend(left);
        self.go_on_removing();
        Ok(purged)
    }

    /// Deletes a queue (queue.delete). A queue that is not there is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn delete_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<QueueDeleted, QueueError> {
        let id = match self.find_queue(channel, name, Operation::Configure) {
            Ok(id) => id,
            Err(ResourceError::NoSuchQueue(_)) => {
                return Ok(QueueDeleted { messages: 0, ticket: Ticket::NONE });
            }
            Err(error) => return Err(error.into()),
        };
        self.delete_found(channel, id, if_unused, if_empty, now)
    }

    fn delete_found(
        &mut self,
        channel: ChannelId,
        id: QueueId,
        if_unused: bool,
        if_empty: bool,
        now: Timestamp,
    ) -> Result<QueueDeleted, QueueError> {
        self.messaging.dispatch_before_decision(id, now);
        self.work.spend(self.messaging.take_steps());
        let Some(queue) = self.messaging.queues.get(id) else {
            return Ok(QueueDeleted { messages: 0, ticket: Ticket::NONE });
        };
        let problem = if if_unused && !queue.consumers.is_empty() {
            Some("in use")
        } else if if_empty && !queue.ready.is_empty() {
            Some("not empty")
        } else {
            None
        };
        if let Some(problem) = problem {
            let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
            return Err(QueueInUse { vhost, queue, problem }.into());
        }
        let messages = u32::try_from(queue.ready.len()).unwrap_or(u32::MAX);
        let keeps = queue.keeps_messages();
        self.note_queue_change(channel, id, TopologyAction::DeleteQueue);
        self.remove_queue(id);
        let ticket = self.messaging.topology_ticket(keeps);
        Ok(QueueDeleted { messages, ticket })
    }
}
