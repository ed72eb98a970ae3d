//! Messages that were received too often go to their queue's dead-letter queue, which may have another owner: first they are
//! there, then they are gone here. A crash in between leaves them in both, unless they are sent again within five minutes and to
//! the same owner: then they are the same.

use std::sync::Arc;
use std::time::Duration;

use quelea_cassandra_fifo::{RowKey, moved_key};
use quelea_sqs_protocol::Fault;
use uuid::Uuid;

use super::by_segment::read_contents;
use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use crate::shared::Shared;
use crate::standard::jobs::time_left_s;

/// How long to wait for the owner of the dead-letter queue.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    /// Sends one message to the dead-letter queue, unless it is gone.
    pub(super) async fn send_to_dead_letters(
        self: &Arc<Self>,
        queue: &FifoQueue,
        row: RowKey,
        message: Uuid,
        receives: u32,
    ) -> Result<(), Fault> {
        let gone = || Fault::NotFound("there is no dead-letter queue".to_owned());
        let (name, _) = queue.redrive.as_ref().ok_or_else(gone)?;
        let to = self.queues.record(&self.database, name).await?.ok_or_else(gone)?;
        let found = read_contents(self, queue.generation, &[row]).await?;
        if !found.unreadable.is_empty() {
            return Err(Fault::Unavailable("the message cannot be read".to_owned()));
        }
        // It has ended, or was deleted by an earlier owner's last request.
        let Some(mut content) = found.contents.into_iter().flatten().next() else { return Ok(()) };
        content.source = Some(queue.name.clone());
        content.earlier_receives = content.earlier_receives.saturating_add(receives);
        let outgoing = Outgoing {
            id: Some(message),
            content: Arc::new(content),
            delay_ms: 0,
            ttl_s: time_left_s(&to.facts, message, self.database.clock.now_ms()),
            deduplication: Some(moved_key(queue.generation, row)),
        };
        let operation = Operation::Send(vec![outgoing]);
        let queue = self.fifo_queue(&to.facts).await?;
        // Boxed, since that queue's owner may have to move messages on.
        match Box::pin(self.fifo_call(&to.facts, queue, operation, PATIENCE)).await? {
            Answer::Sent(outcomes) => outcomes.into_iter().try_for_each(|one| one.map(drop)),
            other => Err(other.unexpected()),
        }
    }
}
