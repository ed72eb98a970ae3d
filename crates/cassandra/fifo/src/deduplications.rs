//! The deduplication ids of the last five minutes, those included whose messages are not written yet.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::limits::{DEDUPLICATION_MS, DEDUPLICATIONS_MAX};
use crate::message::Noted;

/// All of a queue.
#[derive(Debug, Default)]
pub(crate) struct Deduplications {
    by_key: FxHashMap<[u8; 16], Noted>,
    /// By the time at which they were sent, or nearly so.
    order: VecDeque<(u64, [u8; 16])>,
}

impl Deduplications {
    /// Returns the message that was sent with this id, if that is not too long ago.
    pub(crate) fn find(&mut self, key: [u8; 16], now_ms: u64) -> Option<&Noted> {
        self.forget_old(now_ms);
        self.by_key.get(&key).filter(|noted| noted.sent_at_ms + DEDUPLICATION_MS > now_ms)
    }

    /// Returns whether no more can be remembered.
    pub(crate) fn is_full(&self) -> bool {
        self.order.len() >= DEDUPLICATIONS_MAX
    }

    /// Returns about how many bytes of memory they take.
    pub(crate) fn bytes(&self) -> usize {
        const ID_BYTES: usize = 120;
        self.order.len() * ID_BYTES
    }

    pub(crate) fn add(&mut self, noted: Noted) {
        // What was read may come in any order: the latest counts.
        if self.by_key.get(&noted.key).is_some_and(|known| known.number >= noted.number) {
            return;
        }
        self.order.push_back((noted.sent_at_ms, noted.key));
        self.by_key.insert(noted.key, noted);
    }

    /// The message of that number was not stored: its id counts no more.
    pub(crate) fn remove(&mut self, key: [u8; 16], number: u64) {
        if self.by_key.get(&key).is_some_and(|noted| noted.number == number) {
            self.by_key.remove(&key);
        }
    }

    /// Forgets those that count no more.
    pub(crate) fn forget_old(&mut self, now_ms: u64) {
        while let Some((sent_at_ms, key)) = self.order.front()
            && sent_at_ms + DEDUPLICATION_MS <= now_ms
        {
            // One that was used again after it was forgotten stands there with a later time.
            if self.by_key.get(key).is_some_and(|noted| noted.sent_at_ms == *sent_at_ms) {
                self.by_key.remove(key);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const KEY: [u8; 16] = [1; 16];

    fn noted(number: u64, sent_at_ms: u64) -> Noted {
        Noted { key: KEY, number, id: Uuid::from_u128(number.into()), sent_at_ms }
    }

    #[test]
    fn an_id_counts_for_five_minutes_and_can_be_used_again() {
        let mut ids = Deduplications::default();
        ids.add(noted(1, 1_000));
        let last_ms = 1_000 + DEDUPLICATION_MS - 1;
        assert_eq!(ids.find(KEY, last_ms), Some(&noted(1, 1_000)));
        assert_eq!(ids.find([2; 16], last_ms), None);
        assert_eq!(ids.find(KEY, last_ms + 1), None);
        ids.add(noted(2, last_ms + 1));
        assert_eq!(ids.find(KEY, last_ms + 2), Some(&noted(2, last_ms + 1)));
        assert_eq!(ids.order.len(), 1, "what was forgotten is gone");
    }

    #[test]
    fn of_two_that_were_read_the_later_counts() {
        let mut ids = Deduplications::default();
        ids.add(noted(2, 400_000));
        ids.add(noted(1, 50_000));
        assert_eq!(ids.find(KEY, 400_001), Some(&noted(2, 400_000)));
    }
}
