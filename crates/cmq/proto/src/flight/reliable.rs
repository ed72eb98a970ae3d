//! What is under way where losses are repeated, and what bounds the repetitions.

use super::budget::Budget;
use super::congestion::Congestion;
use super::retransmission_queue::{AckSummary, RetransmissionQueue};
use crate::Time;

#[derive(Debug)]
pub(super) struct Reliable {
    pub(super) queue: RetransmissionQueue,
    pub(super) budget: Budget,
    /// None on loopback, where nothing but the receiver can be full.
    pub(super) congestion: Option<Congestion>,
}

impl Reliable {
    pub(super) fn learn(&mut self, summary: &AckSummary, now: Time, round_trip_us: u64) {
        if let Some(congestion) = &mut self.congestion {
            // What was under way when the word was written, about: was the window what held it back?
            let under_way = self.queue.charges() + summary.arrived_charges;
            let used = under_way * 2 >= congestion.window_bytes();
            congestion.arrived(summary.arrived, summary.arrived_charges, used);
        }
        self.lose(summary.lost, now, round_trip_us);
    }

    pub(super) fn lose(&mut self, datagrams: u32, now: Time, round_trip_us: u64) {
        if let Some(congestion) = &mut self.congestion {
            congestion.lost(datagrams);
            congestion.judge(now, round_trip_us);
        }
    }
}
