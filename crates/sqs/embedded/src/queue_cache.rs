//! What was looked up of queues, so that most requests need one call of the core and not two. All of
//! it is forgotten when the core says that something has changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quelea_sqs_protocol::{AccessKey, QueueFacts, QueueRef, User};
use rustc_hash::FxHashMap;

/// Entries of either kind; at the limit all are forgotten.
const ENTRIES_MAX: usize = 65_536;

/// Shared by the threads of the front.
#[derive(Debug, Default)]
pub(crate) struct QueueCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    epoch: u64,
    queues: FxHashMap<(QueueRef, Option<Arc<str>>), Arc<QueueFacts>>,
    keys: FxHashMap<Box<str>, AccessKey>,
}

impl QueueCache {
    /// A queue as a user sees it, if that was looked up since the last change.
    pub(crate) fn queue(
        &self,
        epoch: u64,
        user: &User,
        queue: &QueueRef,
    ) -> Option<Arc<QueueFacts>> {
        self.at(epoch).queues.get(&(queue.clone(), user.name.clone())).cloned()
    }

    /// Remembers what was looked up; `epoch` is from before.
    pub(crate) fn add_queue(
        &self,
        epoch: u64,
        user: &User,
        queue: &QueueRef,
        facts: &Arc<QueueFacts>,
    ) {
        let mut cached = self.at(epoch);
        if cached.epoch == epoch && cached.queues.len() < ENTRIES_MAX {
            cached.queues.insert((queue.clone(), user.name.clone()), Arc::clone(facts));
        }
    }

    /// An access key.
    pub(crate) fn key(&self, epoch: u64, id: &str) -> Option<AccessKey> {
        self.at(epoch).keys.get(id).cloned()
    }

    /// Remembers an access key; `epoch` is from before it was looked up.
    pub(crate) fn add_key(&self, epoch: u64, id: &str, key: &AccessKey) {
        let mut cached = self.at(epoch);
        if cached.epoch == epoch && cached.keys.len() < ENTRIES_MAX {
            cached.keys.insert(id.into(), key.clone());
        }
    }

    fn at(&self, epoch: u64) -> MutexGuard<'_, Cached> {
        // What is behind the lock is consistent between any two statements.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.epoch != epoch || cached.queues.len() >= ENTRIES_MAX {
            *cached = Cached { epoch, ..Cached::default() };
        }
        cached
    }
}
