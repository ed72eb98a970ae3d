//! Tasks that move the messages of a dead-letter queue on.

use quelea_model::{QueueId, Timestamp};
use quelea_store::{Durability, Ticket};

use super::Broker;
use crate::access::Operation;
use crate::error::{MoveError, ResourceError};
use crate::ids::ChannelId;
use crate::sqs::move_tasks::report::{MoveTaskId, MoveTaskReport};

impl Broker {
    /// Begins to move the messages that are in a queue now; to the destination, or each to the queue
    /// that it was redriven from.
    ///
    /// # Errors
    /// [`MoveError`].
    pub fn start_move(
        &mut self,
        now: Timestamp,
        source: QueueId,
        destination: Option<QueueId>,
        per_second_max: Option<u32>,
    ) -> Result<(MoveTaskId, Ticket), MoveError> {
        let messaging = &mut self.messaging;
        let id = self.move_tasks.start(messaging, now, source, destination, per_second_max)?;
        Ok((id, messaging.ticket(Durability::Fsync)))
    }

    /// Finds the queues of a move that the channel's user wants, who has to have the permission to
    /// read the one and to write to the other. Without a destination each message goes to where it
    /// came from, which takes the permission to configure the source instead.
    ///
    /// # Errors
    /// [`ResourceError`].
    pub fn find_move(
        &mut self,
        channel: ChannelId,
        source: &str,
        destination: Option<&str>,
    ) -> Result<(QueueId, Option<QueueId>), ResourceError> {
        let id = self.find_move_source(channel, source)?;
        let destination = match destination {
            Some(name) => Some(self.find_queue(channel, name, Operation::Write)?),
            None => {
                self.find_queue(channel, source, Operation::Configure)?;
                None
            }
        };
        Ok((id, destination))
    }

    /// Finds a queue whose moves the channel's user may end, who has to have the permission to read
    /// it.
    ///
    /// # Errors
    /// [`ResourceError`].
    pub fn find_move_source(
        &mut self,
        channel: ChannelId,
        source: &str,
    ) -> Result<QueueId, ResourceError> {
        self.find_queue(channel, source, Operation::Read)
    }

    /// Ends a task. Returns the number of messages that it has moved.
    ///
    /// # Errors
    /// [`MoveError`] if there is no such task, or it is over.
    pub fn cancel_move(&mut self, id: MoveTaskId) -> Result<(u64, Ticket), MoveError> {
        let moved = self.move_tasks.cancel(&mut self.messaging, id)?;
        Ok((moved, self.messaging.ticket(Durability::Fsync)))
    }

    /// Returns the last tasks of a source, the newest first.
    #[must_use]
    pub fn move_tasks(&self, source: QueueId) -> Vec<MoveTaskReport> {
        self.move_tasks.reports(source)
    }
}
