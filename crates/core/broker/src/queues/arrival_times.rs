//! When messages came, without a time beside each: their numbers grow, so that a few pairs of a number and a time say it of
//! all of them.

use std::collections::VecDeque;

use quelea_model::{Seq, Timestamp};

/// How far apart times are that are remembered, and so how exact the newest are.
const EVERY_MS: u64 = 1_000;

/// Of more than so many (32 KiB) those are forgotten without which an age is still right to four parts in [`PARTS`]. After
/// that there are some 1,300 left of two weeks.
const TIMES_MAX: usize = 2_048;

/// See [`TIMES_MAX`].
const PARTS: u64 = 128;

/// Numbers and times, both growing.
#[derive(Debug, Default)]
pub(crate) struct ArrivalTimes {
    times: VecDeque<(Seq, Timestamp)>,
    due_at: Timestamp,
}

impl ArrivalTimes {
    /// A message of this number comes now. Those after it have greater ones.
    #[inline]
    pub(crate) fn note(&mut self, seq: Seq, now: Timestamp) {
        if now >= self.due_at {
            self.remember(seq, now);
        }
    }

    #[cold]
    fn remember(&mut self, seq: Seq, now: Timestamp) {
        self.due_at = now.plus_ms(EVERY_MS);
        self.times.push_back((seq, now));
        if self.times.len() > TIMES_MAX {
            self.thin_out(now);
        }
    }

    fn thin_out(&mut self, now: Timestamp) {
        let mut kept: VecDeque<(Seq, Timestamp)> = VecDeque::with_capacity(TIMES_MAX + 1);
        for (seq, at) in self.times.drain(..).rev() {
            let age_ms = now.as_millis().saturating_sub(at.as_millis());
            let is_far = |(_, later): &(Seq, Timestamp)| {
                later.as_millis().saturating_sub(at.as_millis()) > age_ms / PARTS
            };
            if kept.front().is_none_or(is_far) {
                kept.push_front((seq, at));
            }
        }
        self.times = kept;
    }

    /// Returns when the message came, or up to a second before that, or by three hundredths of its age. `None`:
    /// before the broker's start.
    pub(crate) fn of(&self, seq: Seq) -> Option<Timestamp> {
        let later = self.times.partition_point(|(noted, _)| *noted <= seq);
        self.times.get(later.checked_sub(1)?).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_message_came_within_a_second_of_what_is_said() {
        let mut times = ArrivalTimes::default();
        for seq in 100..1_000 {
            times.note(Seq(seq), at(seq * 300));
        }
        assert_eq!(times.of(Seq(99)), None);
        for seq in 100..1_000 {
            let said = times.of(Seq(seq)).unwrap().as_millis();
            assert!((0..EVERY_MS).contains(&(seq * 300 - said)), "{seq}: {said}");
        }
        assert_eq!(times.of(Seq(5_000)), times.of(Seq(999)));
    }

    #[test]
    fn what_is_old_is_told_less_exactly_and_memory_is_bounded() {
        let mut times = ArrivalTimes::default();
        for seq in 0..1_000_000 {
            times.note(Seq(seq), at(seq * 1_000));
        }
        assert!(times.times.len() <= TIMES_MAX);
        for age in [0, 100, 500, 5_000, 50_000, 500_000] {
            let seq = 999_999 - age;
            let error = seq - times.of(Seq(seq)).unwrap().as_millis() / 1_000;
            assert!(error <= 1 + 4 * age / PARTS, "{age} s ago: {error} s");
        }
    }
}
