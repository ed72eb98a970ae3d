//! The open-loop schedule: when each message *should* be sent.
//!
//! A load generator that waits for a slow broker before it sends the next message leaves out just
//! those samples that would have been slow (coordinated omission). So with `--rate` every message
//! has an intended time that does not depend on the broker, and latency is measured from there:
//! a stall of 100 ms at 1,000 msg/s shows as 100 slow messages, not as one.

use crate::clock::SECOND_NS;

/// Intended sending times at a fixed rate, exact over any length of time: the remainder of
/// `1 s / rate` is carried, not rounded away.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    next_ns: u64,
    step_ns: u64,
    step_remainder: u64,
    remainder: u64,
    rate: u64,
}

impl Schedule {
    /// Returns the share of one of `publishers` in `rate` messages a second in all, from `start_ns`
    /// on. The publishers' times interleave evenly: publisher `index` begins `index / rate` seconds
    /// after the first.
    pub(crate) fn share(rate: u64, index: u64, publishers: u64, start_ns: u64) -> Self {
        debug_assert!(rate > 0 && publishers > index, "{rate} {publishers} {index}");
        let step = u128::from(SECOND_NS) * u128::from(publishers);
        let offset = u128::from(SECOND_NS) * u128::from(index) / u128::from(rate);
        let narrow = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        Self {
            next_ns: start_ns.saturating_add(narrow(offset)),
            step_ns: narrow(step / u128::from(rate)),
            step_remainder: narrow(step % u128::from(rate)),
            remainder: 0,
            rate,
        }
    }

    /// Returns when the next message is to be sent.
    pub(crate) const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next message, if its intended time has come: returns that time, and moves on to
    /// the message after it.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_ns > now_ns {
            return None;
        }
        let due = self.next_ns;
        self.remainder += self.step_remainder;
        let carry = u64::from(self.remainder >= self.rate);
        self.remainder -= carry * self.rate;
        self.next_ns = due.saturating_add(self.step_ns).saturating_add(carry);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latencies;

    fn due(schedule: &mut Schedule, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| schedule.take_due(now)).collect()
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_is_kept_exactly() {
        for rate in [1, 3, 7, 30_000, 44_100, 999_983] {
            let mut schedule = Schedule::share(rate, 0, 1, 500);
            let sent = due(&mut schedule, 500 + 10 * SECOND_NS - 1);
            assert_eq!(sent.len() as u64, 10 * rate);
            assert_eq!(schedule.next_ns(), 500 + 10 * SECOND_NS, "rate {rate}");
        }
    }

    #[test]
    fn the_publishers_of_a_run_interleave_and_sum_up_to_the_rate() {
        let mut all: Vec<u64> = (0..4)
            .flat_map(|index| due(&mut Schedule::share(1_000, index, 4, 0), SECOND_NS - 1))
            .collect();
        all.sort_unstable();
        let expected: Vec<u64> = (0..1_000).map(|k| k * 1_000_000).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut schedule = Schedule::share(100, 0, 1, 1_000);
        assert_eq!(schedule.take_due(999), None);
        assert_eq!(schedule.take_due(1_000), Some(1_000));
        assert_eq!(schedule.take_due(1_000), None);
    }

    #[test]
    fn a_stall_counts_for_every_message_due_in_it() {
        // 1,000 msg/s; the broker takes 1 ms a message but stands still from 1.0 s to 1.1 s.
        let mut schedule = Schedule::share(1_000, 0, 1, 0);
        let mut latencies = Latencies::new();
        while schedule.next_ns() < 2 * SECOND_NS {
            let intended = schedule.next_ns();
            let stalled = (SECOND_NS..SECOND_NS + 100_000_000).contains(&intended);
            let sent = if stalled { SECOND_NS + 100_000_000 } else { intended };
            for stamp in due(&mut schedule, sent) {
                latencies.record_since(stamp, sent + 1_000_000);
            }
        }
        let found = latencies.percentiles();
        assert_eq!(found.count, 2_000);
        // 100 of 2,000 messages waited, evenly from 1 to 101 ms: without the correction one would.
        assert!((found.max_ms - 101.0).abs() < 0.5, "{found:?}");
        assert!((found.p99_ms - 81.0).abs() < 1.5, "{found:?}");
        assert!((found.p50_ms - 1.0).abs() < 0.1, "{found:?}");
    }
}
