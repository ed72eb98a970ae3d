//! A machine's own clock: it begins anywhere, and runs a little fast or slow.

use quelea_elastic_proto::Time;

/// Parts of a million: the unit of a clock's error.
const MILLION: u64 = 1_000_000;

/// Maps the run's time, in microseconds, to what a machine reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    born_us: u64,
    offset_us: u64,
    /// Microseconds that it counts in a second of the run.
    rate: u64,
}

impl Clock {
    /// Returns a clock that reads `offset_us` at `born_us`, and gains `drift_ppm` microseconds a
    /// second.
    pub(super) fn new(born_us: u64, offset_us: u64, drift_ppm: i64) -> Self {
        Self { born_us, offset_us, rate: MILLION.saturating_add_signed(drift_ppm) }
    }

    pub(super) fn read(self, now_us: u64) -> Time {
        let elapsed = now_us.saturating_sub(self.born_us);
        let counted = u128::from(elapsed) * u128::from(self.rate) / u128::from(MILLION);
        Time::from_micros(self.offset_us + counted as u64)
    }

    /// Returns the first microsecond of the run at which it reads `at` or more.
    pub(super) fn when(self, at: Time) -> u64 {
        let wanted = at.as_micros().saturating_sub(self.offset_us);
        let elapsed = (u128::from(wanted) * u128::from(MILLION)).div_ceil(u128::from(self.rate));
        self.born_us.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_reached_when_its_moment_comes() {
        for drift in [-50_000, -1, 0, 1, 50_000] {
            let clock = Clock::new(777, 1_234, drift);
            for us in [1_234, 1_235, 5_000, 1_000_003, 86_400_000_000] {
                let at = Time::from_micros(us);
                let when = clock.when(at);
                assert!(clock.read(when) >= at, "{drift} {us}");
                assert!(when == 777 || clock.read(when - 1) < at, "{drift} {us}");
            }
        }
    }
}
