//! By how much this machine's clock differs from Cassandra's. Entries are sorted by time, and are looked for where the
//! present is: a front-end whose clock is a minute behind would put its messages where nobody looks any more.

use uuid::Uuid;

/// Below this difference, in µs, the machine's own clock is taken: what is measured is no better than the answer's way.
const TOLERATED_US: i64 = 200_000;

/// Nodes whose clocks are remembered; the longest unasked is forgotten first.
const NODES_MAX: usize = 64;

/// How long a measurement counts, in µs. Each node of a cluster is asked far more often; one that is gone is not asked any more.
const KEPT_US: i64 = 15 * 60 * 1_000_000;

/// The last measurement of each node.
#[derive(Debug, Default)]
pub(crate) struct TimeOffset {
    measured: Vec<Measured>,
}

#[derive(Debug)]
struct Measured {
    node: Uuid,
    /// How far the machine's clock was behind the node's, in µs.
    offset_us: i64,
    /// When, by the machine's clock.
    at_us: i64,
    /// Another node has since said what it had not said before: the machine's clock may have stepped, or stood still.
    is_stale: bool,
}

impl TimeOffset {
    /// A node said that it is `theirs_us`; it was asked at `asked_us`, and its answer was here at `answered_us`. An answer
    /// whose way was long beside the difference says nothing.
    pub(crate) fn measure(&mut self, node: Uuid, asked_us: i64, theirs_us: i64, answered_us: i64) {
        let half_us = (answered_us - asked_us) / 2;
        let offset_us = theirs_us - (asked_us + half_us);
        if !(0..=TOLERATED_US.max(offset_us.abs() / 4)).contains(&half_us) {
            return;
        }
        let earlier = self.measured.iter().find(|earlier| earlier.node == node);
        let has_changed = earlier.is_some_and(|earlier| {
            !earlier.is_stale && (earlier.offset_us - offset_us).abs() > TOLERATED_US
        });
        self.measured.retain(|earlier| {
            earlier.node != node && (answered_us - earlier.at_us).abs() <= KEPT_US
        });
        self.measured.iter_mut().for_each(|earlier| earlier.is_stale |= has_changed);
        if self.measured.len() == NODES_MAX {
            self.measured.remove(0);
        }
        self.measured.push(Measured { node, offset_us, at_us: answered_us, is_stale: false });
    }

    /// Returns whether nodes have to be asked anew before the correction is one.
    pub(crate) fn has_stale(&self) -> bool {
        self.measured.iter().any(|measured| measured.is_stale)
    }

    /// Forgets what is stale: those nodes were not met again.
    pub(crate) fn forget_stale(&mut self) {
        self.measured.retain(|measured| !measured.is_stale);
    }

    /// Returns what has to be added to the machine's clock: the median, if it is worth it. Each
    /// node has one voice, however often it was asked; where they are even, the machine's own clock
    /// has one, too.
    pub(crate) fn correction_us(&self) -> i64 {
        let mut sorted: Vec<i64> =
            self.measured.iter().map(|measured| measured.offset_us).collect();
        if sorted.len().is_multiple_of(2) {
            sorted.push(0);
        }
        sorted.sort_unstable();
        match sorted.get(sorted.len() / 2) {
            Some(median) if median.abs() > TOLERATED_US => *median,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Uuid = Uuid::from_u128(1);

    #[test]
    fn a_clock_that_is_a_minute_behind_is_corrected() {
        let mut offset = TimeOffset::default();
        offset.measure(NODE, 1_000_000, 61_010_000, 1_020_000);
        assert_eq!(offset.correction_us(), 60_000_000);
    }

    #[test]
    fn a_small_difference_is_left_and_one_wrong_node_is_outvoted() {
        let mut offset = TimeOffset::default();
        for theirs in [1_100_000, 900_000, 90_000_000, 1_000_000] {
            offset.measure(Uuid::from_u128(theirs as u128), 1_000_000, theirs, 1_000_000);
        }
        assert_eq!(offset.correction_us(), 0);
    }

    #[test]
    fn a_wrong_node_that_answers_often_has_one_voice() {
        let mut offset = TimeOffset::default();
        for _ in 0..5 {
            offset.measure(NODE, 1_000_000, 61_000_000, 1_000_000);
        }
        offset.measure(Uuid::from_u128(2), 1_000_000, 1_010_000, 1_000_000);
        assert_eq!(offset.correction_us(), 0, "with two nodes the machine's own clock decides");
        offset.measure(Uuid::from_u128(3), 1_000_000, 990_000, 1_000_000);
        assert_eq!(offset.correction_us(), 0);
    }

    /// Returns the offset of three nodes whose time is ours, asked at `at_us`.
    fn agreed(at_us: i64) -> TimeOffset {
        let mut offset = TimeOffset::default();
        for node in 1..=3 {
            offset.measure(Uuid::from_u128(node), at_us, at_us, at_us);
        }
        offset
    }

    #[test]
    fn old_reports_do_not_outvote_new_ones_after_a_suspension() {
        let mut offset = agreed(0);
        offset.measure(NODE, 30_000_000, 3_630_000_000, 30_000_000);
        assert_eq!(
            (offset.correction_us(), offset.has_stale()),
            (0, true),
            "one alone may be wrong"
        );
        for _ in 0..3 {
            offset.measure(NODE, 30_000_000, 3_630_000_000, 30_000_000);
        }
        assert!(offset.has_stale(), "the same node again says nothing of the others");
        offset.measure(Uuid::from_u128(2), 30_000_000, 3_630_000_000, 30_000_000);
        assert_eq!((offset.correction_us(), offset.has_stale()), (3_600_000_000, true));
        offset.measure(Uuid::from_u128(3), 30_000_000, 3_630_000_000, 30_000_000);
        assert_eq!((offset.correction_us(), offset.has_stale()), (3_600_000_000, false));
    }

    #[test]
    fn nodes_that_are_not_met_again_are_forgotten() {
        let mut offset = agreed(0);
        offset.measure(NODE, 30_000_000, 3_630_000_000, 30_000_000);
        offset.forget_stale();
        assert_eq!(offset.correction_us(), 3_600_000_000);
        let mut offset = agreed(0);
        for node in 4..=5 {
            offset.measure(Uuid::from_u128(node), KEPT_US + 1, KEPT_US + 60_000_001, KEPT_US + 1);
        }
        offset.measure(Uuid::from_u128(6), KEPT_US + 1, KEPT_US + 60_000_001, KEPT_US + 1);
        assert_eq!(offset.correction_us(), 60_000_000, "those that were replaced have no voice");
    }

    #[test]
    fn a_node_whose_clock_is_corrected_asks_the_others_again() {
        let mut offset = agreed(0);
        offset.measure(NODE, 1_000_000, 61_000_000, 1_000_000);
        for node in 2..=3 {
            offset.measure(Uuid::from_u128(node), 1_000_000, 1_000_000, 1_000_000);
        }
        assert_eq!((offset.correction_us(), offset.has_stale()), (0, false));
    }

    #[test]
    fn an_answer_that_took_too_long_says_nothing() {
        let mut offset = TimeOffset::default();
        offset.measure(NODE, 1_000_000, 1_900_000, 3_000_000);
        offset.measure(NODE, 3_000_000, 61_000_000, 1_000_000);
        assert_eq!(offset.correction_us(), 0);
    }

    #[test]
    fn a_minute_is_seen_through_a_slow_answer() {
        let mut offset = TimeOffset::default();
        offset.measure(NODE, 1_000_000, 62_000_000, 3_000_000);
        assert_eq!(offset.correction_us(), 60_000_000);
    }
}
