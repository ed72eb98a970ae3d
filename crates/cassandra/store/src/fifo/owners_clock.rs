//! The clock of owners' leases: of two clocks of the machine the one that says that more time has passed, since the steady one
//! may not count while the machine is suspended, and the system's may be set.

use std::time::{Duration, Instant, SystemTime};

/// How much time has passed. It is asked again and again, and adds up what has passed in between: a step of the system's
/// clock counts once, whichever way it is set later.
#[derive(Debug)]
pub(super) struct OwnersClock {
    at: Instant,
    by_system: SystemTime,
    passed: Duration,
}

impl OwnersClock {
    pub(super) const fn new(at: Instant, by_system: SystemTime) -> Self {
        Self { at, by_system, passed: Duration::ZERO }
    }

    /// Advances the clock, and returns how much time has passed since the beginning. What the
    /// clocks say now is read while nobody else asks.
    pub(super) fn advance(&mut self, at: Instant, by_system: SystemTime) -> Duration {
        let stepped = by_system.duration_since(self.by_system).unwrap_or_default();
        self.passed += at.saturating_duration_since(self.at).max(stepped);
        (self.at, self.by_system) = (at, by_system);
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn it_goes_on_whatever_becomes_of_the_systems_clock() {
        let (began, system) = (Instant::now(), SystemTime::UNIX_EPOCH + 1_000_000 * S);
        let mut clock = OwnersClock::new(began, system);
        assert_eq!(clock.advance(began + S, system + S), S);
        // An hour forward, and back again.
        assert_eq!(clock.advance(began + 2 * S, system + 3_602 * S), 3_602 * S);
        assert_eq!(clock.advance(began + 3 * S, system + 3 * S), 3_603 * S);
        for s in 4..60 {
            assert_eq!(clock.advance(began + s * S, system + s * S), (3_600 + s) * S);
        }
    }

    #[test]
    fn it_counts_while_the_machine_is_suspended() {
        let (began, system) = (Instant::now(), SystemTime::UNIX_EPOCH + 1_000_000 * S);
        let mut clock = OwnersClock::new(began, system);
        assert_eq!(clock.advance(began + S, system + 601 * S), 601 * S);
        assert_eq!(clock.advance(began + 2 * S, system + 602 * S), 602 * S);
    }
}
