//! When a flight asks its receiver for a word, and what follows if none comes.

use super::retransmission_queue::RetransmissionQueue;
use super::{
    Action, Closing, Flight, INITIAL_WINDOW_BYTES, LOSSY_WAIT_US_MIN, Probed, SILENT_QUESTIONS,
    STATUS_DELAY_US, UnderWay, WAIT_US_INITIAL, WAIT_US_MIN,
};
use crate::Time;

impl Flight {
    pub(super) fn wait_us(&self) -> u64 {
        let patience = self.round_trip.patience_us();
        let wait = patience.map_or(WAIT_US_INITIAL, |us| us.max(WAIT_US_MIN) + STATUS_DELAY_US);
        match &self.under_way {
            UnderWay::Lossy(_) if self.refused_charge.is_none() => wait.max(LOSSY_WAIT_US_MIN),
            _ => wait,
        }
    }

    /// The timer runs as long as there is something to ask for.
    pub(super) fn settle_timer(&mut self) {
        if self.is_settled() && self.refused_charge.is_none() {
            self.probe_timer.disarm();
            self.probe_wanted = false;
        } else {
            let wait_us = self.wait_us();
            self.probe_timer.arm(wait_us);
        }
    }

    /// Returns when a PROBE is due that says what not to wait for: at once, and then ever more
    /// seldom.
    pub(super) fn floor_probe_at(&self) -> Option<Time> {
        let UnderWay::Reliable(reliable) = &self.under_way else { return None };
        let wanted = reliable.queue.floor_is_news() && !self.probe_wanted;
        let wait_us = self.probe_timer.wait_us(self.wait_us());
        wanted.then(|| self.probed.map_or(Time::ZERO, |probed| probed.at.plus_us(wait_us)))
    }

    /// Returns when something that waits for nothing but the budget may be repeated.
    pub(super) fn budget_at(&self) -> Option<Time> {
        let UnderWay::Reliable(reliable) = &self.under_way else { return None };
        let waiting = reliable.queue.first_lost()?;
        let held_back = self.holds_back(waiting.charge);
        let ready = || reliable.budget.ready_at(self.round_trip.smoothed_us().unwrap_or(0));
        (!held_back && waiting.repeated).then(ready)
    }

    pub(super) fn ask(&mut self, now: Time) {
        self.probe_wanted = true;
        self.abandon_wanted = self.probe_timer.unanswered_us(now) >= self.dead_after_us;
    }

    pub(super) fn probe(&mut self, now: Time) -> Action {
        let (next, floor, known_below, departures) = match &self.under_way {
            UnderWay::Lossy(passing) => (passing.next(), passing.next(), 0, 0),
            UnderWay::Reliable(reliable) => {
                let queue = &reliable.queue;
                // What the receiver has, it knows. One that was started anew must not skip it.
                let floor = if queue.floor_is_news() { queue.floor() } else { 0 };
                (queue.next(), floor, queue.received_below(), queue.departures())
            }
        };
        self.probed = Some(Probed { at: now, known_below, departures, answered: false });
        let wait_us = self.wait_us();
        self.probe_timer.asked(now, wait_us);
        if self.probe_timer.unanswered() == SILENT_QUESTIONS
            && let UnderWay::Reliable(reliable) = &mut self.under_way
            && let Some(congestion) = &mut reliable.congestion
        {
            congestion.silence(now);
        }
        Action::Probe { next, floor, sent_at: now }
    }

    pub(super) fn abandon(&mut self, now: Time) -> Action {
        self.probe_timer.answered(true, now);
        self.probe_timer.disarm();
        (self.refused_charge, self.probe_wanted) = (None, false);
        if self.closing == Closing::Asking {
            self.closing = Closing::Answered;
        }
        self.window_bytes = INITIAL_WINDOW_BYTES;
        let messages = match &mut self.under_way {
            UnderWay::Lossy(passing) => {
                passing.clear();
                0
            }
            UnderWay::Reliable(reliable) => {
                self.dead = true;
                let messages = reliable.queue.missing_messages();
                reliable.queue = RetransmissionQueue::new(reliable.queue.next());
                messages
            }
        };
        Action::Abandon { messages }
    }
}
