//! Which leases have ended: those whose beat stood still for their time while somebody looked. A holder counts its time from
//! before it asked for a beat, and who looks from after it has seen it, so that the holder is the first to know.

use std::time::{Duration, Instant};

use quelea_elastic_directory::meta::LeaseId;
use rustc_hash::FxHashMap;

/// A lease as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) lease: LeaseId,
    pub(crate) beat: i64,
    pub(crate) ttl: Duration,
}

/// What has been seen of each lease.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    since: FxHashMap<LeaseId, (i64, Instant)>,
}

impl Sightings {
    /// Takes what a look found that lasted from `began` to `ended`; returns the leases whose time is over.
    pub(crate) fn look(&mut self, began: Instant, ended: Instant, found: &[Beat]) -> Vec<Beat> {
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
    const LOOK: Duration = Duration::from_millis(100);

    fn beat(lease: u64, beat: i64) -> Beat {
        Beat { lease: LeaseId(lease), beat, ttl: TTL }
    }

    struct Watcher {
        sightings: Sightings,
        start: Instant,
    }

    impl Watcher {
        fn new() -> Self {
            Self { sightings: Sightings::default(), start: Instant::now() }
        }

        /// A look that begins so long after the start.
        fn look(&mut self, at_ms: u64, found: &[Beat]) -> Vec<Beat> {
            let began = self.start + Duration::from_millis(at_ms);
            self.sightings.look(began, began + LOOK, found)
        }
    }

    #[test]
    fn a_lease_ends_when_its_beat_stood_still_for_its_time() {
        let mut watcher = Watcher::new();
        assert!(watcher.look(0, &[beat(1, 4)]).is_empty());
        assert!(watcher.look(5_099, &[beat(1, 4)]).is_empty(), "it was seen at 100 ms");
        assert_eq!(watcher.look(5_100, &[beat(1, 4)]), [beat(1, 4)]);
        assert_eq!(watcher.look(5_200, &[beat(1, 4)]), [beat(1, 4)], "until it is gone");
    }

    #[test]
    fn a_beat_begins_its_time_anew_also_after_a_long_pause_of_the_watcher() {
        let mut watcher = Watcher::new();
        assert!(watcher.look(0, &[beat(1, 4), beat(2, 1)]).is_empty());
        assert!(watcher.look(60_000, &[beat(1, 5)]).is_empty());
        assert!(watcher.look(65_000, &[beat(1, 5), beat(2, 1)]).is_empty(), "2 is seen anew");
        assert_eq!(watcher.look(65_100, &[beat(1, 5), beat(2, 1)]), [beat(1, 5)]);
    }
}
