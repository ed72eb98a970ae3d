//! The time as this front-end has it: the machine's, corrected by what Cassandra's nodes say.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use uuid::Uuid;

use crate::message_id::MessageIds;
use crate::time_offset::TimeOffset;

/// A front-end's clock, and the ids of messages that are made of its time.
pub(crate) struct Clock {
    ids: MessageIds,
    /// When this was made, by the steady clock and by the system's.
    began: Instant,
    began_at_us: i64,
    offset: Mutex<TimeOffset>,
    /// The correction of the clock, and what tests make of it.
    correction_us: AtomicI64,
    wrong_by_us: AtomicI64,
}

impl Clock {
    /// Returns a clock that goes by the system's from now on.
    pub(crate) fn of_system() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::beginning_at(since_1970.as_micros() as i64)
    }

    /// Returns a clock that says this time now, in µs since 1970.
    pub(crate) fn beginning_at(began_at_us: i64) -> Self {
        Self {
            ids: MessageIds::default(),
            began: Instant::now(),
            began_at_us,
            offset: Mutex::default(),
            correction_us: AtomicI64::new(0),
            wrong_by_us: AtomicI64::new(0),
        }
    }

    /// Returns the present in µs since 1970, as Cassandra's nodes have it.
    pub(crate) fn now_us(&self) -> i64 {
        self.machine_us() + self.correction_us()
    }

    /// Returns the present in ms since 1970, as Cassandra's nodes have it.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.now_us() / 1_000).max(0).unsigned_abs()
    }

    /// Returns by how much the machine's clock is corrected.
    pub(crate) fn correction_us(&self) -> i64 {
        self.correction_us.load(Ordering::Relaxed)
    }

    /// Returns the present as the machine has it.
    pub(crate) fn machine_us(&self) -> i64 {
        // A step of the system's clock changes nothing: until the next comparison nobody would know of it.
        let passed_us = self.began.elapsed().as_micros() as i64;
        let wrong_by_us = self.wrong_by_us.load(Ordering::Relaxed);
        self.began_at_us.saturating_add(passed_us).saturating_add(wrong_by_us)
    }

    /// Has the machine's clock be wrong by so much from now on.
    pub(crate) fn set_wrong_by_us(&self, wrong_by_us: i64) {
        self.wrong_by_us.store(wrong_by_us, Ordering::Relaxed);
    }

    /// A node said that it is `theirs_us`; it was asked when the machine's clock said `asked_us`, and its answer is here now.
    pub(crate) fn compare(&self, node: Uuid, asked_us: i64, theirs_us: i64) {
        let answered_us = self.machine_us();
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        offset.measure(node, asked_us, theirs_us, answered_us);
        self.correction_us.store(offset.correction_us(), Ordering::Relaxed);
    }

    /// Returns whether it was compared before the machine's clock stepped, with some nodes, so that
    /// they have to be asked again.
    pub(crate) fn has_stale_comparisons(&self) -> bool {
        self.offset.lock().unwrap_or_else(PoisonError::into_inner).has_stale()
    }

    /// Goes by those nodes alone that were asked since.
    pub(crate) fn forget_stale_comparisons(&self) {
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        offset.forget_stale();
        self.correction_us.store(offset.correction_us(), Ordering::Relaxed);
    }

    /// Returns the id of a message that is sent now. They only grow.
    pub(crate) fn new_message_id(&self) -> Uuid {
        self.ids.next(self.now_us(), fastrand::u64(..))
    }
}
