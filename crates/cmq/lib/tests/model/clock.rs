//! Time that passes only where somebody waits for it.

use std::cell::Cell;
use std::time::Duration;

use quelea_cmq_proto::Time;

std::thread_local! {
    /// All of shuttle's threads run on one of the system's.
    static NOW: Cell<Time> = const { Cell::new(Time::ZERO) };
}

/// Somebody has waited so long.
pub(crate) fn pass(within: Duration) {
    NOW.with(|now| now.set(now.get().after(within)));
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock;

impl Clock {
    pub(crate) fn start() -> Self {
        NOW.with(|now| now.set(Time::from_micros(1)));
        Self
    }

    pub(crate) fn now(&self) -> Time {
        NOW.with(Cell::get)
    }

    pub(crate) fn after(&self, duration: Duration) -> Time {
        self.now().after(duration)
    }
}

pub(crate) fn until(deadline: Option<Time>, now: Time) -> Option<Duration> {
    deadline.map(|deadline| Duration::from_micros(deadline.since_us(now)))
}
