//! What a queue's relays cost: counted by the time that they are there.

use quelea_elastic_proto::Time;

const HOUR_US: u64 = 3_600_000_000;

/// Counts relay time in the current hour (hours since the driver's moment zero).
#[derive(Default)]
pub(in crate::directory) struct Budget {
    hour: u64,
    /// Millionths of money times microseconds of an hour, so that nothing is lost by rounding.
    spent: u128,
    counted_at: Time,
    relays: u64,
    cost_per_hour_micros: u64,
}

impl Budget {
    /// Creates a budget that goes on from what a predecessor had spent.
    pub(in crate::directory) fn new(
        now: Time,
        cost_per_hour_micros: u64,
        spent_micros: u64,
    ) -> Self {
        Self {
            hour: now.as_micros() / HOUR_US,
            spent: u128::from(spent_micros) * u128::from(HOUR_US),
            counted_at: now,
            relays: 0,
            cost_per_hour_micros,
        }
    }

    /// From now on there are so many relays.
    pub(super) fn count(&mut self, now: Time, relays: usize) {
        let hour = now.as_micros() / HOUR_US;
        let mut from = self.counted_at.as_micros();
        if hour > self.hour {
            self.spent = 0;
            self.hour = hour;
            from = hour * HOUR_US;
        }
        self.spent += self.cost_of(now.as_micros().saturating_sub(from));
        self.counted_at = now;
        self.relays = u64::try_from(relays).unwrap_or(u64::MAX);
    }

    /// Returns what is spent in the current hour, in millionths.
    pub(in crate::directory) fn spent(&self, now: Time) -> u64 {
        let hour = now.as_micros() / HOUR_US;
        let spent = if hour > self.hour {
            self.cost_of(now.as_micros() - hour * HOUR_US)
        } else {
            self.spent + self.cost_of(now.as_micros().saturating_sub(self.counted_at.as_micros()))
        };
        u64::try_from(spent / u128::from(HOUR_US)).unwrap_or(u64::MAX)
    }

    fn cost_of(&self, us: u64) -> u128 {
        u128::from(us) * u128::from(self.relays) * u128::from(self.cost_per_hour_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_over_relays_and_begin_anew_each_hour() {
        let mut budget = Budget::new(Time::ZERO, 1_000_000, 0);
        budget.count(Time::ZERO, 2);
        assert_eq!(budget.spent(Time::ZERO.plus_ms(1_800_000)), 1_000_000);
        budget.count(Time::ZERO.plus_ms(1_800_000), 1);
        assert_eq!(budget.spent(Time::ZERO.plus_ms(2_700_000)), 1_250_000);
        assert_eq!(budget.spent(Time::ZERO.plus_ms(3_600_000 + 360_000)), 100_000);
        budget.count(Time::ZERO.plus_ms(3_600_000 + 360_000), 0);
        assert_eq!(budget.spent(Time::ZERO.plus_ms(7_000_000)), 100_000);
    }
}
