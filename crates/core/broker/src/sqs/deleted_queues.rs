//! When queues were deleted: SQS refuses to make one of the same name for a minute.

use quelea_model::{QueueName, Timestamp, VhostName};
use rustc_hash::FxHashMap;

/// Names of deleted queues that are remembered; at the limit all are forgotten, and nobody has to
/// wait.
const DELETED_QUEUES_MAX: usize = 65_536;

/// When queues were deleted, by name.
#[derive(Debug, Default)]
pub(crate) struct DeletedQueues(FxHashMap<(VhostName, QueueName), Timestamp>);

impl DeletedQueues {
    pub(crate) fn note(&mut self, vhost: VhostName, queue: QueueName, now: Timestamp) {
        if self.0.len() >= DELETED_QUEUES_MAX {
            self.0.clear();
        }
        self.0.insert((vhost, queue), now);
    }

    /// Returns when a queue of that name was last deleted, if that is remembered.
    pub(crate) fn when(&self, vhost: &str, queue: &str) -> Option<Timestamp> {
        let name = (VhostName::parse(vhost).ok()?, QueueName::parse(queue).ok()?);
        self.0.get(&name).copied()
    }
}
