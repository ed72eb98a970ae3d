//! How much may be repeated. A path that loses because it is full must not be given more than before:
//! other systems' repetition storms began so (Aeron #654: 0.3 to 8 Gbit/s).

use crate::Time;

/// Repetitions earned: one for every [`SENT_PER_REPETITION`] datagrams sent, and [`BURST`] more in the
/// time in which that many may be repeated on a path where nothing new is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// In shares of a repetition.
    shares: u32,
    /// When time last earned something.
    refilled_at: Time,
}

/// 20 % of what is sent.
const SENT_PER_REPETITION: u32 = 5;

/// Repetitions that may follow one another at once.
const BURST: u32 = 32;

/// Time earns a burst in one round trip, but not sooner than in this: on loopback, a round trip is
/// short because the machine is idle.
const BURST_US_MIN: u64 = 4_000;

const SHARES_MAX: u32 = BURST * SENT_PER_REPETITION;

impl Budget {
    pub(super) fn new(now: Time) -> Self {
        Self { shares: SHARES_MAX, refilled_at: now }
    }

    /// A datagram left for the first time.
    pub(super) fn sent(&mut self) {
        self.shares = (self.shares + 1).min(SHARES_MAX);
    }

    /// Takes one repetition, if there is one.
    pub(super) fn take(&mut self, now: Time, round_trip_us: u64) -> bool {
        let share_us = Self::share_us(round_trip_us);
        let earned = now.since_us(self.refilled_at) / share_us;
        if earned > 0 {
            self.refilled_at = self.refilled_at.plus_us(earned * share_us);
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.shares = self.shares.saturating_add(earned).min(SHARES_MAX);
        }
        if self.shares < SENT_PER_REPETITION {
            return false;
        }
        self.shares -= SENT_PER_REPETITION;
        true
    }

    /// Returns when there will be a repetition, at the latest.
    pub(super) fn ready_at(&self, round_trip_us: u64) -> Time {
        let missing = SENT_PER_REPETITION.saturating_sub(self.shares);
        self.refilled_at.plus_us(u64::from(missing) * Self::share_us(round_trip_us))
    }

    fn share_us(round_trip_us: u64) -> u64 {
        (round_trip_us.max(BURST_US_MIN) / u64::from(SHARES_MAX)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_a_fifth_of_what_is_sent() {
        let now = Time::from_micros(1);
        let mut budget = Budget::new(now);
        let burst = core::iter::repeat_with(|| budget.take(now, 0)).take_while(|&got| got).count();
        assert_eq!(burst, 32);
        let mut repeated = 0;
        for _ in 0..1_000 {
            budget.sent();
            repeated += u32::from(budget.take(now, 0));
        }
        assert_eq!(repeated, 200);
    }

    #[test]
    fn time_earns_repetitions_when_nothing_new_is_sent() {
        let mut now = Time::ZERO;
        let mut budget = Budget::new(now);
        while budget.take(now, 50_000) {}
        let ready = budget.ready_at(50_000);
        assert!(ready > now);
        assert!(!budget.take(Time::from_micros(ready.as_micros() - 1), 50_000));
        assert!(budget.take(ready, 50_000));
        // Never more than the burst, however long nothing was repeated.
        now = ready.plus_us(3_600_000_000);
        let burst = core::iter::repeat_with(|| budget.take(now, 50_000)).take_while(|&got| got);
        assert_eq!(burst.count(), 32);
    }
}
