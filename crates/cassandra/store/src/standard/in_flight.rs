//! How many messages of a queue are in flight, as far as that can be had cheaply: what is delivered and deleted at this
//! front-end is counted, and when that comes near the limit the index is. What others deliver is taken to be as much.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tokio::time::Instant;

use crate::limits::IN_FLIGHT_COUNTED_MS;

/// One queue's messages in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Delivered here, less what was deleted here. A message whose visibility timeout ends stays in it until the next count.
    held: AtomicI64,
    began: Instant,
    /// In ms since then; 0: never.
    counted_at_ms: AtomicU64,
    counted: AtomicU64,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            held: AtomicI64::new(0),
            began: Instant::now(),
            counted_at_ms: AtomicU64::new(0),
            counted: AtomicU64::new(0),
        }
    }
}

impl InFlight {
    /// So many were delivered.
    pub(crate) fn delivered(&self, count: usize) {
        self.held.fetch_add(count as i64, Ordering::Relaxed);
    }

    /// So many were deleted, which this or another front-end has delivered.
    pub(crate) fn deleted(&self, count: usize) {
        // Never below none: what others delivered would otherwise make room for as many more here.
        let less = |held: i64| Some(held.saturating_sub(count as i64).max(0));
        let _ = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Returns whether there may be as many as are allowed, when so many front-ends deliver.
    pub(crate) fn may_be_full(&self, front_ends: usize, limit: usize) -> bool {
        let held = self.held.load(Ordering::Relaxed).max(0).unsigned_abs();
        held.saturating_mul(front_ends.max(1) as u64) >= limit as u64 / 5 * 4
    }

    /// Returns what was counted a moment ago; `None`: it has to be counted, by the first caller
    /// who gets that.
    pub(crate) fn recall(&self) -> Option<u64> {
        let now_ms = self.began.elapsed().as_millis() as u64 + 1;
        let counted_at_ms = self.counted_at_ms.load(Ordering::Relaxed);
        let is_old =
            counted_at_ms == 0 || now_ms.saturating_sub(counted_at_ms) >= IN_FLIGHT_COUNTED_MS;
        let is_mine = is_old
            && self
                .counted_at_ms
                .compare_exchange(counted_at_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        (!is_mine).then(|| self.counted.load(Ordering::Relaxed))
    }

    /// So many were counted.
    pub(crate) fn remember(&self, counted: u64, front_ends: usize) {
        self.counted.store(counted, Ordering::Relaxed);
        self.held.store((counted / front_ends.max(1) as u64) as i64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_counted_only_when_there_may_be_too_many() {
        let in_flight = InFlight::default();
        in_flight.delivered(79);
        assert!(!in_flight.may_be_full(1, 100));
        assert!(in_flight.may_be_full(2, 100), "the others deliver as much");
        in_flight.delivered(1);
        assert!(in_flight.may_be_full(1, 100));
        in_flight.deleted(50);
        assert!(!in_flight.may_be_full(1, 100));
        in_flight.deleted(1_000);
        assert!(!in_flight.may_be_full(1, 100), "others have delivered what is deleted here");
        in_flight.delivered(80);
        assert!(in_flight.may_be_full(1, 100), "which makes no room for more");
    }

    #[test]
    fn one_counts_and_the_others_go_by_it() {
        let in_flight = InFlight::default();
        assert_eq!(in_flight.recall(), None);
        assert_eq!(in_flight.recall(), Some(0), "somebody is at it");
        in_flight.delivered(100);
        in_flight.remember(60, 2);
        assert_eq!(in_flight.recall(), Some(60));
        assert!(!in_flight.may_be_full(2, 100), "what timed out is in it no more");
    }
}
