//! Which queues have something to do: messages to give out, to move on or to acknowledge, and what
//! happens by itself: messages expire and become visible, receives end, unused queues go. One timer a
//! queue.

use std::collections::{BTreeSet, VecDeque};

use quelea_model::limits::DEAD_LETTERS_WAITING_MAX;
use quelea_model::{QueueId, Timestamp};

use super::queue::Queue;

/// Lists of queues, each queue at most once in each.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Queues that may have something to give out, expire, or answer.
    runnable: VecDeque<QueueId>,
    /// Queues with messages on their way to a dead-letter exchange.
    dead_lettering: VecDeque<QueueId>,
    /// Queues with acknowledgements that the log does not have.
    with_acks: Vec<QueueId>,
    timers: BTreeSet<(Timestamp, QueueId)>,
}

impl Schedule {
    /// Marks a queue as having something to do.
    #[inline]
    pub(crate) fn wake(&mut self, queue: &mut Queue) {
        if !queue.is_runnable {
            queue.is_runnable = true;
            self.runnable.push_back(queue.id);
        }
    }

    /// Marks a queue as having acknowledgements to write.
    #[inline]
    pub(crate) fn log_acks_of(&mut self, queue: &mut Queue) {
        if !queue.has_acks {
            queue.has_acks = true;
            self.with_acks.push(queue.id);
        }
    }

    pub(crate) fn runnable(&self) -> usize {
        self.runnable.len()
    }

    /// Takes the next queue to dispatch, which has to be marked as not runnable.
    pub(crate) fn pop_runnable(&mut self) -> Option<QueueId> {
        self.runnable.pop_front()
    }

    pub(crate) fn dead_lettering(&self) -> usize {
        self.dead_lettering.len()
    }

    /// Returns when a queue has to be looked at although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(super) fn pop_dead_lettering(&mut self) -> Option<QueueId> {
        self.dead_lettering.pop_front()
    }

    pub(super) fn pop_with_acks(&mut self) -> Option<QueueId> {
        self.with_acks.pop()
    }

    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<QueueId> {
        let &(at, id) = self.timers.first().filter(|(at, _)| *at <= now)?;
        self.timers.remove(&(at, id));
        Some(id)
    }

    /// Notes what is left to do for a queue.
    pub(super) fn update(&mut self, queue: &mut Queue) {
        if !queue.acks.is_empty() {
            self.log_acks_of(queue);
        }
        self.list_dead_letters(queue);
        self.arm_timer(queue);
    }

    /// Notes whether there are dead letters to move on. While bodies are read there is nothing to move; their
    /// arrival leads here again.
    pub(super) fn list_dead_letters(&mut self, queue: &mut Queue) {
        let is_waiting = !queue.dead_letters.is_empty() && !queue.is_reading_dead_letters;
        if is_waiting && !queue.is_dead_lettering {
            queue.is_dead_lettering = true;
            self.dead_lettering.push_back(queue.id);
        }
    }

    /// Makes sure that the queue is looked at when its next deadline has come. A timer that comes
    /// too early is left: it fires, finds nothing, and is set anew.
    pub(super) fn arm_timer(&mut self, queue: &mut Queue) {
        // Expired messages wait while too many are on their way to the dead-letter exchange, and
        // while the head is being read; either's end leads here again.
        let is_stuck =
            queue.dead_letters.len() >= DEAD_LETTERS_WAITING_MAX || queue.read_ahead.is_under_way();
        let expiry = if is_stuck { None } else { queue.ready.next_expiry() };
        // Nor does a receive end empty while what there is is being read.
        let is_reading = queue.read_ahead.is_under_way()
            || queue.groups.as_ref().is_some_and(|groups| groups.is_unknown);
        let patience_ms = queue.receive_patience_ms();
        let next_end = queue.receives.next_end().map(|end| end.plus_ms(patience_ms));
        let end = if is_reading { None } else { next_end };
        let ids_end = queue.deduplications.as_ref().map(|ids| ids.end());
        let deadlines =
            [expiry, queue.unused_deadline(), queue.invisible.next_time(), end, ids_end];
        let Some(wanted) = deadlines.into_iter().flatten().min() else {
            return;
        };
        if queue.timer.is_some_and(|timer| timer <= wanted) {
            return;
        }
        if let Some(timer) = queue.timer.replace(wanted) {
            self.timers.remove(&(timer, queue.id));
        }
        self.timers.insert((wanted, queue.id));
    }

    /// The queue goes.
    pub(super) fn forget(&mut self, queue: &mut Queue) {
        if let Some(timer) = queue.timer.take() {
            self.timers.remove(&(timer, queue.id));
        }
    }
}
