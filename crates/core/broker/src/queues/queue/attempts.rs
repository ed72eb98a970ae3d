//! Receives that their callers named, so that one whose answer was lost can be repeated.

use std::collections::VecDeque;

use quelea_model::Timestamp;
use quelea_model::limits::{DEDUPLICATION_MS, RECEIVE_ATTEMPTS_MAX};
use rustc_hash::FxHashMap;

use crate::reply::Receipt;

/// What each of the last attempts got.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    by_id: FxHashMap<u64, (Timestamp, Vec<Receipt>)>,
    order: VecDeque<(Timestamp, u64)>,
}

impl Attempts {
    pub(crate) fn remember(&mut self, attempt: u64, receipts: Vec<Receipt>, now: Timestamp) {
        while let Some((at, old)) = self.order.front()
            && (at.plus_ms(DEDUPLICATION_MS) <= now || self.order.len() >= RECEIVE_ATTEMPTS_MAX)
        {
            if self.by_id.get(old).is_some_and(|(since, _)| since == at) {
                self.by_id.remove(old);
            }
            self.order.pop_front();
        }
        self.order.push_back((now, attempt));
        self.by_id.insert(attempt, (now, receipts));
    }

    /// Returns what the attempt got, if that is not too long ago.
    pub(crate) fn take(&mut self, attempt: u64, now: Timestamp) -> Option<Vec<Receipt>> {
        let (at, receipts) = self.by_id.remove(&attempt)?;
        (now < at.plus_ms(DEDUPLICATION_MS)).then_some(receipts)
    }
}
