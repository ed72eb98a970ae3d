//! What was looked up of users, so that a request of one need not ask the core. All of it is forgotten when
//! the core says that something has changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quelea_sqs_protocol::{AccessKey, Permits, QueueRef};
use rustc_hash::FxHashMap;

use crate::limits::CACHE_ENTRIES_MAX;

/// Shared by the threads of the front.
#[derive(Debug, Default)]
pub(crate) struct IdentityCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    epoch: u64,
    keys: FxHashMap<Box<str>, AccessKey>,
    permits: FxHashMap<(Arc<str>, QueueRef), Permits>,
}

impl IdentityCache {
    /// Returns an access key, if it is remembered.
    pub(crate) fn key(&self, epoch: u64, id: &str) -> Option<AccessKey> {
        self.at(epoch).keys.get(id).cloned()
    }

    /// Remembers an access key; `epoch` is from before it was looked up.
    pub(crate) fn add_key(&self, epoch: u64, id: &str, key: &AccessKey) {
        let mut cached = self.at(epoch);
        cached.keys.insert(id.into(), key.clone());
    }

    /// Returns what a user may do with a queue, if it is remembered.
    pub(crate) fn permits(&self, epoch: u64, user: &Arc<str>, queue: &QueueRef) -> Option<Permits> {
        self.at(epoch).permits.get(&(Arc::clone(user), queue.clone())).copied()
    }

    /// Remembers what a user may do; `epoch` is from before it was looked up.
    pub(crate) fn add_permits(
        &self,
        epoch: u64,
        user: &Arc<str>,
        queue: &QueueRef,
        permits: Permits,
    ) {
        let mut cached = self.at(epoch);
        cached.permits.insert((Arc::clone(user), queue.clone()), permits);
    }

    fn at(&self, epoch: u64) -> MutexGuard<'_, Cached> {
        // What is behind the lock is consistent between any two statements.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = cached.keys.len().max(cached.permits.len()) >= CACHE_ENTRIES_MAX;
        if cached.epoch != epoch || is_full {
            *cached = Cached { epoch, ..Cached::default() };
        }
        cached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_known_before_a_change_is_forgotten() {
        let cache = IdentityCache::default();
        let user: Arc<str> = "ada".into();
        let queue = QueueRef { account: "1".into(), name: "q".into() };
        cache.add_permits(0, &user, &queue, Permits::ALL);
        assert_eq!(cache.permits(0, &user, &queue), Some(Permits::ALL));
        assert_eq!(cache.permits(0, &"bob".into(), &queue), None);
        assert_eq!(cache.permits(1, &user, &queue), None);
        // Whoever looked it up before the change brings nothing back.
        cache.add_permits(0, &user, &queue, Permits::ALL);
        assert_eq!(cache.permits(1, &user, &queue), None);
    }
}
