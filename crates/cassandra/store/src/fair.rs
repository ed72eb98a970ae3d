//! Fair queues: a standard queue whose messages have groups. One whose group has very many in flight comes after the others.
//!
//! What is in flight is what was delivered here, less what was deleted here, whoever delivered that, until the visibility
//! timeouts end. The other front-ends are taken to deliver and delete as much: so the sum over all of them is right,
//! whichever of them a deletion comes to.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::entry::Entry;

/// A group is noisy from so many of its messages in flight on, if they are more than a tenth of all.
const NOISY_IN_FLIGHT_MIN: i64 = 30;
const NOISY_PART: i64 = 10;

/// One in so many choices is of a noisy group, if there is one.
const NOISY_EVERY: u32 = 10;

/// Messages that are remembered. When there are more, all are forgotten, and no group is noisy until it is again.
const REMEMBERED_MAX: usize = 20_000;

/// Entries that a look reads more while a group is noisy: what is behind more of them waits.
const ROWS_MORE: usize = 500;

/// The number of a message's group; 0 of none.
pub(crate) fn group_of(id: Option<&str>) -> i64 {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return 0 };
    let digest = Sha256::digest(id);
    let first: [u8; 8] = std::array::from_fn(|at| digest[at]);
    i64::from_le_bytes(first).max(1)
}

/// What one queue's groups have in flight.
#[derive(Debug, Default)]
pub(crate) struct Fairness {
    held: FxHashMap<i64, i64>,
    all: i64,
    /// When a message is not in flight any more, or when its deletion need not be counted any more.
    ends: BTreeMap<(i64, u64), (i64, i64)>,
    number: u64,
    has_groups: bool,
    choices: u32,
}

impl Fairness {
    /// A message is in flight until then.
    pub(crate) fn delivered(&mut self, group: i64, until_us: i64) {
        self.has_groups |= group != 0;
        self.count(group, until_us, 1);
    }

    /// One that would have been in flight until then is not any more.
    pub(crate) fn settled(&mut self, group: i64, until_us: i64, now_us: i64) {
        if until_us > now_us {
            self.count(group, until_us, -1);
        }
    }

    fn count(&mut self, group: i64, until_us: i64, change: i64) {
        if !self.has_groups {
            return;
        }
        if self.ends.len() >= REMEMBERED_MAX {
            *self = Self { has_groups: true, ..Self::default() };
        }
        self.number += 1;
        self.ends.insert((until_us, self.number), (group, change));
        self.add(group, change);
    }

    fn add(&mut self, group: i64, change: i64) {
        self.all += change;
        let held = self.held.entry(group).or_default();
        *held += change;
        if *held == 0 {
            self.held.remove(&group);
        }
    }

    /// How many entries more a look is to read, with so many front-ends.
    pub(crate) fn rows_more(&mut self, now_us: i64, front_ends: usize) -> usize {
        if self.has_noisy(now_us, front_ends) { ROWS_MORE } else { 0 }
    }

    /// Forgets those whose visibility timeout is over; returns whether a group is noisy.
    fn has_noisy(&mut self, now_us: i64, front_ends: usize) -> bool {
        while let Some(first) = self.ends.first_entry().filter(|first| first.key().0 <= now_us) {
            let (group, change) = first.remove();
            self.add(group, -change);
        }
        self.held.keys().any(|group| self.is_noisy(*group, front_ends))
    }

    fn is_noisy(&self, group: i64, front_ends: usize) -> bool {
        let held = self.held.get(&group).copied().unwrap_or_default();
        let of_all_front_ends = held.saturating_mul(front_ends.max(1) as i64);
        group != 0
            && of_all_front_ends >= NOISY_IN_FLIGHT_MIN
            && held.saturating_mul(NOISY_PART) > self.all
    }

    /// Entries in the order in which they are to be taken: those of noisy groups after the others, save every tenth.
    pub(crate) fn in_turn(&mut self, entries: Vec<Entry>, front_ends: usize) -> Vec<Entry> {
        if !self.has_groups {
            return entries;
        }
        let (noisy, quiet): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| self.is_noisy(entry.group, front_ends));
        if noisy.is_empty() || quiet.is_empty() {
            return if quiet.is_empty() { noisy } else { quiet };
        }
        let mut ordered = Vec::with_capacity(noisy.len() + quiet.len());
        let (mut noisy, mut quiet) = (noisy.into_iter(), quiet.into_iter());
        while !quiet.as_slice().is_empty() {
            self.choices = self.choices.wrapping_add(1);
            let next = match self.choices % NOISY_EVERY {
                0 => noisy.next().or_else(|| quiet.next()),
                _ => quiet.next(),
            };
            ordered.extend(next);
        }
        ordered.extend(noisy);
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    const LATE: i64 = 1_000;

    fn entry(number: u128, group: i64) -> Entry {
        Entry { group, ..entry_for_tests(1, number) }
    }

    fn groups(entries: &[Entry]) -> Vec<i64> {
        entries.iter().map(|entry| entry.group).collect()
    }

    fn with_in_flight(of_groups: &[(i64, usize)]) -> Fairness {
        let mut fair = Fairness::default();
        for (group, count) in of_groups {
            (0..*count).for_each(|_| fair.delivered(*group, LATE));
        }
        fair
    }

    #[test]
    fn a_group_is_noisy_with_thirty_in_flight_that_are_more_than_a_tenth() {
        assert!(with_in_flight(&[(7, 30)]).has_noisy(0, 1));
        assert!(!with_in_flight(&[(7, 29)]).has_noisy(0, 1));
        assert!(with_in_flight(&[(7, 10)]).has_noisy(0, 3), "the others deliver as much");
        let many: Vec<(i64, usize)> = (1..=11).map(|group| (group, 30)).collect();
        assert!(!with_in_flight(&many).has_noisy(0, 1), "each has less than a tenth");
        assert!(
            !with_in_flight(&[(7, 1), (0, 200)]).has_noisy(0, 1),
            "what has no group is not noisy"
        );
    }

    #[test]
    fn what_is_deleted_or_visible_again_is_not_in_flight() {
        let mut fair = with_in_flight(&[(7, 30)]);
        fair.settled(7, LATE, 0);
        assert!(!fair.has_noisy(0, 1));
        fair.delivered(7, LATE + 1);
        assert!(fair.has_noisy(LATE - 1, 1));
        assert!(!fair.has_noisy(LATE, 1), "the deletion ends with what it deleted");
        assert!(!fair.has_noisy(LATE + 1, 1));
        assert!(fair.held.is_empty() && fair.ends.is_empty() && fair.all == 0);
    }

    #[test]
    fn noisy_groups_come_after_the_others_save_every_tenth_choice() {
        let mut fair = with_in_flight(&[(7, 30)]);
        let entries: Vec<Entry> =
            (0..40).map(|number| entry(number, if number < 20 { 7 } else { 2 })).collect();
        let ordered = fair.in_turn(entries.clone(), 1);
        assert_eq!(groups(&ordered[..11]), [2, 2, 2, 2, 2, 2, 2, 2, 2, 7, 2]);
        assert_eq!(ordered.len(), 40);
        let noisy: Vec<u128> =
            ordered.iter().filter(|one| one.group == 7).map(|one| one.message.as_u128()).collect();
        assert_eq!(noisy, (0..20).collect::<Vec<_>>(), "in their order");
        assert_eq!(with_in_flight(&[(7, 29)]).in_turn(entries.clone(), 1), entries);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut fair = with_in_flight(&[(7, REMEMBERED_MAX)]);
        fair.delivered(8, LATE);
        assert_eq!((fair.ends.len(), fair.all), (1, 1));
    }
}
