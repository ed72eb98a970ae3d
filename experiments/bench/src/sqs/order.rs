//! How far a received sequence is out of order (BDQS §V-A): the share of messages that would have to
//! be moved, and by how many places messages are off. Duplicates are not in the sequence.

use std::collections::BTreeMap;

use serde::Serialize;

/// What was found, of one sequence or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Disorder {
    /// Messages in the sequences.
    pub messages: u64,
    /// The fewest that have to be moved.
    pub out_of_order: u64,
    /// Sum over all messages of the places between where it is and where it belongs.
    pub displacement: u64,
}

impl Disorder {
    /// Returns the disorder of a sequence of messages, each given by its place in the correct one.
    /// A message that never came leaves no hole: places are counted among those that came.
    pub(crate) fn of(received: &[u32]) -> Self {
        let mut correct = received.to_vec();
        correct.sort_unstable();
        let rank = |place: &u32| correct.partition_point(|other| other < place);
        let displacement =
            received.iter().enumerate().map(|(at, place)| at.abs_diff(rank(place)) as u64).sum();
        let points = received.iter().map(|place| (u64::from(*place), u64::from(*place)));
        Self {
            messages: received.len() as u64,
            out_of_order: (received.len() - longest_rising(points)) as u64,
            displacement,
        }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            out_of_order: self.out_of_order + other.out_of_order,
            displacement: self.displacement + other.displacement,
        }
    }

    /// Returns the paper's out-of-order rate.
    pub(crate) fn rate(&self) -> f64 {
        self.out_of_order as f64 / self.messages.max(1) as f64
    }

    /// Returns the paper's average displacement.
    pub(crate) fn average_displacement(&self) -> f64 {
        self.displacement as f64 / self.messages.max(1) as f64
    }
}

/// Returns how many messages of a sequence are out of order beyond doubt. `received` is in the
/// correct order and gives for each message when its receive call began and ended: the service
/// handed it out somewhere between. Two messages whose calls overlap may have been handed out
/// either way round.
pub(crate) fn provably_out_of_order(received: &[(u64, u64)]) -> u64 {
    (received.len() - longest_rising(received.iter().copied())) as u64
}

/// Returns the length of the longest subsequence for which one point can be chosen from each
/// interval so that the points do not fall; with intervals of one point, the longest rising
/// subsequence. O(n log n).
///
/// `ends` holds, for each length that a subsequence can have, the lowest point at which one of that
/// length can end. An interval lets every subsequence that ends within it grow by one without ending
/// later, and the longest one that ends before it grow to its beginning. That is the same as to put
/// the beginning in, and to take out the lowest end behind the interval, which is surpassed.
fn longest_rising(intervals: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
    let mut length = 0;
    for (begin, end) in intervals {
        debug_assert!(begin <= end, "{begin} {end}");
        let surpassed = end.checked_add(1).and_then(|after| ends.range(after..).next());
        let surpassed = surpassed.map(|(at, count)| (*at, *count));
        match surpassed {
            Some((at, 1)) => {
                ends.remove(&at);
            }
            Some((at, count)) => {
                ends.insert(at, count - 1);
            }
            None => length += 1,
        }
        *ends.entry(begin).or_default() += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// The worked examples of BDQS §V-A.
    #[test]
    fn the_examples_of_the_paper_come_out_as_in_the_paper() {
        let swapped = Disorder::of(&[2, 1, 3, 4, 5]);
        assert_eq!((swapped.rate(), swapped.average_displacement()), (0.2, 0.4));
        let last = Disorder::of(&[2, 3, 4, 5, 1]);
        assert_eq!((last.rate(), last.average_displacement()), (0.2, 1.6));
    }

    #[test]
    fn what_is_in_order_is_in_order_though_some_never_came() {
        let gaps = Disorder::of(&[1, 2, 7, 9]);
        assert_eq!((gaps.rate(), gaps.average_displacement()), (0.0, 0.0));
        assert_eq!(Disorder::of(&[]).rate(), 0.0);
        let reversed = Disorder::of(&[4, 3, 2, 1]);
        assert_eq!((reversed.rate(), reversed.average_displacement()), (0.75, 2.0));
    }

    #[test]
    fn sequences_are_summed_by_their_messages() {
        let sum = Disorder::of(&[2, 1]).plus(Disorder::of(&[1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!((sum.rate(), sum.average_displacement()), (0.1, 0.2));
    }

    /// Returns the same length by the definition itself, over all subsequences.
    fn longest_by_trying_all(intervals: &[(u64, u64)]) -> usize {
        let holds = |subset: u32| {
            let chosen = (0..intervals.len()).filter(|at| subset & (1 << at) != 0);
            let mut point = 0;
            chosen.map(|at| intervals[at]).all(|(begin, end)| {
                point = point.max(begin);
                point <= end
            })
        };
        let subsets = 0u32..1 << intervals.len();
        subsets.filter(|subset| holds(*subset)).map(u32::count_ones).max().unwrap() as usize
    }

    #[test]
    fn the_longest_rising_subsequence_is_the_one_found_by_trying_all() {
        let mut rng = Rng::with_seed(11);
        for round in 0..2_000 {
            let length = rng.u64(..) % 9;
            let widest = rng.u64(..) % 6 + 1;
            let intervals: Vec<(u64, u64)> = (0..length)
                .map(|_| (rng.u64(..) % 12, rng.u64(..) % widest))
                .map(|(begin, width)| (begin, begin + width))
                .collect();
            let found = longest_rising(intervals.iter().copied());
            assert_eq!(found, longest_by_trying_all(&intervals), "round {round}: {intervals:?}");
        }
    }

    #[test]
    fn receives_that_overlap_prove_nothing() {
        // The second message's call ended first, but the first one's had begun by then.
        assert_eq!(provably_out_of_order(&[(0, 10), (2, 5), (6, 9)]), 0);
        // Here the first message's call began after the second's had ended.
        assert_eq!(provably_out_of_order(&[(6, 10), (2, 5), (11, 12)]), 1);
    }
}
