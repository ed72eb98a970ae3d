//! What happens by itself: messages expire and become visible, receives end, unused queues go. One
//! timer a queue.

use quelea_model::limits::DEAD_LETTERS_WAITING_MAX;
use quelea_model::{QueueId, Timestamp};

use crate::Broker;

impl Broker {
    /// Makes sure that the queue is looked at when its next deadline has come. A timer that comes
    /// too early is left: it fires, finds nothing, and is set anew.
    pub(crate) fn arm_timer(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        // Expired messages wait while too many are on their way to the dead-letter exchange, and
        // while the head is being read; either's end leads here again.
        let is_stuck =
            queue.transit.len() >= DEAD_LETTERS_WAITING_MAX || queue.read_ahead.is_under_way();
        let expiry = if is_stuck { None } else { queue.ready.next_expiry() };
        // Nor is a receive told that there is nothing while what there is is being read.
        let is_reading = queue.read_ahead.is_under_way()
            || queue.groups.as_ref().is_some_and(|groups| groups.is_unknown);
        let end = if is_reading { None } else { queue.receives.next_end() };
        let deadlines = [expiry, queue.unused_deadline(), queue.hidden.next_time(), end];
        let Some(wanted) = deadlines.into_iter().flatten().min() else {
            return;
        };
        if queue.timer.is_some_and(|timer| timer <= wanted) {
            return;
        }
        if let Some(timer) = queue.timer.replace(wanted) {
            self.timers.remove(&(timer, id));
        }
        self.timers.insert((wanted, id));
    }

    pub(crate) fn fire_timers(&mut self, now: Timestamp) {
        while let Some(&(at, id)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let Some(queue) = self.queues.get_mut(&id) else {
                continue;
            };
            queue.timer = None;
            if queue.unused_deadline().is_some_and(|deadline| deadline <= now) {
                self.remove_queue(id);
            } else {
                // Expired heads are dropped, and the timer set anew, when it is dispatched.
                self.touch(id);
            }
        }
    }
}
