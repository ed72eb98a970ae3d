//! Which leases have ended: those whose beat stood still for their time while somebody read it. A holder counts its time from
//! before it asked for a beat, and who reads it from after it has seen it, so that the holder is the first to know.

use std::time::{Duration, Instant};

use quelea_elastic_directory::meta::LeaseId;
use rustc_hash::FxHashMap;

/// A lease as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedLease {
    pub(crate) lease: LeaseId,
    pub(crate) beat: i64,
    pub(crate) ttl: Duration,
}

/// Since when each lease has had the beat that was read last.
#[derive(Debug, Default)]
pub(crate) struct LeaseObservations {
    since: FxHashMap<LeaseId, (i64, Instant)>,
}

impl LeaseObservations {
    /// Takes what a read of all leases found that lasted from `began` to `ended`; returns the leases whose time is over.
    pub(crate) fn observe(
        &mut self,
        began: Instant,
        ended: Instant,
        found: &[ObservedLease],
    ) -> Vec<ObservedLease> {
        let mut before = std::mem::take(&mut self.since);
        let mut over = Vec::new();
        for seen in found {
            let since = match before.remove(&seen.lease) {
                Some((beat, since)) if beat == seen.beat => since,
                _ => ended,
            };
            self.since.insert(seen.lease, (seen.beat, since));
            if began.saturating_duration_since(since) >= seen.ttl {
                over.push(*seen);
            }
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(5);
    const READ_TIME: Duration = Duration::from_millis(100);

    fn beat(lease: u64, beat: i64) -> ObservedLease {
        ObservedLease { lease: LeaseId(lease), beat, ttl: TTL }
    }

    struct Watcher {
        observations: LeaseObservations,
        start: Instant,
    }

    impl Watcher {
        fn new() -> Self {
            Self { observations: LeaseObservations::default(), start: Instant::now() }
        }

        /// Observes what a read found that begins so long after the start. Returns the leases whose
        /// time is over.
        fn observe(&mut self, at_ms: u64, found: &[ObservedLease]) -> Vec<ObservedLease> {
            let began = self.start + Duration::from_millis(at_ms);
            self.observations.observe(began, began + READ_TIME, found)
        }
    }

    #[test]
    fn a_lease_ends_when_its_beat_stood_still_for_its_time() {
        let mut watcher = Watcher::new();
        assert!(watcher.observe(0, &[beat(1, 4)]).is_empty());
        assert!(watcher.observe(5_099, &[beat(1, 4)]).is_empty(), "it was seen at 100 ms");
        assert_eq!(watcher.observe(5_100, &[beat(1, 4)]), [beat(1, 4)]);
        assert_eq!(watcher.observe(5_200, &[beat(1, 4)]), [beat(1, 4)], "until it is gone");
    }

    #[test]
    fn a_beat_begins_its_time_anew_also_after_a_long_pause_of_the_watcher() {
        let mut watcher = Watcher::new();
        assert!(watcher.observe(0, &[beat(1, 4), beat(2, 1)]).is_empty());
        assert!(watcher.observe(60_000, &[beat(1, 5)]).is_empty());
        assert!(watcher.observe(65_000, &[beat(1, 5), beat(2, 1)]).is_empty(), "2 is seen anew");
        assert_eq!(watcher.observe(65_100, &[beat(1, 5), beat(2, 1)]), [beat(1, 5)]);
    }
}
