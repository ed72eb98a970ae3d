//! Which sequences of a flow have arrived.

use crate::limits::WINDOW_DATAGRAMS_MAX;

const SPAN: u64 = WINDOW_DATAGRAMS_MAX as u64;
const WORDS: usize = WINDOW_DATAGRAMS_MAX / 64;

/// Where a sequence stands in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Above everything so far, with so many missing before it.
    New {
        /// Sequences that were skipped; none in the usual case.
        missing: u64,
    },
    /// It was missing, and is waited for.
    Missing,
    /// It has arrived before.
    Duplicate,
    /// It was given up, or is so old that nobody knows.
    Late,
    /// So far ahead of the first that is missing that it cannot be remembered.
    Beyond,
}

/// A bit for each of the last [`WINDOW_DATAGRAMS_MAX`] sequences. The bits come into being at the
/// first gap: most flows never have one.
#[derive(Debug)]
pub(super) struct Window {
    /// Everything below has arrived or is given up. Never above `highest`.
    below: u64,
    /// One past the highest that arrived, or is known to have been sent.
    highest: u64,
    /// Of the sequences from `highest - SPAN` on, at their remainder. None while nothing was missing.
    bits: Option<Box<[u64; WORDS]>>,
}

impl Window {
    /// Returns the window of a flow whose first sequence is `start`.
    pub(super) const fn starting_at(start: u64) -> Self {
        Self { below: start, highest: start, bits: None }
    }

    pub(super) const fn below(&self) -> u64 {
        self.below
    }

    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns where `sequence` stands. Only what is never repeated may leave its window behind.
    #[inline]
    pub(super) fn place(&self, sequence: u64, reliable: bool) -> Place {
        if sequence >= self.highest {
            if reliable && sequence - self.below >= SPAN {
                return Place::Beyond;
            }
            return Place::New { missing: sequence - self.highest };
        }
        if self.highest - sequence > SPAN {
            return Place::Late;
        }
        match (self.has(sequence), sequence >= self.below) {
            (true, _) => Place::Duplicate,
            (false, true) => Place::Missing,
            (false, false) => Place::Late,
        }
    }

    /// Notes that `sequence`, which is new or missing, has arrived.
    #[inline]
    pub(super) fn insert(&mut self, sequence: u64) {
        if sequence == self.highest && sequence == self.below {
            self.below += 1;
            self.highest += 1;
            if let Some(bits) = &mut self.bits {
                set(bits, sequence);
            }
            return;
        }
        if sequence >= self.highest {
            self.extend(sequence + 1);
        }
        if let Some(bits) = &mut self.bits {
            set(bits, sequence);
        }
        self.skip_arrived();
    }

    /// Everything below `next` was sent: what did not arrive is missing. `next` is not more than
    /// [`WINDOW_DATAGRAMS_MAX`] above `below` where what is lost is repeated.
    pub(super) fn extend(&mut self, next: u64) {
        if next <= self.highest {
            return;
        }
        let bits = self.bits.get_or_insert_with(|| Box::new([u64::MAX; WORDS]));
        if next - self.highest >= SPAN {
            bits.fill(0);
        } else {
            for (word, mask) in words(self.highest, next) {
                bits[word] &= !mask;
            }
        }
        self.highest = next;
    }

    /// Gives up what is missing below `floor`: it will not come. Returns how many those are.
    pub(super) fn give_up_below(&mut self, floor: u64) -> u64 {
        let floor = floor.min(self.highest);
        if floor <= self.below {
            return 0;
        }
        let missing = self.missing_between(self.below, floor);
        self.below = floor;
        self.skip_arrived();
        missing
    }

    /// Returns how many of a range are missing; what is too old to be known counts as missing.
    pub(super) fn missing_between(&self, first: u64, past: u64) -> u64 {
        let first = first.max(self.below);
        let known = first.max(self.highest.saturating_sub(SPAN)).min(past);
        let forgotten = known.saturating_sub(first);
        let Some(bits) = &self.bits else { return forgotten };
        let missing = words(known, past).map(|(word, mask)| (!bits[word] & mask).count_ones());
        forgotten + missing.map(u64::from).sum::<u64>()
    }

    /// Returns the lowest `most` ranges that arrived above the first gap, as (first, one past the
    /// last).
    pub(super) fn ranges(&self, most: usize) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut at = self.below;
        while at < self.highest && ranges.len() < most {
            let first = self.run(at, false);
            let past = self.run(first, true);
            if first < past {
                ranges.push((first, past));
            }
            at = past;
        }
        ranges
    }

    fn has(&self, sequence: u64) -> bool {
        self.bits.as_ref().is_none_or(|bits| bits[word(sequence)] & bit(sequence) != 0)
    }

    fn skip_arrived(&mut self) {
        self.below = self.run(self.below, true);
    }

    /// Returns where a run of sequences that have arrived (or have not) ends; it begins at `from`.
    fn run(&self, from: u64, arrived: bool) -> u64 {
        let Some(bits) = &self.bits else { return if arrived { self.highest } else { from } };
        let mut at = from;
        while at < self.highest {
            let found = bits[word(at)] >> (at % 64);
            let same = if arrived { found.trailing_ones() } else { found.trailing_zeros() };
            // Zeros that the shift brought in belong to the next word.
            let in_word = 64 - at % 64;
            let same = u64::from(same).min(in_word);
            at += same;
            if same < in_word {
                break;
            }
        }
        at.min(self.highest)
    }
}

/// Returns the words with the bits of a range, and which bits of each those are: a leap over the
/// whole window takes no more steps than the window has words.
fn words(first: u64, past: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut at = first;
    core::iter::from_fn(move || {
        let bits = (64 - at % 64).min(past.saturating_sub(at));
        if bits == 0 {
            return None;
        }
        let mask = u64::MAX >> (64 - bits) << (at % 64);
        let word = word(at);
        at += bits;
        Some((word, mask))
    })
}

const fn word(sequence: u64) -> usize {
    (sequence / 64) as usize % WORDS
}

const fn bit(sequence: u64) -> u64 {
    1 << (sequence % 64)
}

fn set(bits: &mut [u64; WORDS], sequence: u64) {
    bits[word(sequence)] |= bit(sequence);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_in_order_take_no_bits() {
        let mut window = Window::starting_at(0);
        for sequence in 0..100_000 {
            assert_eq!(window.place(sequence, true), Place::New { missing: 0 });
            window.insert(sequence);
        }
        assert!(window.bits.is_none());
        assert_eq!((window.below(), window.highest()), (100_000, 100_000));
        assert_eq!(window.place(99_999, true), Place::Duplicate);
        assert_eq!(window.place(1, true), Place::Late, "too old to be known");
    }

    #[test]
    fn a_gap_is_reported_until_it_is_filled() {
        let mut window = Window::starting_at(0);
        window.insert(0);
        assert_eq!(window.place(3, true), Place::New { missing: 2 });
        window.insert(3);
        window.insert(5);
        assert_eq!((window.below(), window.highest()), (1, 6));
        assert_eq!(window.ranges(8), [(3, 4), (5, 6)]);
        assert_eq!(window.ranges(1), [(3, 4)]);
        window.insert(1);
        window.insert(2);
        assert_eq!((window.below(), window.ranges(8)), (4, vec![(5, 6)]));
        window.insert(4);
        assert_eq!((window.below(), window.ranges(8)), (6, vec![]));
    }

    #[test]
    fn what_was_given_up_is_late_and_what_arrived_is_a_duplicate() {
        let mut window = Window::starting_at(0);
        for sequence in [0, 2, 5] {
            window.insert(sequence);
        }
        assert_eq!(window.give_up_below(4), 2, "1 and 3");
        assert_eq!(window.below(), 4);
        assert_eq!(window.place(1, false), Place::Late);
        assert_eq!(window.place(2, false), Place::Duplicate);
        assert_eq!(window.place(4, false), Place::Missing);
    }

    #[test]
    fn what_is_repeated_may_not_run_away_from_its_first_gap() {
        let mut window = Window::starting_at(0);
        window.insert(1);
        assert_eq!(window.place(SPAN - 1, true), Place::New { missing: SPAN - 3 });
        assert_eq!(window.place(SPAN, true), Place::Beyond);
        assert_eq!(window.place(SPAN, false), Place::New { missing: SPAN - 2 });
    }

    #[test]
    fn a_leap_beyond_the_whole_window_forgets_what_was_before() {
        let mut window = Window::starting_at(0);
        window.insert(0);
        window.insert(10 * SPAN);
        assert_eq!(window.place(0, false), Place::Late);
        assert_eq!(window.place(9 * SPAN + 1, false), Place::Missing);
        assert_eq!(window.give_up_below(10 * SPAN), 10 * SPAN - 1);
        assert_eq!(window.below(), 10 * SPAN + 1);
    }

    #[test]
    fn a_leap_takes_a_step_a_word() {
        for first in [0, 1, 63, 64, 12_345] {
            let leap = SPAN - 1;
            assert!(words(first, first + leap).count() <= WORDS + 1);
            let bits = words(first, first + leap).map(|(_, mask)| u64::from(mask.count_ones()));
            assert_eq!(bits.sum::<u64>(), leap);
            assert_eq!(words(first, first).count(), 0);
        }
    }

    #[test]
    fn leaps_of_any_length_leave_what_they_skip_missing() {
        for start in [0, 5, 63, 64, 8_000] {
            for leap in [1, 2, 62, 63, 64, 65, 127, 128, 129, 1_000, SPAN - 2, SPAN - 1] {
                let mut window = Window::starting_at(start);
                window.insert(start);
                window.insert(start + leap);
                let missing = |first: u64, past: u64| past.saturating_sub(first.max(start + 1));
                for past in [start, start + 1, start + leap / 2, start + leap] {
                    assert_eq!(window.missing_between(start, past), missing(start, past));
                }
                assert_eq!(window.missing_between(start, start + leap + 1), leap - 1);
                assert_eq!(window.place(start, false), Place::Duplicate);
                assert_eq!(window.give_up_below(start + leap), leap - 1);
            }
        }
    }

    proptest! {
        /// The window against a set of all sequences.
        #[test]
        fn the_window_knows_what_a_set_knows(
            start in 0..200u64,
            steps in prop::collection::vec((0..6u8, 0..300u64), 1..300),
        ) {
            let mut window = Window::starting_at(start);
            let (mut arrived, mut below, mut highest) = (BTreeSet::new(), start, start);
            for (what, by) in steps {
                match what {
                    0..4 => {
                        let sequence = (highest + 8).saturating_sub(by);
                        let expected = if sequence >= highest {
                            Place::New { missing: sequence - highest }
                        } else if arrived.contains(&sequence) || sequence < start {
                            Place::Duplicate
                        } else if sequence >= below {
                            Place::Missing
                        } else {
                            Place::Late
                        };
                        let found = window.place(sequence, true);
                        if sequence >= start {
                            prop_assert_eq!(found, expected, "{}", sequence);
                        }
                        if matches!(found, Place::New { .. } | Place::Missing) {
                            window.insert(sequence);
                            arrived.insert(sequence);
                            highest = highest.max(sequence + 1);
                        }
                    }
                    4 => {
                        window.extend(highest + by % 10);
                        highest += by % 10;
                    }
                    _ => {
                        let floor = (below + by % 20).min(highest);
                        let missing = (below..floor).filter(|s| !arrived.contains(s)).count();
                        prop_assert_eq!(window.give_up_below(floor), missing as u64);
                        below = below.max(floor);
                    }
                }
                while below < highest && arrived.contains(&below) {
                    below += 1;
                }
                prop_assert_eq!((window.below(), window.highest()), (below, highest));
                let reported: BTreeSet<u64> =
                    window.ranges(usize::MAX).into_iter().flat_map(|(a, b)| a..b).collect();
                let expected: BTreeSet<u64> = arrived.range(below..).copied().collect();
                prop_assert_eq!(reported, expected);
            }
        }
    }
}
