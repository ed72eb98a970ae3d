//! Tasks that move messages out of a dead-letter queue.

use quelea_sqs::{Fault, MoveTask, NewMoveTask, QueueKey};

use super::EmbeddedQueues;

impl EmbeddedQueues {
    pub(super) async fn start(&self, _: QueueKey, _: NewMoveTask) -> Result<String, Fault> {
        Err(Fault::Unsupported("message move tasks are not there yet".to_owned()))
    }

    pub(super) async fn cancel(&self, _: &str) -> Result<u64, Fault> {
        Err(Fault::NotFound("no such task".to_owned()))
    }

    pub(super) async fn tasks(&self, _: QueueKey, _: usize) -> Result<Vec<MoveTask>, Fault> {
        Ok(Vec::new())
    }
}
