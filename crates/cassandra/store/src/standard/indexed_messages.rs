//! Which messages the index leads to, as a sweep remembers it: four bytes of a hash each. So it reads the index once, however long
//! that is, and then goes through the messages.
//!
//! Where the index is too long to remember all of it, half of the messages are left out, and half of the rest, and so on: the next
//! sweep, which has another seed, leaves out others. A message whose hash another one has is not found missing either.

use uuid::Uuid;

use crate::splitmix::finalize;

/// Messages that entries lead to.
#[derive(Debug)]
pub(crate) struct IndexedMessages {
    seed: u64,
    hashes: Vec<u32>,
    hashes_max: usize,
    is_sorted: bool,
    /// Only messages whose hash has none of these bits are looked at.
    left_out: u32,
}

impl IndexedMessages {
    /// Returns a set without messages yet. Of so many messages at most it remembers that they are
    /// there.
    pub(crate) fn new(hashes_max: usize, seed: u64) -> Self {
        let hashes_max = hashes_max.max(1);
        Self { seed, hashes: Vec::new(), hashes_max, is_sorted: true, left_out: 0 }
    }

    /// An entry leads to that message.
    pub(crate) fn add(&mut self, message: Uuid) {
        let hash = hash(self.seed, message);
        if hash & self.left_out != 0 {
            return;
        }
        if self.hashes.len() == self.hashes_max {
            self.make_room();
        }
        self.hashes.push(hash);
        self.is_sorted = false;
    }

    /// Returns whether an entry leads to a message, as far as is known: none does if this is
    /// `false`.
    pub(crate) fn may_lead_to(&mut self, message: Uuid) -> bool {
        let hash = hash(self.seed, message);
        if hash & self.left_out != 0 {
            return true;
        }
        self.sort();
        self.hashes.binary_search(&hash).is_ok()
    }

    fn sort(&mut self) {
        if !self.is_sorted {
            self.hashes.sort_unstable();
            self.hashes.dedup();
            self.is_sorted = true;
        }
    }

    /// Has a quarter of the room be free at least, so that it is seldom sorted.
    fn make_room(&mut self) {
        self.sort();
        while self.hashes.len() > self.hashes_max / 4 * 3 && self.left_out != u32::MAX {
            self.left_out = self.left_out << 1 | 1;
            let left_out = self.left_out;
            self.hashes.retain(|hash| hash & left_out == 0);
        }
    }
}

/// Returns half of the bits of a hash of a message's id.
fn hash(seed: u64, message: Uuid) -> u32 {
    let (high, low) = message.as_u64_pair();
    (finalize(finalize(seed ^ high) ^ low) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns messages as they follow each other in a queue.
    fn messages(count: u128) -> impl Iterator<Item = Uuid> {
        (0..count).map(|number| Uuid::from_u128(number << 64 | 7))
    }

    fn without_every_tenth(messages_max: usize, seed: u64, count: u128) -> IndexedMessages {
        let mut indexed = IndexedMessages::new(messages_max, seed);
        // The index is read twice.
        for _ in 0..2 {
            let there = messages(count).enumerate().filter(|(at, _)| at % 10 != 0);
            there.for_each(|(_, message)| indexed.add(message));
        }
        indexed
    }

    #[test]
    fn what_nothing_leads_to_is_found_and_nothing_else() {
        let mut indexed = without_every_tenth(20_000, 1, 10_000);
        for (at, message) in messages(10_000).enumerate() {
            assert_eq!(indexed.may_lead_to(message), at % 10 != 0, "{at}");
        }
    }

    #[test]
    fn of_too_long_an_index_each_sweep_checks_another_part() {
        let mut found = vec![false; 10_000];
        for seed in 0..300 {
            let mut indexed = without_every_tenth(1_000, seed, 10_000);
            assert!(indexed.hashes.len() <= 1_000 && indexed.hashes.capacity() <= 2_000);
            let mut of_this = 0;
            for (at, message) in messages(10_000).enumerate() {
                if !indexed.may_lead_to(message) {
                    assert_eq!(at % 10, 0, "an entry leads to it");
                    (found[at], of_this) = (true, of_this + 1);
                }
            }
            assert!((20..=200).contains(&of_this), "{of_this} of 1,000");
        }
        assert!(found.iter().step_by(10).all(|found| *found), "after some sweeps all are found");
    }
}
