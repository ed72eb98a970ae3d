//! The one clock: the core's time is microseconds since the relay's start.

use std::time::{Duration, Instant};

use quelea_elastic_proto::Time;

/// Cheap to copy; read once per read or write of a socket, never per message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_micros(self.started.elapsed().as_micros() as u64)
    }

    /// Returns the instant at which [`Clock::now`] first returns `at`.
    pub(crate) fn instant(self, at: Time) -> Instant {
        self.started + Duration::from_micros(at.as_micros())
    }
}
