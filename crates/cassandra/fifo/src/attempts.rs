//! Receives that their callers named, so that one whose answer was lost can be repeated.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::limits::{ATTEMPTS_MAX, DEDUPLICATION_MS};

/// One reception of one message: its number, and which reception.
pub(crate) type Reception = (u64, u64);

/// What each of the last attempts got.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    by_id: FxHashMap<[u8; 16], (u64, Vec<Reception>)>,
    order: VecDeque<(u64, [u8; 16])>,
}

impl Attempts {
    pub(crate) fn remember(&mut self, attempt: [u8; 16], got: Vec<Reception>, now_ms: u64) {
        self.forget_old(now_ms);
        if self.order.len() >= ATTEMPTS_MAX {
            self.forget_first();
        }
        self.order.push_back((now_ms, attempt));
        self.by_id.insert(attempt, (now_ms, got));
    }

    /// Forgets those that count no more.
    pub(crate) fn forget_old(&mut self, now_ms: u64) {
        while self.order.front().is_some_and(|(at_ms, _)| at_ms + DEDUPLICATION_MS <= now_ms) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((at_ms, attempt)) = self.order.pop_front() else { return };
        // One that was made again stands there with a later time.
        if self.by_id.get(&attempt).is_some_and(|(since_ms, _)| *since_ms == at_ms) {
            self.by_id.remove(&attempt);
        }
    }

    /// Returns about how many bytes of memory they take.
    pub(crate) fn bytes(&self) -> usize {
        // Up to ten messages each.
        const ATTEMPT_BYTES: usize = 280;
        self.order.len() * ATTEMPT_BYTES
    }

    /// Takes out what the attempt got, and returns it if that is not too long ago.
    pub(crate) fn take(&mut self, attempt: [u8; 16], now_ms: u64) -> Option<Vec<Reception>> {
        let (at_ms, got) = self.by_id.remove(&attempt)?;
        (now_ms < at_ms + DEDUPLICATION_MS).then_some(got)
    }
}
