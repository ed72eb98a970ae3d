//! Freeing the memory of bodies, from the end of an index towards its head: what is needed last goes first.
//!
//! A queue that grows beyond the memory is freed again and again at its end, so the walk must not begin with
//! what earlier ones have left behind: an index knows where there is nothing to find.

use std::sync::Arc;

use quelea_model::Seq;

use crate::QueueIndex;
use crate::chunk::Chunk;
use crate::cleared_range::ClearedRange;
use crate::queued_message::UnstoredMessage;

impl QueueIndex {
    /// Drops bodies that are in the log too, from the end towards the head, until `bytes_wanted`
    /// are free. Returns the bytes. Costs a few steps a body that is dropped, however long the index is.
    pub fn evict(&mut self, bytes_wanted: usize) -> usize {
        let (mut freed, mut end) = (0, self.slots.len());
        while freed < bytes_wanted && self.evictable > 0 {
            self.evicted.count_look();
            let Some(at) = self.slot_before(end, &self.evicted) else { break };
            if self.slots[at].chunk().is_some_and(|chunk| chunk.evictable() > 0) {
                freed +=
                    self.change_chunk(at, |chunk| chunk.evict(bytes_wanted - freed)).unwrap_or(0);
            }
            if self.slots[at].chunk().is_none_or(|chunk| chunk.evictable() == 0) {
                end = at;
            }
        }
        debug_assert!(freed >= bytes_wanted || self.evictable == 0, "a body was passed over");
        if let Some((first, last)) = self.numbers_from(end) {
            self.evicted.set(first, last);
        }
        freed
    }

    /// Returns messages in memory that are not in the log, from the end of the index but in rising
    /// order: at most `max`, at most one chunk. To be appended and then
    /// [`QueueIndex::mark_stored`].
    pub fn unstored(&mut self, max: usize) -> Vec<UnstoredMessage> {
        let (mut found, mut end) = (Vec::new(), self.slots.len());
        while found.is_empty() && self.unstored > 0 {
            self.spilled.count_look();
            let Some(at) = self.slot_before(end, &self.spilled) else { break };
            if let Some(chunk) = self.slots[at].chunk().filter(|chunk| chunk.unstored() > 0) {
                found = unstored_of(chunk, max);
                // What is not found here has no body, and cannot be written.
                if !found.is_empty() {
                    break;
                }
            }
            end = at;
        }
        if let Some((first, last)) = self.numbers_from(end) {
            self.spilled.set(first, last);
        }
        found
    }

    /// Returns the slot before `end`, or before all that is cleared there.
    fn slot_before(&self, end: usize, cleared: &ClearedRange) -> Option<usize> {
        let at = end.checked_sub(1)?;
        if !cleared.has(&self.slots[at]) {
            return Some(at);
        }
        self.slots.partition_point(|slot| slot.first_seq() < cleared.first()).checked_sub(1)
    }

    /// Returns the numbers from this slot on; `None` behind the last, and if there are none.
    fn numbers_from(&self, slot: usize) -> Option<(Seq, Seq)> {
        let first = self.slots.get(slot).filter(|slot| !slot.is_empty())?;
        Some((first.first_seq(), self.last_seq()?))
    }
}

/// Returns the last messages of a chunk that only memory has, at most `max`, in rising order.
fn unstored_of(chunk: &Chunk, max: usize) -> Vec<UnstoredMessage> {
    let unstored = chunk.entries().iter().enumerate().rev().filter_map(|(at, entry)| {
        let message = chunk.body(at).filter(|_| !entry.is_stored())?;
        Some(UnstoredMessage {
            seq: entry.seq,
            expires_at: chunk.expiry(at),
            priority: entry.priority,
            message: Arc::clone(message),
        })
    });
    let mut found: Vec<_> = unstored.take(max).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use quelea_model::{Message, QueueId};

    use super::*;
    use crate::{Entry, EntryFlags, Loaded, Location};

    /// Bytes of the bodies that may stay.
    const BYTES_MAX: usize = 16_000_000;
    /// Messages by which a queue grows between two looks.
    const GROWTH: u64 = 100_000;

    fn push(index: &mut QueueIndex, seq: u64, flags: EntryFlags) {
        let body = Arc::new(Message::new("", "q", &[0, 0], vec![b'x'; 100].into()));
        let entry = Entry { seq: Seq(seq), flags, body_bytes: 100, ..Entry::default() };
        index.push_back(entry, None, Some(body));
    }

    /// Frees an eighth as the broker does: evicts, and writes 512 at a time.
    fn relieve(index: &mut QueueIndex) {
        let target = BYTES_MAX - BYTES_MAX / 8;
        loop {
            index.evict(index.resident_bytes().saturating_sub(target));
            if index.resident_bytes() <= target {
                return;
            }
            let unstored = index.unstored(512);
            assert!(!unstored.is_empty(), "nothing left to write");
            for message in unstored {
                let location = Location { segment: 1, offset: message.seq.0 as u32 };
                assert!(index.mark_stored(message.seq, location));
            }
        }
    }

    fn read_back(index: &mut QueueIndex, seq: u64) {
        let message = Arc::new(Message::new("", "q", &[0, 0], vec![b'y'; 100].into()));
        let (token, queue, errors) = (0, QueueId(1), Vec::new());
        let messages = vec![(Seq(seq), message)];
        index.fill(Loaded { token, queue, messages, range: None, errors });
    }

    fn looked_at(index: &QueueIndex) -> u64 {
        index.evicted.looked_at() + index.spilled.looked_at()
    }

    /// Returns how many slots are looked at while a queue grows, again and again by as much.
    fn slots_looked_at(flags: EntryFlags) -> Vec<u64> {
        let mut index = QueueIndex::new();
        let mut before = 0;
        let steps = (0..6).map(|round| {
            for seq in round * GROWTH + 1..=(round + 1) * GROWTH {
                push(&mut index, seq, flags);
                if index.resident_bytes() > BYTES_MAX {
                    relieve(&mut index);
                }
            }
            looked_at(&index) - std::mem::replace(&mut before, looked_at(&index))
        });
        steps.collect()
    }

    #[test]
    fn freeing_costs_no_more_in_a_longer_queue() {
        for flags in [EntryFlags::NONE, EntryFlags::STORED] {
            let steps = slots_looked_at(flags);
            let (first, last) = (steps[2], steps[5]);
            assert!(last > 0 && last <= first + first / 4, "{flags:?}: {steps:?}");
            assert!(last <= GROWTH / 100, "{flags:?}: {last} slots for {GROWTH} messages");
        }
    }

    #[test]
    fn a_stretch_that_was_freed_is_not_walked_again() {
        let mut index = QueueIndex::new();
        (1..=100_000).for_each(|seq| push(&mut index, seq, EntryFlags::STORED));
        index.evict(usize::MAX);
        let before = looked_at(&index);
        for _ in 0..10 {
            read_back(&mut index, 1);
            assert!(index.evict(usize::MAX) > 0);
        }
        assert!(looked_at(&index) - before <= 20, "{} slots", looked_at(&index) - before);
    }

    #[test]
    fn what_cannot_be_dropped_is_not_looked_at() {
        let mut index = QueueIndex::new();
        (1..=50_000).for_each(|seq| push(&mut index, seq, EntryFlags::NONE));
        assert_eq!(index.evict(1_000_000), 0);
        assert_eq!(looked_at(&index), 0);
        assert!(index.mark_stored(Seq(25_000), Location { segment: 1, offset: 1 }));
        let bytes = index.evict(1_000_000);
        assert!(bytes > 0, "the one that is in the log goes");
        assert_eq!(index.evict(1_000_000), 0);
    }

    #[test]
    fn a_body_read_back_into_a_freed_stretch_is_freed_again() {
        let mut index = QueueIndex::new();
        (1..=20_000).for_each(|seq| push(&mut index, seq, EntryFlags::STORED));
        let all = index.resident_bytes();
        assert_eq!(index.evict(usize::MAX), all);
        for seq in [1, 700, 10_000, 19_999, 20_000] {
            read_back(&mut index, seq);
        }
        push(&mut index, 20_001, EntryFlags::STORED);
        assert_eq!(index.evict(usize::MAX), all / 20_000 * 6);
        assert_eq!(index.resident_bytes(), 0);
    }
}
