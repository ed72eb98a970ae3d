//! The one clock: wall time at the start, moved on by the monotonic clock, so that a step of the
//! system's time neither expires messages at once nor stops timers.

use std::time::{Duration, Instant, SystemTime};

use quelea_model::{Time, Timestamp};

/// The source of the core's `now`. Cheap to copy; read once per turn, never per message.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base_ms: u64,
    started: Instant,
}

impl Clock {
    /// Returns a clock that agrees with the system's wall clock now and never jumps after.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { base_ms: wall.as_millis() as u64, started: Instant::now() }
    }

    /// Returns the time now, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Returns the time at an instant; the clock's start if that was before.
    pub(crate) fn at(&self, instant: Instant) -> Timestamp {
        let since = instant.saturating_duration_since(self.started);
        Timestamp::from_millis(self.base_ms).plus_ms(since.as_millis() as u64)
    }

    /// Returns the microseconds from the clock's start to an instant; 0 if that was before.
    pub(crate) fn time(&self, at: Instant) -> Time {
        Time::ZERO.after(at.saturating_duration_since(self.started))
    }

    /// Returns the instant at which [`Clock::now`] first returns `at`; at once if that has passed.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        let after_start = at.since_ms(Timestamp::from_millis(self.base_ms));
        // Far beyond any deadline that matters, and no overflow of `Instant`.
        const LATER_MS_MAX: u64 = 365 * 24 * 3_600_000;
        self.started + Duration::from_millis(after_start.min(LATER_MS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_due_at_its_instant_and_never_overflows() {
        let clock = Clock::start();
        let now = clock.now();
        assert!(clock.instant(now) <= Instant::now());
        assert!(clock.instant(now.plus_ms(60_000)) > Instant::now());
        assert!(clock.instant(Timestamp::from_millis(u64::MAX)) > Instant::now());
        assert!(clock.instant(Timestamp::ZERO) <= Instant::now());
    }
}
