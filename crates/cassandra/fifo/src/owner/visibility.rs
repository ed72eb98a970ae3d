//! Changes of visibility: only in memory, so that they are forgotten when another owner follows.

use quelea_sqs_protocol::{Delivery, ReceiptOutcome};

use super::Owner;
use crate::call::CallId;
use crate::clock::Now;
use crate::effect::Effect;
use crate::limits::VISIBILITY_MS_MAX;
use crate::window::{Flight, State};

impl Owner {
    /// Sets for how long from now others will not see messages. The answer is [`Effect::Settled`].
    pub fn change_visibility(&mut self, call: CallId, changes: &[(Delivery, u64)], now: Now) {
        // Another owner may show it meanwhile.
        if !self.takes_receipts(call, now) {
            return;
        }
        self.window.make_due_visible(now.wall_ms);
        let outcomes = changes
            .iter()
            .map(|(delivery, timeout_ms)| self.change_one(delivery, *timeout_ms, now))
            .collect();
        self.effects.push_back(Effect::Settled(call, outcomes));
        self.go_on(now);
    }

    fn change_one(&mut self, delivery: &Delivery, timeout_ms: u64, now: Now) -> ReceiptOutcome {
        let Some(receipt) = self.receipt(delivery) else { return ReceiptOutcome::Invalid };
        let number = receipt.number;
        if receipt.generation != self.generation {
            return ReceiptOutcome::NoSuchMessage;
        }
        let Some(held) = self.window.get(number) else {
            return if number > self.loaded_to && number <= self.acked_to {
                ReceiptOutcome::NotInFlight
            } else {
                ReceiptOutcome::NoSuchMessage
            };
        };
        // The number meant another message in the receipt's epoch.
        if held.segment.epoch > receipt.epoch {
            return ReceiptOutcome::NoSuchMessage;
        }
        let holder = (receipt.epoch, receipt.reception);
        let flight = match held.state {
            State::InFlight(flight) if flight.holder == holder => flight,
            // An earlier owner delivered it, and this one has not yet: its receiver takes it up again.
            State::Ready if receipt.epoch < self.epoch && held.receive_count == 0 => {
                Flight { holder, until_ms: 0, received_at_ms: receipt.received_at_ms, deletions: 0 }
            }
            _ => return ReceiptOutcome::NotInFlight,
        };
        let until_ms = now.wall_ms.saturating_add(timeout_ms);
        if until_ms.saturating_sub(flight.received_at_ms) > VISIBILITY_MS_MAX {
            return ReceiptOutcome::TooLong;
        }
        self.window.set(number, State::InFlight(Flight { until_ms, ..flight }));
        self.window.make_due_visible(now.wall_ms);
        ReceiptOutcome::Done
    }
}
