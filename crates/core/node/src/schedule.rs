//! When the core's next turn is, and what time it is in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_model::{Time, Timestamp};
use tokio::sync::Notify;

use crate::clock::Clock;

/// The turns of one core.
pub(crate) struct TurnSchedule {
    clock: Clock,
    wake: Arc<Notify>,
    now: Timestamp,
    /// A turn is due: its loop was woken, or it runs.
    due: bool,
    /// When the input began that the next turn deals with.
    input_since: Option<Instant>,
    turns: u64,
}

impl TurnSchedule {
    pub(crate) fn new(clock: Clock, wake: Arc<Notify>) -> Self {
        Self { now: clock.now(), clock, wake, due: false, input_since: None, turns: 0 }
    }

    /// Returns the time of this turn, or of the input before it.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) const fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns what time it is outside of a turn.
    pub(crate) fn clock_time(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns when the input began that the next turn deals with, or now.
    pub(crate) fn input_time(&self) -> Time {
        self.clock.time(self.input_since.unwrap_or_else(Instant::now))
    }

    /// Returns what time it is while a turn runs.
    pub(crate) fn time(&self) -> Time {
        self.time_at(Instant::now())
    }

    /// Returns what time it is at an instant of a turn.
    pub(crate) fn time_at(&self, now: Instant) -> Time {
        self.clock.time(now)
    }

    /// Schedules a turn after the tasks that are ready now, and returns its time. Only the first request
    /// reads the clock.
    pub(crate) fn request_turn(&mut self) -> Timestamp {
        if !self.due {
            let now = Instant::now();
            self.due = true;
            self.now = self.clock.at(now);
            self.input_since = Some(now);
            self.wake.notify_one();
        }
        self.now
    }

    /// Begins a turn now: requests until its end are part of it. Returns how long the input took
    /// that it deals with, which from now on counts as dealt with.
    pub(crate) fn begin_turn(&mut self, now: Instant) -> Duration {
        self.due = true;
        self.turns += 1;
        self.now = self.clock.at(now);
        self.input_since.take().map_or(Duration::ZERO, |since| now - since)
    }

    pub(crate) const fn end_turn(&mut self) {
        self.due = false;
    }
}
