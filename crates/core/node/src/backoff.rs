//! How long to wait before something is tried again: backon counts, this says how far.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// Short enough that a queue that is declared anew is found at once, as people see it.
const FIRST: Duration = Duration::from_millis(100);

/// Long enough that a peer that is gone for hours costs nothing.
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from one failure to the next.
#[derive(Debug)]
pub struct Backoff(ExponentialBackoff);

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// Begins with the shortest wait.
    #[must_use]
    pub fn new() -> Self {
        let waits = ExponentialBuilder::new().with_min_delay(FIRST).with_max_delay(LONGEST);
        Self(waits.without_max_times().build())
    }

    /// The wait before the next attempt; the one after that is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        self.0.next().unwrap_or(LONGEST)
    }

    /// It went well: the next failure is the first one again.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new();
        let waits: Vec<_> = (0..8).map(|_| backoff.next_wait().as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.reset();
        assert_eq!(backoff.next_wait(), FIRST);
    }
}
