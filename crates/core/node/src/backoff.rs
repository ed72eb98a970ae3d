//! How long to wait before something is tried again: backon counts, this says how far.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// Short enough that a queue that is declared anew is found at once, as people see it.
const FIRST: Duration = Duration::from_millis(100);

/// Long enough that a peer that is gone for hours costs nothing.
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from one failure to the next.
#[derive(Debug)]
pub struct Backoff {
    waits: ExponentialBackoff,
    first: Duration,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// Begins with the shortest wait.
    #[must_use]
    pub fn new() -> Self {
        Self::between(FIRST, LONGEST)
    }

    /// Begins with the first wait, and has none that is longer than the longest.
    #[must_use]
    pub fn between(first: Duration, longest: Duration) -> Self {
        let waits = ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest);
        Self { waits: waits.without_max_times().build(), first, longest }
    }

    /// Returns the wait before the next attempt; the one after that is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.longest)
    }

    /// It went well: the next failure is the first one again.
    pub fn reset(&mut self) {
        *self = Self::between(self.first, self.longest);
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
