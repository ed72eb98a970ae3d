//! The messages that were sent with a deduplication id in the last five minutes.

use std::collections::VecDeque;

use quelea_model::Timestamp;
use quelea_model::limits::{DEDUPLICATION_MS, DEDUPLICATIONS_PER_QUEUE_MAX};
use quelea_store::Deduplication;
use rustc_hash::FxHashMap;

/// All of a queue.
#[derive(Debug, Default)]
pub(crate) struct Deduplications {
    by_key: FxHashMap<[u64; 2], Deduplication>,
    /// By the time at which they were sent.
    order: VecDeque<(Timestamp, [u64; 2])>,
    last_sent_at: Timestamp,
}

impl Deduplications {
    /// Returns the message that was sent with this id, if that is not too long ago.
    pub(crate) fn find(&mut self, key: [u64; 2], now: Timestamp) -> Option<&Deduplication> {
        self.forget_old(now);
        self.by_key.get(&key)
    }

    /// Returns what they take of the memory, about.
    pub(crate) fn bytes(&self) -> usize {
        const ID_BYTES: usize = 150;
        self.by_key.len() * ID_BYTES
    }

    /// Returns whether no more can be remembered.
    pub(crate) fn is_full(&self) -> bool {
        self.by_key.len() >= DEDUPLICATIONS_PER_QUEUE_MAX
    }

    /// Returns when none of them counts any more. Before that who sends forgets those that do not.
    pub(crate) const fn end(&self) -> Timestamp {
        self.last_sent_at.plus_ms(DEDUPLICATION_MS)
    }

    pub(crate) fn add(&mut self, sent: Deduplication) {
        self.last_sent_at = self.last_sent_at.max(sent.sent_at);
        self.order.push_back((sent.sent_at, sent.key));
        self.by_key.insert(sent.key, sent);
    }

    /// Returns the ids that were sent from then on and still count, oldest first.
    pub(crate) fn since(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = &Deduplication> {
        self.forget_old(now);
        let from = self.order.partition_point(|(sent_at, _)| *sent_at < since);
        self.order.range(from..).filter_map(|(sent_at, key)| {
            self.by_key.get(key).filter(|sent| sent.sent_at == *sent_at)
        })
    }

    fn forget_old(&mut self, now: Timestamp) {
        while let Some((sent_at, key)) = self.order.front()
            && sent_at.plus_ms(DEDUPLICATION_MS) <= now
        {
            // One that was sent again after it was forgotten stands there with a later time.
            if self.by_key.get(key).is_some_and(|sent| sent.sent_at == *sent_at) {
                self.by_key.remove(key);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(key: u64, at: u64) -> Deduplication {
        let sent_at = Timestamp::from_millis(at);
        Deduplication { key: [key, 0], sent_at, ..Deduplication::default() }
    }

    #[test]
    fn an_id_counts_for_five_minutes() {
        let mut ids = Deduplications::default();
        ids.add(sent(1, 1_000));
        let last = Timestamp::from_millis(1_000 + DEDUPLICATION_MS - 1);
        assert!(ids.find([1, 0], last).is_some());
        assert!(ids.find([2, 0], last).is_none());
        assert!(ids.find([1, 0], last.plus_ms(1)).is_none());
        ids.add(sent(1, last.as_millis() + 1));
        assert!(ids.find([1, 0], last.plus_ms(2)).is_some());
        assert_eq!(ids.since(Timestamp::ZERO, last.plus_ms(2)).count(), 1);
        assert_eq!(ids.since(last.plus_ms(2), last.plus_ms(2)).count(), 0);
    }
}
