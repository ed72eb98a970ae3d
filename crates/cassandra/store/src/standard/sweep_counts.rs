//! What became of the sweeps of queues.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a front-end's sweeps so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepStats {
    /// Queues that were swept to their end.
    pub swept: u64,
    /// Those whose sweep was broken off, and lists of queues that were.
    pub broken_off: u64,
    /// When the last sweep of all queues ended in which nothing was broken off, in ms since 1970; 0: none has.
    pub ended_at_ms: u64,
}

/// The same as it is counted.
#[derive(Debug, Default)]
pub(crate) struct SweepCounts {
    swept: AtomicU64,
    broken_off: AtomicU64,
    ended_at_ms: AtomicU64,
}

impl SweepCounts {
    pub(crate) fn stats(&self) -> SweepStats {
        SweepStats {
            swept: self.swept.load(Ordering::Relaxed),
            broken_off: self.broken_off.load(Ordering::Relaxed),
            ended_at_ms: self.ended_at_ms.load(Ordering::Relaxed),
        }
    }
    /// A queue was swept to its end.
    pub(crate) fn on_swept(&self) {
        self.swept.fetch_add(1, Ordering::Relaxed);
    }

    /// A sweep was broken off.
    pub(crate) fn on_broken_off(&self) {
        self.broken_off.fetch_add(1, Ordering::Relaxed);
    }

    /// All queues were swept by now.
    pub(crate) fn on_whole(&self, now_ms: u64) {
        self.ended_at_ms.store(now_ms, Ordering::Relaxed);
    }
}
