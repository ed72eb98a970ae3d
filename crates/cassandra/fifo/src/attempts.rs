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
        while let Some((at_ms, old)) = self.order.front()
            && (at_ms + DEDUPLICATION_MS <= now_ms || self.order.len() >= ATTEMPTS_MAX)
        {
            if self.by_id.get(old).is_some_and(|(since_ms, _)| since_ms == at_ms) {
                self.by_id.remove(old);
            }
            self.order.pop_front();
        }
        self.order.push_back((now_ms, attempt));
        self.by_id.insert(attempt, (now_ms, got));
    }

    /// What the attempt got, if that is not too long ago.
    pub(crate) fn take(&mut self, attempt: [u8; 16], now_ms: u64) -> Option<Vec<Reception>> {
        let (at_ms, got) = self.by_id.remove(&attempt)?;
        (now_ms < at_ms + DEDUPLICATION_MS).then_some(got)
    }
}
