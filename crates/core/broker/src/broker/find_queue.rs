//! Which queue a name stands for, and whether this connection may use it so.

use quelea_model::QueueId;

use super::Broker;
use crate::access::Operation;
use crate::error::{NoQueueDeclared, NoSuchQueue, QueueLocked, ResourceError, ResourceKind};
use crate::ids::{ChannelId, ConnectionId};
use crate::queues::queue::Queue;

impl Broker {
    /// Returns the queue of that name, or for an empty one the channel's last declared queue, with
    /// the permission for the operation checked, and that it is nobody else's exclusively.
    pub(super) fn find_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
        operation: Operation,
    ) -> Result<QueueId, ResourceError> {
        let id = self.find_permitted_queue(channel, name, operation)?;
        self.check_lock(channel, id)?;
        Ok(id)
    }

    /// Returns the same as [`Broker::find_queue`], whoever's it is.
    pub(super) fn find_permitted_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
        operation: Operation,
    ) -> Result<QueueId, ResourceError> {
        let name = self.queue_name(channel, name)?;
        let state = self.messaging.clients.channel(channel)?;
        let (user, vhost, kind) = (&state.user, &state.vhost_name, ResourceKind::Queue);
        self.access.authorize(user, vhost, operation, kind, &name)?;
        let vhost = state.vhost;
        let Some(id) = self.find_live_queue(vhost, &name) else {
            let vhost = self.messaging.clients.channel(channel)?.vhost_name.clone();
            return Err(NoSuchQueue { vhost, queue: name }.into());
        };
        Ok(id)
    }

    /// Refuses a queue that is another connection's alone.
    pub(super) fn check_lock(&self, channel: ChannelId, id: QueueId) -> Result<(), ResourceError> {
        let connection = self.messaging.clients.channel(channel)?.connection;
        match self.messaging.queues.get(id) {
            Some(queue) => Ok(check_lock(queue, connection)?),
            None => Ok(()),
        }
    }

    /// Returns the name that was given, or the last declared queue's if it is empty.
    pub(super) fn queue_name(
        &self,
        channel: ChannelId,
        name: &str,
    ) -> Result<String, ResourceError> {
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let state = self.messaging.clients.channel(channel)?;
        Ok(state.last_queue.clone().ok_or(NoQueueDeclared)?)
    }
}

/// Refuses another connection's exclusive queue.
pub(super) fn check_lock(queue: &Queue, connection: ConnectionId) -> Result<(), QueueLocked> {
    if queue.is_locked_for(connection) {
        return Err(QueueLocked { vhost: queue.vhost_name.clone(), queue: queue.name.clone() });
    }
    Ok(())
}
