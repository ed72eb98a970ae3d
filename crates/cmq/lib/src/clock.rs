//! The one place where time is read.

use std::time::{Duration, Instant};

use quelea_cmq_proto::Time;

/// Monotonic time since the endpoint was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns the time since the start, in microseconds; takes some 25 ns.
    pub(crate) fn now(&self) -> Time {
        let us = self.origin.elapsed().as_micros();
        Time::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// Returns the time so long from now.
    pub(crate) fn after(&self, duration: Duration) -> Time {
        self.now().after(duration)
    }
}

/// Returns how long it is until `deadline`; none without one.
pub(crate) fn until(deadline: Option<Time>, now: Time) -> Option<Duration> {
    deadline.map(|deadline| Duration::from_micros(deadline.since_us(now)))
}
