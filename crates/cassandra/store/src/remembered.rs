//! What was read of Cassandra and is good for a moment. Whoever asks in the second half of that moment reads it anew,
//! while the others go on with it: many that ask at once cost one read.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// Values by their keys, for a moment.
#[derive(Debug)]
pub(crate) struct Remembered<K, V> {
    age_max: Duration,
    entries_max: usize,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    entries: FxHashMap<K, Entry<V>>,
    /// When what of late was forgotten: what was being read then may be what it was before, and is not kept.
    forgotten: FxHashMap<K, Instant>,
    /// The same of everything.
    forgot_all_at: Option<Instant>,
    /// When what is too old last made room.
    made_room_at: Option<Instant>,
}

/// A value, when it was read, and when somebody last went to read it anew.
#[derive(Debug)]
struct Entry<V> {
    value: V,
    read_at: Instant,
    asked_at: Instant,
}

/// Keys of which it is known when they were forgotten. With more, what was being read at the last of those times is not kept
/// either, whatever it is of.
const FORGOTTEN_MAX: usize = 1_000;

impl<K: Eq + Hash + Clone, V: Clone> Remembered<K, V> {
    pub(crate) fn new(age_max: Duration, entries_max: usize) -> Self {
        let kept = Kept {
            entries: FxHashMap::default(),
            forgotten: FxHashMap::default(),
            forgot_all_at: None,
            made_room_at: None,
        };
        Self { age_max, entries_max, kept: Mutex::new(kept) }
    }

    /// Returns what is known of it, if that is not too old at `now`.
    pub(crate) fn recall(&self, key: &K, now: Instant) -> Option<V> {
        self.recall_by(key, now, |read_at| read_at)
    }

    /// Returns the same, where something says of what was read at some time how long it stayed so,
    /// as far as is known.
    pub(crate) fn recall_by(
        &self,
        key: &K,
        now: Instant,
        valid_at: impl Fn(Instant) -> Instant,
    ) -> Option<V> {
        let mut kept = self.kept();
        let entry = kept.entries.get_mut(key)?;
        let valid_at = valid_at(entry.read_at);
        // However often a reading of it has failed: it is as old as the last that did not.
        if now.saturating_duration_since(valid_at) >= self.age_max {
            return None;
        }
        let asked_at = entry.asked_at.max(valid_at);
        if now.saturating_duration_since(asked_at) >= self.age_max / 2 {
            // The others have a quarter of the time more.
            entry.asked_at = asked_at + self.age_max / 4;
            return None;
        }
        Some(entry.value.clone())
    }

    /// What was read, by who began to at `now`.
    pub(crate) fn remember(&self, key: K, value: V, now: Instant) {
        let mut kept = self.kept();
        let forgot_at = kept.forgotten.get(&key).copied().max(kept.forgot_all_at);
        if forgot_at.is_some_and(|forgot_at| now <= forgot_at) {
            return;
        }
        let known = kept.entries.get(&key).map(|known| known.read_at);
        if known.is_some_and(|read_at| read_at > now) {
            return;
        }
        let since = |then: Instant| now.saturating_duration_since(then);
        // All are gone through for that: not for each of many that find no room.
        let is_due = kept.made_room_at.is_none_or(|then| since(then) >= self.age_max / 4);
        if kept.entries.len() >= self.entries_max && known.is_none() && is_due {
            kept.made_room_at = Some(now);
            kept.entries.retain(|_, one| since(one.read_at) < self.age_max);
        }
        if kept.entries.len() < self.entries_max || known.is_some() {
            kept.entries.insert(key, Entry { value, read_at: now, asked_at: now });
        }
    }

    /// It was changed by `now`.
    pub(crate) fn forget(&self, key: &K, now: Instant) {
        let mut kept = self.kept();
        kept.entries.remove(key);
        if kept.forgotten.len() >= FORGOTTEN_MAX {
            let was_all = kept.forgotten.drain().map(|(_, at)| at).max();
            kept.forgot_all_at = kept.forgot_all_at.max(was_all);
        }
        kept.forgotten.insert(key.clone(), now);
    }

    /// Something was changed, of which nobody says what.
    pub(crate) fn forget_all(&self) {
        let mut kept = self.kept();
        kept.entries.clear();
        kept.forgotten.clear();
        kept.forgot_all_at = Some(Instant::now());
    }

    /// It is not there any more, as whoever read it has seen.
    pub(crate) fn remove(&self, key: &K) {
        self.kept().entries.remove(key);
    }

    fn kept(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_reads_anew_while_the_others_go_on() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10);
        remembered.remember("key", 1, start);
        assert_eq!(remembered.recall(&"key", start + SECOND), Some(1));
        assert_eq!(remembered.recall(&"key", start + 2 * SECOND), None);
        assert_eq!(remembered.recall(&"key", start + 2 * SECOND), Some(1));
        remembered.remember("key", 2, start + 2 * SECOND);
        assert_eq!(remembered.recall(&"key", start + 3 * SECOND), Some(2));
        assert_eq!(remembered.recall(&"key", start + 7 * SECOND), None);
    }

    #[test]
    fn what_is_known_to_be_still_so_ages_from_then_on() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10);
        remembered.remember("key", 1, start);
        let recall = |seconds: u32, valid: u32| {
            remembered
                .recall_by(&"key", start + seconds * SECOND, |read_at| read_at + valid * SECOND)
        };
        assert_eq!(recall(11, 10), Some(1));
        assert_eq!(recall(12, 10), None, "one asks");
        assert_eq!(recall(12, 10), Some(1), "the others go on");
        assert_eq!(recall(13, 12), Some(1), "it was still so");
        assert_eq!(recall(16, 12), None);
    }

    #[test]
    fn what_cannot_be_read_anew_ends_all_the_same() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10);
        remembered.remember("key", 1, start);
        // Somebody asks ten times a second, and each reading fails.
        for tenth in 0..40 {
            let _ = remembered.recall(&"key", start + tenth * SECOND / 10);
        }
        for tenth in 40..200 {
            assert_eq!(remembered.recall(&"key", start + tenth * SECOND / 10), None);
        }
    }

    #[test]
    fn no_more_is_kept_than_there_may_be() {
        let start = Instant::now();
        let remembered = Remembered::new(SECOND, 2);
        for key in 0..3 {
            remembered.remember(key, key, start);
        }
        assert_eq!([0, 1, 2].map(|key| remembered.recall(&key, start)), [Some(0), Some(1), None]);
        remembered.remember(3, 3, start + SECOND);
        assert_eq!(remembered.recall(&3, start + SECOND), Some(3));
        remembered.forget_all();
        assert_eq!(remembered.recall(&3, start + SECOND), None);
    }

    #[test]
    fn what_is_known_is_read_anew_where_there_is_no_room() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 2);
        for key in 0..100 {
            remembered.remember(key, key, start);
        }
        remembered.remember(1, 7, start + 3 * SECOND);
        assert_eq!(remembered.recall(&1, start + 4 * SECOND), Some(7));
    }

    #[test]
    fn what_was_forgotten_long_ago_takes_no_room() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10_000);
        for key in 0..=FORGOTTEN_MAX {
            remembered.forget(&key, start + SECOND);
        }
        assert_eq!(remembered.kept().forgotten.len(), 1);
        remembered.remember(0, "read too soon", start);
        assert_eq!(remembered.recall(&0, start + SECOND), None);
        remembered.remember(0, "read after it", start + 2 * SECOND);
        assert_eq!(remembered.recall(&0, start + 2 * SECOND), Some("read after it"));
    }

    #[test]
    fn what_was_read_later_is_not_replaced_by_what_was_read_before() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10);
        remembered.remember("key", "later", start + SECOND);
        remembered.remember("key", "slowly", start);
        assert_eq!(remembered.recall(&"key", start + SECOND), Some("later"));
        remembered.remember("key", "last", start + 2 * SECOND);
        assert_eq!(remembered.recall(&"key", start + 2 * SECOND), Some("last"));
    }

    #[test]
    fn what_was_being_read_while_it_changed_is_not_kept() {
        let start = Instant::now();
        let remembered = Remembered::new(4 * SECOND, 10);
        remembered.forget(&"key", start + SECOND);
        remembered.remember("key", "read too soon", start);
        assert_eq!(remembered.recall(&"key", start + SECOND), None);
        // Others have nothing to do with it.
        remembered.remember("other", "read meanwhile", start);
        assert_eq!(remembered.recall(&"other", start + SECOND), Some("read meanwhile"));
        remembered.remember("key", "read after it", start + 2 * SECOND);
        assert_eq!(remembered.recall(&"key", start + 2 * SECOND), Some("read after it"));
    }
}
