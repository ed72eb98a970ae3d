//! How many deduplication ids the next checkpoint has to repeat in the log: it frees space only behind them, so
//! on a disk that is full their room has to be there already.

use std::collections::VecDeque;

use quelea_model::Timestamp;
use quelea_model::limits::DEDUPLICATION_MS;

use crate::Recovered;
use crate::record::DEDUPLICATION_BYTES;

/// Ids are counted by the minute in which they were sent.
const MINUTE_MS: u64 = 60_000;

/// Those of all queues that still count, and some that a purge or a deletion has ended.
#[derive(Debug, Default)]
pub(crate) struct NotedIds {
    /// Minutes in order, with their ids. Six at most.
    minutes: VecDeque<(u64, u64)>,
    count: u64,
}

impl NotedIds {
    /// Returns the ids that a start has found.
    pub(crate) fn recovered(recovered: &Recovered) -> Self {
        let ids = recovered.deduplications.values().flatten();
        let mut sent_at: Vec<Timestamp> = ids.map(|sent| sent.sent_at).collect();
        sent_at.sort_unstable();
        let mut noted = Self::default();
        sent_at.into_iter().for_each(|at| noted.add(at));
        noted
    }

    /// Returns the room that they take in the log.
    pub(crate) const fn bytes(&self) -> u64 {
        self.count * DEDUPLICATION_BYTES as u64
    }

    pub(crate) fn add(&mut self, sent_at: Timestamp) {
        let minute = sent_at.as_millis() / MINUTE_MS;
        self.count += 1;
        match self.minutes.back_mut() {
            // A clock may have gone back; then they count a little longer.
            Some((last, ids)) if *last >= minute => *ids += 1,
            _ => self.minutes.push_back((minute, 1)),
        }
    }

    /// Forgets those that do not count any more.
    pub(crate) fn forget_old(&mut self, now: Timestamp) {
        let first = now.as_millis().saturating_sub(DEDUPLICATION_MS) / MINUTE_MS;
        while let Some((minute, ids)) = self.minutes.front()
            && *minute < first
        {
            self.count -= ids;
            self.minutes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_room_for_as_long_as_they_count() {
        let at = |minute: u64, ms: u64| Timestamp::from_millis(minute * MINUTE_MS + ms);
        let mut noted = NotedIds::default();
        for minute in 10..14 {
            (0..100).for_each(|ms| noted.add(at(minute, ms)));
        }
        noted.add(at(12, 0));
        assert_eq!(noted.bytes(), 401 * DEDUPLICATION_BYTES as u64);
        noted.forget_old(at(15, 100));
        assert_eq!(noted.bytes(), 401 * DEDUPLICATION_BYTES as u64);
        noted.forget_old(at(16, 0));
        assert_eq!(noted.bytes(), 301 * DEDUPLICATION_BYTES as u64);
        noted.forget_old(at(19, 0));
        assert_eq!(noted.bytes(), 0);
    }
}
