//! Deletions: a message is gone when that is durable, and only then its group goes on.

use quelea_sqs_protocol::{Delivery, Fault, ReceiptOutcome};

use super::Owner;
use super::load::not_loaded;
use crate::call::CallId;
use crate::clock::Now;
use crate::effect::Effect;
use crate::limits::{AT_ONCE_MAX, DELETED_ROWS_MAX, WAITING_DELETIONS_MAX};
use crate::message::RowKey;
use crate::receipt::Receipt;
use crate::window::{Flight, State};

/// For how long a message that an earlier owner delivered is hidden while it is deleted, in ms.
const HIDDEN_MS: u64 = 10_000;

/// One call's receipts.
#[derive(Debug)]
pub(super) struct DeleteCall {
    outcomes: Vec<ReceiptOutcome>,
    open: usize,
    failure: Option<Fault>,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    /// Who wants it; `None`: the message has expired.
    call: Option<CallId>,
    row: RowKey,
}

/// What a receipt is good for.
enum Claim {
    Outcome(ReceiptOutcome),
    Row(RowKey),
    /// It cannot be said now.
    NotLoaded,
}

impl Owner {
    /// Deletes messages. The answer is [`Effect::Settled`].
    pub fn delete(&mut self, call: CallId, deliveries: &[Delivery], now: Now) {
        if !self.takes_receipts(call, now) {
            return;
        }
        self.window.make_due_visible(now.wall_ms);
        let mut entered = DeleteCall { outcomes: Vec::new(), open: 0, failure: None };
        for delivery in deliveries {
            let outcome = match self.claim(delivery, now) {
                Claim::Outcome(outcome) => outcome,
                Claim::NotLoaded => {
                    entered.failure = Some(not_loaded());
                    ReceiptOutcome::Done
                }
                Claim::Row(row) => {
                    entered.open += 1;
                    self.undeleted.push_back(Deletion { call: Some(call), row });
                    ReceiptOutcome::Done
                }
            };
            entered.outcomes.push(outcome);
        }
        self.delete_calls.insert(call, entered);
        self.answer_deletion(call);
        self.delete_next();
    }

    /// Claims what a receipt may delete, and returns it. What it names is not visible meanwhile.
    fn claim(&mut self, delivery: &Delivery, now: Now) -> Claim {
        let Some(receipt) = self.receipt(delivery) else {
            return Claim::Outcome(ReceiptOutcome::Invalid);
        };
        let number = receipt.number;
        if receipt.generation != self.generation || self.deleted_ahead.contains(&number) {
            return Claim::Outcome(ReceiptOutcome::Done);
        }
        if self.undeleted.len() >= WAITING_DELETIONS_MAX
            || self.deleted_ahead.len() >= WAITING_DELETIONS_MAX
        {
            return Claim::NotLoaded;
        }
        let Some(held) = self.window.get(number) else {
            if number <= self.loaded_to || number > self.acked_to {
                return Claim::Outcome(ReceiptOutcome::Done);
            }
            // An earlier owner delivered it, and this one has not come so far: nobody else has it.
            return match self.segments.key_of(number) {
                // Who delivered it has seen its partition: a number of an earlier epoch's may be another message.
                Some(segment) if receipt.epoch < self.epoch && segment.epoch <= receipt.epoch => {
                    Claim::Row(RowKey { segment, number })
                }
                _ => Claim::Outcome(ReceiptOutcome::Done),
            };
        };
        if held.segment.epoch > receipt.epoch {
            return Claim::Outcome(ReceiptOutcome::Expired);
        }
        let (row, holder) =
            (RowKey { segment: held.segment, number }, (receipt.epoch, receipt.reception));
        let flight = match held.state {
            State::InFlight(flight) if flight.holder == holder => flight,
            // An earlier owner delivered it, and this one has not yet.
            State::Ready if receipt.epoch < self.epoch && held.receive_count == 0 => Flight {
                holder,
                until_ms: now.wall_ms + HIDDEN_MS,
                received_at_ms: receipt.received_at_ms,
                deletions: 0,
            },
            _ => return Claim::Outcome(ReceiptOutcome::Expired),
        };
        let deletions = flight.deletions + 1;
        self.window.set(number, State::InFlight(Flight { deletions, ..flight }));
        Claim::Row(row)
    }

    /// Takes a call with receipts. Returns whether it can say what became of messages. An owner
    /// whose lease is over may know nothing of what a later owner delivered: the caller looks
    /// again.
    pub(super) fn takes_receipts(&mut self, call: CallId, now: Now) -> bool {
        let takes = self.takes(call, now);
        if takes && !self.lease.is_valid(now) {
            self.effects.push_back(Effect::NotOwner(call));
            return false;
        }
        takes
    }

    /// Decodes a delivery. Returns its receipt, if it is one of this queue, by this owner or an
    /// earlier one.
    pub(super) fn receipt(&self, delivery: &Delivery) -> Option<Receipt> {
        Receipt::decode(delivery)
            .filter(|receipt| receipt.queue == self.queue && receipt.epoch <= self.epoch)
    }

    /// Deletes rows of messages that are kept no longer: so many that those of calls need not wait long behind them.
    pub(super) fn delete_expired(&mut self, now: Now) {
        // The next owner may keep them.
        if !self.lease.is_valid(now) {
            return;
        }
        let room = (AT_ONCE_MAX * DELETED_ROWS_MAX).saturating_sub(self.undeleted.len());
        let taken = self.expired.drain(..room.min(self.expired.len()));
        self.undeleted.extend(taken.map(|row| Deletion { call: None, row }));
        self.delete_next();
    }

    fn delete_next(&mut self) {
        while self.deletions.len() < AT_ONCE_MAX && !self.undeleted.is_empty() {
            let count = self.undeleted.len().min(DELETED_ROWS_MAX);
            let taken: Vec<Deletion> = self.undeleted.drain(..count).collect();
            let rows = taken.iter().map(|deletion| deletion.row).collect();
            let id = self.fresh_id();
            self.deletions.insert(id, taken);
            self.effects.push_back(Effect::Delete { id, rows });
        }
    }

    /// Deletions are durable, or nobody says so; an outcome for each, in order.
    pub fn deleted(&mut self, id: u64, outcomes: &[Result<(), Fault>], now: Now) {
        let Some(deletions) = self.deletions.remove(&id) else { return };
        for (deletion, outcome) in deletions.into_iter().zip(outcomes) {
            match (outcome, deletion.call) {
                (Ok(()), Some(_)) => self.deleted.push(deletion),
                (Ok(()), None) => {}
                // It is tried again a little later.
                (Err(_), None) => self.expired.push_back(deletion.row),
                (Err(fault), Some(call)) => {
                    let number = deletion.row.number;
                    if let Some(State::InFlight(flight)) =
                        self.window.get(number).map(|held| held.state)
                    {
                        let deletions = flight.deletions.saturating_sub(1);
                        self.window.set(number, State::InFlight(Flight { deletions, ..flight }));
                    }
                    self.settle(call, Some(fault.clone()));
                }
            }
        }
        self.delete_next();
        self.go_on(now);
    }

    /// What is deleted is gone, while the lease is valid: groups go on.
    pub(super) fn confirm_deletions(&mut self, now: Now) {
        if !self.lease.is_valid(now) {
            return;
        }
        for Deletion { call, row } in std::mem::take(&mut self.deleted) {
            if row.number > self.loaded_to {
                self.deleted_ahead.insert(row.number);
            }
            self.forget(row.number);
            if let Some(call) = call {
                self.settle(call, None);
            }
        }
    }

    fn settle(&mut self, call: CallId, failure: Option<Fault>) {
        if let Some(entered) = self.delete_calls.get_mut(&call) {
            entered.open = entered.open.saturating_sub(1);
            entered.failure = entered.failure.take().or(failure);
        }
        self.answer_deletion(call);
    }

    fn answer_deletion(&mut self, call: CallId) {
        if self.delete_calls.get(&call).is_none_or(|entered| entered.open > 0) {
            return;
        }
        if let Some(entered) = self.delete_calls.remove(&call) {
            self.effects.push_back(match entered.failure {
                Some(fault) => Effect::Failed(call, fault),
                None => Effect::Settled(call, entered.outcomes),
            });
        }
    }
}
