//! Sends: each message gets its number when it comes, and one batch after the other is written, so that the order of the
//! numbers is that in which messages became durable.

use std::sync::Arc;

use quelea_sqs_protocol::{Fault, SendOutcome, Sent, sequence_number};
use uuid::Uuid;

use super::Owner;
use crate::call::CallId;
use crate::clock::Now;
use crate::effect::{Batch, Effect};
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, WAITING_BYTES_MAX, WAITING_ROWS_MAX, WINDOW_MESSAGES_MAX,
};
use crate::message::{Arrival, Noted, Row};

/// One call's messages.
#[derive(Clone, Debug)]
pub struct SendCall {
    /// In order.
    pub messages: Vec<Arrival>,
}

/// A call that waits for a number to be durable.
#[derive(Debug)]
pub(super) struct PendingSend {
    pub(super) call: CallId,
    pub(super) waits_for: u64,
    /// Of each message its number and its id.
    pub(super) outcomes: Vec<Result<(u64, Uuid), Fault>>,
}

impl PendingSend {
    /// Returns what its caller gets.
    pub(super) fn into_outcomes(self) -> Vec<SendOutcome> {
        let sent = |(number, id): (u64, Uuid)| Sent {
            message_id: id.to_string(),
            sequence_number: Some(sequence_number(number)),
        };
        self.outcomes.into_iter().map(|outcome| outcome.map(sent)).collect()
    }
}

impl Owner {
    /// Sends messages. The answer is [`Effect::Sent`].
    pub fn send(&mut self, call: CallId, send: SendCall, now: Now) {
        if !self.takes(call, now) {
            return;
        }
        let rows = send.messages.len();
        let bytes: usize = send.messages.iter().map(|one| one.content.bytes()).sum();
        let is_too_much = self.unsent.len() + rows > WAITING_ROWS_MAX
            || self.unsent_bytes + bytes > WAITING_BYTES_MAX;
        // While nothing can be confirmed, because the lease is not renewed, what is written waits, too.
        let waits_too_long = self.sends.len() >= WAITING_ROWS_MAX;
        if (is_too_much && !self.unsent.is_empty()) || waits_too_long || self.segments.is_full() {
            let why = "too many messages of this queue wait".to_owned();
            self.effects.push_back(Effect::Failed(call, Fault::Unavailable(why)));
            return;
        }
        let mut waits_for = 0;
        let mut outcomes = Vec::with_capacity(rows);
        for arrival in send.messages {
            let outcome = self.number(arrival, now);
            waits_for = waits_for.max(outcome.as_ref().map_or(0, |(number, _)| *number));
            outcomes.push(outcome);
        }
        self.sends.push_back(PendingSend { call, waits_for, outcomes });
        self.write_next(now);
        self.confirm_sends(now);
    }

    /// Gives a message its number, unless it is a duplicate: then it is the first.
    fn number(&mut self, arrival: Arrival, now: Now) -> Result<(u64, Uuid), Fault> {
        if let Some(key) = arrival.deduplication {
            if let Some(first) = self.deduplications.find(key, now.wall_ms) {
                return Ok((first.number, first.id));
            }
            if self.deduplications.is_full() {
                let why = "too many deduplication ids of this queue count";
                return Err(Fault::Unavailable(why.to_owned()));
            }
        }
        let (number, id) = (self.next, arrival.id);
        self.next += 1;
        if let Some(key) = arrival.deduplication {
            // That of its id may be the time at which it was sent to another queue.
            self.deduplications.add(Noted { key, number, id, sent_at_ms: now.wall_ms });
        }
        self.unsent_bytes += arrival.content.bytes();
        self.unsent.push_back((number, arrival));
        Ok((number, id))
    }

    /// Has the next batch written, unless one is under way.
    pub(super) fn write_next(&mut self, now: Now) {
        let Some((first, arrival)) = self.unsent.front().filter(|_| self.batch.is_none()) else {
            return;
        };
        let (segment, is_new) = self.segments.place(*first, arrival.content.bytes(), now.wall_ms);
        let (rows_max, bytes_max) = self.segments.room();
        let batch_rows_max = if *first <= self.singly_to { 1 } else { BATCH_ROWS_MAX };
        let (rows_max, bytes_max) = (rows_max.min(batch_rows_max), bytes_max.min(BATCH_BYTES_MAX));
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some((_, arrival)) = self.unsent.front() {
            let more = arrival.content.bytes();
            if !messages.is_empty() && (messages.len() >= rows_max || bytes + more > bytes_max) {
                break;
            }
            bytes += more;
            messages.extend(self.unsent.pop_front());
        }
        self.unsent_bytes -= bytes;
        self.segments.put(messages.len(), bytes);
        let begins_at_ms = is_new.then_some(now.wall_ms);
        let batch = Arc::new(Batch { segment, begins_at_ms, messages });
        self.batch = Some(batch.clone());
        self.effects.push_back(Effect::Write(batch));
    }

    /// The batch that is under way is durable.
    pub fn written(&mut self, now: Now) {
        let Some(batch) = self.batch.take().filter(|_| !self.has_ended()) else { return };
        let (segment, last) = (batch.segment, batch.last());
        let is_caught_up = self.loaded_to == self.acked_to && !self.is_loading;
        self.segments.acknowledged(segment, last, now.wall_ms);
        self.acked_to = last;
        if is_caught_up && self.window.len() < WINDOW_MESSAGES_MAX {
            for (number, arrival) in &batch.messages {
                let content = arrival.content.clone();
                let row = Row {
                    number: *number,
                    id: arrival.id,
                    group_id: content.group_id.clone(),
                    bytes: content.bytes(),
                    visible_at_ms: arrival.visible_at_ms,
                };
                self.window.insert(segment, row, Some(content), now.wall_ms);
                self.segments.hold(segment);
            }
            self.loaded_to = last;
        }
        self.write_next(now);
        self.go_on(now);
    }

    /// Answers the sends whose messages are durable, while the lease is valid: whoever takes the queue over afterwards reads
    /// what is durable now.
    pub(super) fn confirm_sends(&mut self, now: Now) {
        while self.lease.is_valid(now)
            && let Some(send) = self.sends.pop_front_if(|send| send.waits_for <= self.acked_to)
        {
            self.effects.push_back(Effect::Sent(send.call, send.into_outcomes()));
        }
    }
}
