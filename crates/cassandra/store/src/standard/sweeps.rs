//! Sweeps of several queues: some are under way at once and take turns at one pace, so that a long one keeps none of the others waiting.
//! A round goes through all queues; one whose sweep is under way still from an earlier round is not begun with again.

use std::sync::Arc;

use quelea_sqs_protocol::{Fault, QueueRef};
use rustc_hash::FxHashMap;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::clock::Clock;
use crate::limits::SWEPT_QUEUES_AT_ONCE;
use crate::standard::Standard;
use crate::standard::pace::Pace;
use crate::standard::sweep_counts::SweepCounts;

/// Sweeps that are under way.
pub(crate) struct Sweeps {
    pace: Pace,
    counts: Arc<SweepCounts>,
    clock: Arc<Clock>,
    tasks: JoinSet<Result<usize, Fault>>,
    /// By their tasks, with the round in which each was begun.
    under_way: FxHashMap<Id, (QueueRef, u64)>,
    rounds: Rounds,
    /// Whether this round has said that a sweep was broken off: others may be for the same reason.
    has_warned: bool,
    restored: usize,
}

impl Sweeps {
    /// Returns the sweeps of the queues in these tables; there are none yet.
    pub(crate) fn new(standard: &Standard, pace: Pace) -> Self {
        Self {
            pace,
            counts: standard.sweeps.clone(),
            clock: standard.clock.clone(),
            tasks: JoinSet::new(),
            under_way: FxHashMap::default(),
            rounds: Rounds::default(),
            has_warned: false,
            restored: 0,
        }
    }

    /// Returns the pace that all of them share.
    pub(crate) fn pace(&self) -> Pace {
        self.pace.clone()
    }

    /// Returns how many messages got an entry anew so far.
    pub(crate) fn restored(&self) -> usize {
        self.restored
    }

    /// All queues are gone through once more from here on.
    pub(crate) fn begin_round(&mut self) {
        self.rounds.begun += 1;
        self.has_warned = false;
    }

    /// Begins to sweep a queue, if it is this front-end's to sweep and no sweep of it is under way. Waits until there is room.
    pub(crate) async fn begin(&mut self, standard: &Arc<Standard>, queue: &QueueRef) {
        if self.under_way.values().any(|(under_way, _)| under_way == queue) {
            return;
        }
        let record = match standard.to_sweep(queue).await {
            Ok(Some(record)) => record,
            Ok(None) => return,
            Err(fault) => return self.broken_off(&queue.name, &fault),
        };
        while self.tasks.len() >= SWEPT_QUEUES_AT_ONCE {
            self.end_next().await;
        }
        let (sweeping, pace) = (standard.clone(), self.pace());
        let task = async move { sweeping.sweep(&record, &pace).await };
        let task = self.tasks.spawn_on(task, &standard.runtime);
        self.under_way.insert(task.id(), (queue.clone(), self.rounds.begun));
    }

    /// All queues were begun with.
    pub(crate) fn end_round(&mut self) {
        self.rounds.listed = self.rounds.begun;
        self.note_whole();
    }

    /// The sweep of that was broken off.
    pub(crate) fn broken_off(&mut self, what: &str, fault: &Fault) {
        self.counts.on_broken_off();
        self.rounds.failed = self.rounds.begun;
        if std::mem::replace(&mut self.has_warned, true) {
            tracing::debug!(what, %fault, "another sweep was broken off");
        } else {
            tracing::warn!(what, %fault, "a sweep was broken off");
        }
    }

    /// Takes note of those that end until then.
    pub(crate) async fn go_on_until(&mut self, until: Instant) {
        while timeout_at(until, self.end_next()).await == Ok(true) {}
        sleep_until(until).await;
    }

    /// Waits for the end of all that are under way.
    pub(crate) async fn end_all(&mut self) {
        while self.end_next().await {}
    }

    /// Waits until one ends. `false`: none is under way.
    async fn end_next(&mut self) -> bool {
        let Some(ended) = self.tasks.join_next_with_id().await else { return false };
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let queue = self.under_way.remove(&id).map(|(queue, _)| queue.name);
        let ended = ended.map(|(_, swept)| swept);
        match ended.unwrap_or_else(|error| Err(Fault::Unavailable(error.to_string()))) {
            Ok(restored) => {
                self.restored += restored;
                self.counts.on_swept();
            }
            Err(fault) => self.broken_off(&queue.unwrap_or_default(), &fault),
        }
        self.note_whole();
        true
    }

    fn note_whole(&mut self) {
        let oldest = self.under_way.values().map(|(_, round)| *round).min();
        if self.rounds.is_whole(oldest) {
            self.counts.on_whole(self.clock.now_ms());
        }
    }
}

/// Rounds through all queues, by their numbers.
#[derive(Debug, Default)]
struct Rounds {
    begun: u64,
    /// The last that has come to the end of the list of queues.
    listed: u64,
    /// The last in which something was broken off, and with it all that were under way.
    failed: u64,
    /// The last of which all queues were swept.
    whole: u64,
}

impl Rounds {
    /// Notes whether one more round is whole, where the oldest sweep that is under way was begun in
    /// that round, and returns it.
    fn is_whole(&mut self, oldest: Option<u64>) -> bool {
        let ended = oldest.map_or(self.listed, |oldest| self.listed.min(oldest.saturating_sub(1)));
        let is_whole = ended > self.whole.max(self.failed);
        if is_whole {
            self.whole = ended;
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_whole_when_all_of_its_queues_were_swept() {
        let mut rounds = Rounds { begun: 1, ..Rounds::default() };
        assert!(!rounds.is_whole(None), "queues may be missing on the list");
        rounds.listed = 1;
        assert!(!rounds.is_whole(Some(1)));
        assert!(rounds.is_whole(None));
        assert!(!rounds.is_whole(None), "it ends once");
        // A long sweep is under way for two rounds.
        (rounds.begun, rounds.listed) = (3, 3);
        assert!(!rounds.is_whole(Some(2)));
        assert!(rounds.is_whole(Some(3)));
        assert!(rounds.is_whole(None));
    }

    #[test]
    fn what_is_broken_off_keeps_the_rounds_that_are_under_way_from_being_whole() {
        let mut rounds = Rounds { begun: 2, listed: 2, failed: 2, whole: 0 };
        assert!(!rounds.is_whole(None));
        (rounds.begun, rounds.listed) = (3, 3);
        assert!(rounds.is_whole(None));
    }
}
