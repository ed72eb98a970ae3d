//! Batches that Cassandra refuses for good: what is wrong with one message is not to keep the others from being stored. The messages
//! of such a batch are written again one by one, and the send of one that is refused alone fails. An earlier attempt at it may
//! have come to a replica, or may come late, so first it is deleted: then it is nowhere, and what is behind it may be confirmed.

use quelea_sqs_protocol::Fault;

use super::Owner;
use crate::clock::Now;
use crate::effect::{Batch, Effect};

impl Owner {
    /// The batch under way is refused, and would be if it were written again.
    pub fn refused(&mut self, fault: Fault, now: Now) {
        let Some(batch) = self.batch.take().filter(|_| !self.has_ended()) else { return };
        let bytes = batch.messages.iter().map(|(_, arrival)| arrival.content.bytes()).sum();
        let is_new = batch.begins_at_ms.is_some();
        self.segments.take_back(batch.segment, is_new, batch.messages.len(), bytes);
        if batch.messages.len() > 1 {
            self.singly_to = batch.last();
            self.unsent_bytes += bytes;
            for (number, arrival) in batch.messages.iter().rev() {
                self.unsent.push_front((*number, arrival.clone()));
            }
            return self.write_next(now);
        }
        self.refusal = Some(fault);
        self.batch = Some(batch.clone());
        self.effects.push_back(Effect::Discard(batch));
        self.stop_late_discard(now);
    }

    /// Lets go of the queue if what was refused is not gone and the lease is over: whoever has followed counts the message if
    /// an earlier attempt has stored it, so that it may not be deleted any more.
    pub(super) fn stop_late_discard(&mut self, now: Now) {
        if self.refusal.is_some() && !self.lease.is_valid(now) {
            self.release();
        }
    }

    /// The batch that was refused is nowhere, or that was refused, too: then the queue is let go of, and the seal of whoever owns
    /// it next says what counts.
    pub fn discarded(&mut self, is_gone: bool, now: Now) {
        let (Some(batch), Some(fault)) = (self.batch.take(), self.refusal.take()) else { return };
        if self.has_ended() {
            return;
        }
        self.fail_sends(&batch, &fault);
        if !is_gone {
            return self.release();
        }
        self.write_next(now);
        self.go_on(now);
    }

    /// The messages of a batch are not stored, and their ids may be used again. Sends that have no others are answered at once.
    fn fail_sends(&mut self, batch: &Batch, fault: &Fault) {
        for (number, arrival) in &batch.messages {
            if let Some(key) = arrival.deduplication {
                self.deduplications.remove(key, *number);
            }
        }
        let is_of_batch = |wanted: u64| batch.messages.iter().any(|(number, _)| *number == wanted);
        let mut waiting = std::mem::take(&mut self.sends);
        for send in &mut waiting {
            for outcome in &mut send.outcomes {
                if matches!(outcome, Ok((number, _)) if is_of_batch(*number)) {
                    *outcome = Err(fault.clone());
                }
            }
            let stored = send.outcomes.iter().flatten().map(|(number, _)| *number);
            send.waits_for = stored.max().unwrap_or(0);
        }
        for send in waiting {
            if send.outcomes.iter().all(Result::is_err) {
                self.effects.push_back(Effect::Sent(send.call, send.into_outcomes()));
            } else {
                self.sends.push_back(send);
            }
        }
    }
}
