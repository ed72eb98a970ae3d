//! What passed through queues at this front-end, for who looks at one.

use std::sync::{Mutex, PoisonError};

use quelea_sqs_protocol::{QueueClass, QueueFacts};
use rustc_hash::FxHashMap;

use crate::limits::REMEMBERED_QUEUES_MAX;

/// Messages of a queue that passed here, since the start, or since too many other queues were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Those that were sent.
    pub sent: u64,
    /// Those that were delivered, each as often as it was.
    pub received: u64,
    /// Those that were deleted, also where they were gone already.
    pub deleted: u64,
}

/// By the queues' keys.
#[derive(Debug, Default)]
pub(crate) struct PassedQueues(Mutex<FxHashMap<u128, Passed>>);

impl PassedQueues {
    pub(crate) fn count(&self, queue: &QueueFacts, count: impl FnOnce(&mut Passed)) {
        let Some(key) = queue.key.id_in(QueueClass::Replicated) else { return };
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= REMEMBERED_QUEUES_MAX
            && !queues.contains_key(&key)
            && let Some(any) = queues.keys().next().copied()
        {
            queues.remove(&any);
        }
        count(queues.entry(key).or_default());
    }

    pub(crate) fn of(&self, queue: &QueueFacts) -> Passed {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = queue.key.id_in(QueueClass::Replicated);
        key.and_then(|key| queues.get(&key).copied()).unwrap_or_default()
    }
}
