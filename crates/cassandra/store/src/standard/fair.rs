//! Fair queues: a standard queue whose messages have groups. One whose group has very many in flight comes after the others.
//!
//! What is in flight is counted in the index once a second, while there may be a noisy group; in between what is delivered and
//! deleted here counts. Whether there may be one follows from what was delivered here, less what was deleted here, until the
//! visibility timeouts end; the other front-ends are taken to do as much.

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

/// While a group may have so many in flight, all are counted, and how often.
const SUSPICIOUS_IN_FLIGHT: i64 = NOISY_IN_FLIGHT_MIN / 2;
const COUNTED_EVERY_US: i64 = 1_000_000;

/// Entries that a read of the head takes in more while a group is noisy: what is behind more of them waits.
const ROWS_MORE: usize = 500;

/// Returns the number of a message's group; 0 of none.
pub(crate) fn group_of(id: Option<&str>) -> i64 {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return 0 };
    let digest = Sha256::digest(id);
    let first: [u8; 8] = std::array::from_fn(|at| digest[at]);
    match i64::from_le_bytes(first) {
        0 => 1,
        number => number,
    }
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
    /// When all were counted last; what each group had then, and of that what was counted here.
    counted_at_us: Option<i64>,
    counted: FxHashMap<i64, i64>,
    counted_all: i64,
    held_then: FxHashMap<i64, i64>,
    all_then: i64,
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

    /// Returns whether it is time to count all; the caller does it then.
    pub(crate) fn begins_count(&mut self, now_us: i64, front_ends: usize) -> bool {
        self.forget_until(now_us);
        let front_ends = front_ends.max(1) as i64;
        let is_suspicious = |(group, held): (&i64, &i64)| {
            *group != 0 && held.saturating_mul(front_ends) >= SUSPICIOUS_IN_FLIGHT
        };
        let is_fresh = self
            .counted_at_us
            .is_some_and(|at_us| (0..COUNTED_EVERY_US).contains(&(now_us - at_us)));
        let begins = !is_fresh && self.held.iter().any(is_suspicious);
        if begins {
            self.counted_at_us = Some(now_us);
        }
        if !is_fresh {
            self.counts_anew();
        }
        begins
    }

    /// These groups' messages are in flight, one for each.
    pub(crate) fn counted(&mut self, groups: impl Iterator<Item = i64>) {
        self.counts_anew();
        for group in groups {
            *self.counted.entry(group).or_default() += 1;
            self.counted_all += 1;
        }
    }

    /// What is counted here is counted from now on.
    fn counts_anew(&mut self) {
        self.counted.clear();
        (self.counted_all, self.all_then) = (0, self.all);
        self.held_then.clone_from(&self.held);
    }

    /// Returns how many entries more a read of the head is to take in.
    pub(crate) fn rows_more(&self) -> usize {
        if self.counted.keys().any(|group| self.is_noisy(*group)) { ROWS_MORE } else { 0 }
    }

    /// Forgets those whose visibility timeout is over.
    fn forget_until(&mut self, now_us: i64) {
        while let Some(first) = self.ends.first_entry().filter(|first| first.key().0 <= now_us) {
            let (group, change) = first.remove();
            self.add(group, -change);
        }
    }

    fn is_noisy(&self, group: i64) -> bool {
        let of = |held: &FxHashMap<i64, i64>| held.get(&group).copied().unwrap_or_default();
        let in_flight = of(&self.counted) + of(&self.held) - of(&self.held_then);
        let all = self.counted_all + self.all - self.all_then;
        group != 0 && in_flight >= NOISY_IN_FLIGHT_MIN && in_flight.saturating_mul(NOISY_PART) > all
    }

    /// So many were chosen.
    pub(crate) fn chose(&mut self, count: usize) {
        self.choices = self.choices.wrapping_add(count as u32);
    }

    /// Returns the entries in the order in which they are to be taken, those of noisy groups after
    /// the others, save every tenth; and among how many of them one may choose, if one may among so
    /// many.
    pub(crate) fn in_turn(&self, entries: Vec<Entry>, k: usize) -> (Vec<Entry>, usize) {
        if !self.has_groups {
            return (entries, k);
        }
        let (noisy, quiet): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| self.is_noisy(entry.group));
        if noisy.is_empty() || quiet.is_empty() {
            return (if quiet.is_empty() { noisy } else { quiet }, k);
        }
        let k = k.min(quiet.len());
        let mut choices = self.choices;
        let mut ordered = Vec::with_capacity(noisy.len() + quiet.len());
        let (mut noisy, mut quiet) = (noisy.into_iter(), quiet.into_iter());
        while !quiet.as_slice().is_empty() {
            choices = choices.wrapping_add(1);
            let next = match choices % NOISY_EVERY {
                0 => noisy.next().or_else(|| quiet.next()),
                _ => quiet.next(),
            };
            ordered.extend(next);
        }
        ordered.extend(noisy);
        (ordered, k)
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

    /// Returns a [`Fairness`] that has counted so many messages in flight of each group; what was
    /// delivered here is some of it.
    fn with_in_flight(of_groups: &[(i64, usize)]) -> Fairness {
        let mut fair = Fairness::default();
        (0..SUSPICIOUS_IN_FLIGHT).for_each(|_| fair.delivered(7, LATE));
        assert!(fair.begins_count(1, 1));
        fair.counted(
            of_groups.iter().flat_map(|(group, count)| std::iter::repeat_n(*group, *count)),
        );
        fair
    }

    #[test]
    fn groups_have_numbers_of_their_own() {
        let numbers: std::collections::BTreeSet<i64> =
            (0..1_000).map(|number| group_of(Some(&format!("group {number}")))).collect();
        assert_eq!((numbers.len(), numbers.contains(&0)), (1_000, false));
        assert_eq!((group_of(None), group_of(Some(""))), (0, 0));
    }

    #[test]
    fn a_group_is_noisy_with_thirty_in_flight_that_are_more_than_a_tenth() {
        let is_any_noisy = |of_groups: &[(i64, usize)]| with_in_flight(of_groups).rows_more() > 0;
        assert!(is_any_noisy(&[(7, 30)]));
        assert!(!is_any_noisy(&[(7, 29)]));
        let many: Vec<(i64, usize)> = (1..=11).map(|group| (group, 30)).collect();
        assert!(!is_any_noisy(&many), "each has less than a tenth");
        assert!(!is_any_noisy(&[(7, 1), (0, 200)]), "what has no group is not noisy");
        assert!(!is_any_noisy(&[(7, 30), (0, 270)]) && is_any_noisy(&[(7, 30), (0, 269)]));
    }

    #[test]
    fn all_are_counted_once_a_second_while_a_group_may_be_noisy() {
        let mut fair = Fairness::default();
        (0..5).for_each(|_| fair.delivered(7, 9 * COUNTED_EVERY_US));
        assert!(!fair.begins_count(1, 2));
        assert!(fair.begins_count(2, 3), "the others deliver as much");
        assert!(!fair.begins_count(3, 3));
        assert!(fair.begins_count(2 + COUNTED_EVERY_US, 3));
        assert!(!fair.begins_count(9 * COUNTED_EVERY_US, 3), "none is in flight any more");
        assert!(fair.held.is_empty() && fair.ends.is_empty() && fair.all == 0);
    }

    #[test]
    fn between_two_counts_what_happens_here_counts() {
        let mut fair = with_in_flight(&[(7, 30)]);
        fair.settled(7, LATE, 1);
        assert_eq!(fair.rows_more(), 0);
        fair.delivered(7, LATE + 1);
        assert_eq!(fair.rows_more(), ROWS_MORE);
        // A count that is old says nothing.
        assert!(!fair.begins_count(LATE + 1 + COUNTED_EVERY_US, 1));
        assert_eq!(fair.rows_more(), 0);
    }

    #[test]
    fn noisy_groups_come_after_the_others_save_every_tenth_choice() {
        let fair = with_in_flight(&[(7, 30)]);
        let entries: Vec<Entry> =
            (0..40).map(|number| entry(number, if number < 20 { 7 } else { 2 })).collect();
        let (ordered, k) = fair.in_turn(entries.clone(), 50);
        assert_eq!(k, 20, "nobody chooses among noisy ones");
        assert_eq!(groups(&ordered[..11]), [2, 2, 2, 2, 2, 2, 2, 2, 2, 7, 2]);
        assert_eq!(ordered.len(), 40);
        let noisy: Vec<u128> =
            ordered.iter().filter(|one| one.group == 7).map(|one| one.message.as_u128()).collect();
        assert_eq!(noisy, (0..20).collect::<Vec<_>>(), "in their order");
        assert_eq!(with_in_flight(&[(7, 29)]).in_turn(entries.clone(), 50), (entries, 50));
    }

    #[test]
    fn who_takes_one_at_a_time_takes_one_in_ten_of_noisy_groups() {
        let mut fair = with_in_flight(&[(7, 30)]);
        let entries: Vec<Entry> =
            (0..18).map(|number| entry(number, if number < 9 { 7 } else { 2 })).collect();
        let mut noisy = 0;
        for _ in 0..100 {
            let (ordered, _) = fair.in_turn(entries.clone(), 1);
            noisy += usize::from(ordered[0].group == 7);
            fair.chose(1);
        }
        assert_eq!(noisy, 10);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut fair = Fairness::default();
        (0..=REMEMBERED_MAX).for_each(|_| fair.delivered(7, LATE));
        assert_eq!((fair.ends.len(), fair.all), (1, 1));
    }
}
