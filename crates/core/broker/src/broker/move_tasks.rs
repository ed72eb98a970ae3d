//! Tasks that move the messages of a dead-letter queue on.

use quelea_model::{QueueId, Timestamp};
use quelea_store::{Durability, Ticket};

use super::Broker;
use crate::error::MoveError;
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

    /// Ends a task. Returns the number of messages that it has moved.
    ///
    /// # Errors
    /// [`MoveError`] if there is no such task, or it is over.
    pub fn cancel_move(&mut self, id: MoveTaskId) -> Result<(u64, Ticket), MoveError> {
        let moved = self.move_tasks.cancel(&mut self.messaging, id)?;
        Ok((moved, self.messaging.ticket(Durability::Fsync)))
    }

    /// The last tasks of a source, the newest first.
    #[must_use]
    pub fn move_tasks(&self, source: QueueId) -> Vec<MoveTaskReport> {
        self.move_tasks.reports(source)
    }
}
