//! Which queue a name stands for, and whether this connection may use it so.

use quelea_model::QueueId;

use crate::Broker;
use crate::access::Operation;
use crate::error::{
    AccessRefused, BindingError, ChannelGone, ConsumeError, DeclareQueueError, GetError,
    NoQueueDeclared, NoSuchQueue, QueueError, QueueLocked, ResourceKind,
};
use crate::ids::{ChannelId, ConnectionId};
use crate::queue::Queue;

/// Why a queue cannot be used; a part of every operation's error.
pub(crate) enum FindQueueError {
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
    pub(crate) fn find_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
        operation: Operation,
    ) -> Result<QueueId, FindQueueError> {
        let name = self.queue_name(channel, name)?;
        let gone = FindQueueError::ChannelGone(ChannelGone);
        let Some(state) = self.clients.channels.get(channel.0) else {
            return Err(gone);
        };
        let (user, vhost_name) = (state.user.clone(), state.vhost_name.clone());
        let (connection, vhost) = (state.connection, state.vhost);
        self.permit(&user, &vhost_name, operation, ResourceKind::Queue, &name)
            .map_err(FindQueueError::AccessRefused)?;
        let vhost = self.vhosts.get(vhost.0).ok_or(gone)?;
        let Some(id) = vhost.queues.get(name.as_str()).copied() else {
            let error = NoSuchQueue { vhost: vhost_name, queue: name };
            return Err(FindQueueError::NoSuchQueue(error));
        };
        if let Some(queue) = self.queues.get(&id) {
            check_lock(queue, connection).map_err(FindQueueError::QueueLocked)?;
        }
        Ok(id)
    }

    /// The name that was given, or the last declared queue's if it is empty.
    pub(crate) fn queue_name(
        &self,
        channel: ChannelId,
        name: &str,
    ) -> Result<String, FindQueueError> {
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let state = self.clients.channels.get(channel.0);
        let state = state.ok_or(FindQueueError::ChannelGone(ChannelGone))?;
        state.last_queue.clone().ok_or(FindQueueError::NoQueueDeclared(NoQueueDeclared))
    }
}

/// Refuses another connection's exclusive queue.
pub(crate) fn check_lock(queue: &Queue, connection: ConnectionId) -> Result<(), QueueLocked> {
    if queue.is_locked_for(connection) {
        return Err(QueueLocked { vhost: queue.vhost_name.clone(), queue: queue.name.clone() });
    }
    Ok(())
}
