//! By how much this machine's clock differs from Cassandra's. Entries are sorted by time, and are looked for where the
//! present is: a front-end whose clock is a minute behind would put its messages where nobody looks any more.

use uuid::Uuid;

/// Below this difference, in µs, the machine's own clock is taken: what is measured is no better than the answer's way.
const TOLERATED_US: i64 = 200_000;

/// Nodes whose clocks are remembered; the longest unasked is forgotten first.
const NODES_MAX: usize = 64;

/// The last measurement of each node, in µs that the machine's clock is behind it.
#[derive(Debug, Default)]
pub(crate) struct TimeOffset {
    measured: Vec<(Uuid, i64)>,
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
        self.measured.retain(|(measured, _)| *measured != node);
        if self.measured.len() == NODES_MAX {
            self.measured.remove(0);
        }
        self.measured.push((node, offset_us));
    }

    /// What has to be added to the machine's clock: the median, if it is worth it. Each node has one voice, however
    /// often it was asked; where they are even, the machine's own clock has one, too.
    pub(crate) fn correction_us(&self) -> i64 {
        let mut sorted: Vec<i64> = self.measured.iter().map(|(_, offset_us)| *offset_us).collect();
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
