//! Which queue a name stands for, and whether this connection may use it so.

use quelea_model::QueueId;

use super::Broker;
use crate::access::Operation;
use crate::clients::Clients;
use crate::clients::channel::Channel;
use crate::error::{
    AccessRefused, BindingError, ChannelGone, ConsumeError, DeclareQueueError, GetError,
    NoQueueDeclared, NoSuchQueue, QueueError, QueueLocked, ResourceKind,
};
use crate::ids::{ChannelId, ConnectionId};
use crate::queues::queue::Queue;

/// Why a queue cannot be used; a part of every operation's error.
pub(super) enum FindQueueError {
    ChannelGone(ChannelGone),
    NoQueueDeclared(NoQueueDeclared),
    AccessRefused(AccessRefused),
    NoSuchQueue(NoSuchQueue),
    QueueLocked(QueueLocked),
}

macro_rules! part_of {
    ($($error:ident),*) => {
        $(impl From<FindQueueError> for $error {
            fn from(error: FindQueueError) -> Self {
                match error {
                    FindQueueError::ChannelGone(e) => Self::ChannelGone(e),
                    FindQueueError::NoQueueDeclared(e) => Self::NoQueueDeclared(e),
                    FindQueueError::AccessRefused(e) => Self::AccessRefused(e),
                    FindQueueError::NoSuchQueue(e) => Self::NoSuchQueue(e),
                    FindQueueError::QueueLocked(e) => Self::QueueLocked(e),
                }
            }
        })*
    };
}

part_of!(DeclareQueueError, QueueError, BindingError, ConsumeError, GetError);

impl Broker {
    /// The queue of that name, or for an empty one the channel's last declared queue, with the
    /// permission for the operation checked, and that it is nobody else's exclusively.
    pub(super) fn find_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
        operation: Operation,
    ) -> Result<QueueId, FindQueueError> {
        let name = self.queue_name(channel, name)?;
        let state = channel_state(&self.messaging.clients, channel)?;
        let (user, vhost, kind) = (&state.user, &state.vhost_name, ResourceKind::Queue);
        self.access
            .authorize(user, vhost, operation, kind, &name)
            .map_err(FindQueueError::AccessRefused)?;
        let Some(id) = self.messaging.queues.find(state.vhost, &name) else {
            let error = NoSuchQueue { vhost: vhost.clone(), queue: name };
            return Err(FindQueueError::NoSuchQueue(error));
        };
        if let Some(queue) = self.messaging.queues.get(id) {
            check_lock(queue, state.connection).map_err(FindQueueError::QueueLocked)?;
        }
        Ok(id)
    }

    /// The name that was given, or the last declared queue's if it is empty.
    pub(super) fn queue_name(
        &self,
        channel: ChannelId,
        name: &str,
    ) -> Result<String, FindQueueError> {
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let state = channel_state(&self.messaging.clients, channel)?;
        state.last_queue.clone().ok_or(FindQueueError::NoQueueDeclared(NoQueueDeclared))
    }
}

fn channel_state(clients: &Clients, channel: ChannelId) -> Result<&Channel, FindQueueError> {
    clients.channel(channel).map_err(FindQueueError::ChannelGone)
}

/// Refuses another connection's exclusive queue.
pub(super) fn check_lock(queue: &Queue, connection: ConnectionId) -> Result<(), QueueLocked> {
    if queue.is_locked_for(connection) {
        return Err(QueueLocked { vhost: queue.vhost_name.clone(), queue: queue.name.clone() });
    }
    Ok(())
}
