//! When a failed call is made again.

use std::time::Duration;

/// How often a call is tried, and how long is waited between: a random part of a span that doubles
/// from try to try, so that clients that failed together do not come back together ("full jitter", which backon does not have).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all; 1 is no retry.
    pub attempts: u32,
    /// The span after the first try.
    pub first: Duration,
    /// The longest span.
    pub longest: Duration,
}

impl Default for Retry {
    /// Returns six tries, some 1.5 s of waiting in all: a restart of the service is survived by the
    /// worker loop, which tries for ever; a single call should rather fail soon.
    fn default() -> Self {
        Self { attempts: 6, first: Duration::from_millis(100), longest: Duration::from_secs(5) }
    }
}

impl Retry {
    /// Returns a single try: every failure is the caller's.
    #[must_use]
    pub const fn never() -> Self {
        Self { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO }
    }

    /// Returns the span after so many failures.
    pub(crate) fn span(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.longest)
    }

    /// Returns how long to wait after so many failures.
    pub(crate) fn wait(&self, failures: u32, random: &mut fastrand::Rng) -> Duration {
        self.span(failures).mul_f64(random.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_doubles_up_to_the_longest() {
        let retry = Retry {
            attempts: 100,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(1),
        };
        let spans: Vec<u128> =
            [1, 2, 3, 4, 5, 99].map(|failures| retry.span(failures).as_millis()).to_vec();
        assert_eq!(spans, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn the_wait_is_a_random_part_of_the_span() {
        let retry = Retry::default();
        let mut random = fastrand::Rng::with_seed(3);
        let waits: Vec<Duration> = (0..100).map(|_| retry.wait(4, &mut random)).collect();
        let span = retry.span(4);
        assert!(waits.iter().all(|wait| *wait < span));
        assert!(waits.iter().any(|wait| *wait < span / 4));
        assert!(waits.iter().any(|wait| *wait > span * 3 / 4));
    }
}
