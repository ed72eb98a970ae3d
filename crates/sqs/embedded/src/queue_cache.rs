//! What was looked up of queues, so that most requests need one call of the core and not two. All of
//! it is forgotten when the core says that something has changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quelea_sqs_protocol::{QueueFacts, QueueRef};
use rustc_hash::FxHashMap;

use crate::limits::CACHE_ENTRIES_MAX;

/// Shared by the threads of the front.
#[derive(Debug, Default)]
pub(crate) struct QueueCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    epoch: u64,
    /// Also which there are none of: behind these queues others may be looked for.
    queues: FxHashMap<QueueRef, Option<Arc<QueueFacts>>>,
}

impl QueueCache {
    /// Returns what was found when a queue was looked up, if that was since the last change.
    pub(crate) fn get(&self, epoch: u64, queue: &QueueRef) -> Option<Option<Arc<QueueFacts>>> {
        self.at(epoch).queues.get(queue).cloned()
    }

    /// Remembers what was looked up; `epoch` is from before.
    pub(crate) fn add(&self, epoch: u64, queue: &QueueRef, found: Option<&Arc<QueueFacts>>) {
        self.at(epoch).queues.insert(queue.clone(), found.cloned());
    }

    fn at(&self, epoch: u64) -> MutexGuard<'_, Cached> {
        // What is behind the lock is consistent between any two statements.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.epoch != epoch || cached.queues.len() >= CACHE_ENTRIES_MAX {
            *cached = Cached { epoch, ..Cached::default() };
        }
        cached
    }
}
