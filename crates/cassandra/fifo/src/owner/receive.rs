//! Receives: the longest waiting first. What is chosen is in flight from then on, while its body is read; its visibility
//! timeout begins when it is given out.

use std::sync::Arc;

use quelea_sqs_protocol::{Fault, Received, sequence_number};
use sha2::{Digest, Sha256};

use super::Owner;
use crate::call::CallId;
use crate::clock::Now;
use crate::effect::Effect;
use crate::limits::{
    AT_ONCE_MAX, MOVE_AGAIN_MS, MOVE_WAITED_MS, RECEIVE_BYTES_MAX, WAITING_RECEIVES_MAX,
};
use crate::message::{Content, RowKey, sent_at_ms};
use crate::receipt::Receipt;
use crate::receptions::Holder;
use crate::window::{Held, State};

/// For how long nobody gets a message that is being read, or is on its way elsewhere, in ms. What came of it is said before.
const AWAY_MS: u64 = 86_400_000;

/// A call that waits for messages.
#[derive(Clone, Debug)]
pub struct ReceiveCall {
    /// At most so many.
    pub max: usize,
    /// For how long others will not see them, in ms.
    pub visibility_timeout_ms: u64,
    /// How long to wait for the first, in ms.
    pub wait_ms: u64,
    /// ReceiveRequestAttemptId.
    pub attempt_id: Option<String>,
}

/// A message that was chosen, and what it holds if that is known.
type Chosen = (u64, Holder, Option<Arc<Content>>);

/// A receive whose messages' bodies are being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) call: CallId,
    receive: ReceiveCall,
    until_ms: u64,
    /// None once it is cancelled; then it is under way until its read is over.
    chosen: Vec<Chosen>,
}

impl Reading {
    /// Returns the numbers of the messages that it has taken, each with its holder.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u64, Holder)> {
        self.chosen.iter().map(|(number, holder, _)| (*number, *holder))
    }
}

impl Owner {
    /// Receives messages. The answer is [`Effect::Received`].
    pub fn receive(&mut self, call: CallId, receive: ReceiveCall, now: Now) {
        if !self.takes(call, now) {
            return;
        }
        if self.receives.len() >= WAITING_RECEIVES_MAX {
            let why = "too many receives of this queue wait".to_owned();
            self.effects.push_back(Effect::Failed(call, Fault::Unavailable(why)));
            return;
        }
        if let Some(id) = &receive.attempt_id
            && let Some(got) = self.attempts.take(attempt_key(id), now.wall_ms)
        {
            // A caller that did not get its answer asks again: what it would have got is visible again.
            got.into_iter().for_each(|(number, reception)| {
                self.window.undo(number, (self.epoch, reception));
            });
        }
        self.wait(call, now.steady_ms.saturating_add(receive.wait_ms), receive);
        self.go_on(now);
    }

    /// Nobody waits for this receive any more.
    pub fn cancel(&mut self, call: CallId) {
        if self.receives.remove(&call).is_some() {
            self.ends.retain(|(_, ended)| *ended != call);
        }
        let is_of_call = |reading: &&mut Reading| reading.call == call;
        if let Some(reading) = self.readings.values_mut().find(is_of_call) {
            let chosen = std::mem::take(&mut reading.chosen);
            self.undo_chosen(&chosen);
        }
    }

    /// Nobody heard that these messages were received: they are visible again.
    pub fn undo(&mut self, received: &[Received], now: Now) {
        if self.has_ended() {
            return;
        }
        for receipt in received.iter().filter_map(|one| Receipt::decode(&one.delivery)) {
            self.window.undo(receipt.number, (receipt.epoch, receipt.reception));
        }
        self.go_on(now);
    }

    /// Returns whether no further receive is answered until bodies were read.
    pub(super) fn is_reading_enough(&self) -> bool {
        self.readings.len() >= AT_ONCE_MAX
    }

    fn wait(&mut self, call: CallId, until_ms: u64, receive: ReceiveCall) {
        self.ends.insert((until_ms, call));
        self.receives.insert(call, receive);
    }

    /// Answers those who wait, as far as there is something for them, and those who wait no longer.
    pub(super) fn serve(&mut self, now: Now) {
        self.window.make_due_visible(now.wall_ms);
        while self.lease.is_valid(now) && !self.is_reading_enough() {
            let Some((call, receive)) = self.receives.first_key_value() else { return };
            let (call, receive) = (*call, receive.clone());
            let chosen = self.choose(&receive, now);
            if chosen.is_empty() {
                return self.end_receives(now);
            }
            self.receives.remove(&call);
            let ends = self.ends.iter().find(|(_, ended)| *ended == call).copied();
            let until_ms = ends.map_or(now.steady_ms, |(until_ms, _)| until_ms);
            self.ends.remove(&(until_ms, call));
            self.read(Reading { call, receive, until_ms, chosen }, now);
        }
    }

    /// Chooses what a receive gets, and returns it; it is in flight then.
    fn choose(&mut self, receive: &ReceiveCall, now: Now) -> Vec<Chosen> {
        let mut chosen: Vec<Chosen> = Vec::new();
        let (mut bytes, mut last) = (0, None);
        while chosen.len() < receive.max && bytes < RECEIVE_BYTES_MAX {
            let Some(number) = self.next_kept(last, now) else { break };
            let Some(held) = self.window.get(number) else { break };
            if self.settings.receives_max.is_some_and(|max| held.receive_count >= max) {
                self.move_away(number, now);
                continue;
            }
            bytes += held.bytes;
            let holder = self.hold(number, now);
            chosen.push((number, holder, self.window.content(number)));
            last = Some(number);
        }
        chosen
    }

    /// Returns the next message after one, of those that can be received. Those that are kept no
    /// longer are forgotten on the way.
    pub(super) fn next_kept(&mut self, after: Option<u64>, now: Now) -> Option<u64> {
        loop {
            let number = self.window.next(after)?;
            if self.is_kept(self.window.get(number)?, now) {
                return Some(number);
            }
            self.expire(number);
        }
    }

    /// Returns whether a message's retention is not over.
    pub(super) fn is_kept(&self, held: &Held, now: Now) -> bool {
        sent_at_ms(held.id).saturating_add(self.settings.retention_ms) > now.wall_ms
    }

    /// Puts a message in flight until it is said what came of it. Returns who holds it.
    pub(super) fn hold(&mut self, number: u64, now: Now) -> Holder {
        self.receptions += 1;
        let holder = (self.epoch, self.receptions);
        self.window.receive(number, holder, now.wall_ms.saturating_add(AWAY_MS), now.wall_ms);
        holder
    }

    /// A message was received too often. Its group waits until it is at its dead-letter queue.
    fn move_away(&mut self, number: u64, now: Now) {
        let Some(held) = self.window.get(number) else { return };
        if self.moves >= AT_ONCE_MAX {
            let until_ms = now.wall_ms + MOVE_AGAIN_MS;
            return self.window.set(number, State::Delayed { until_ms });
        }
        let row = RowKey { segment: held.segment, number };
        let (message, receives) = (held.id, held.receive_count);
        self.window.set(number, State::Leaving);
        if self.moves == 0 {
            self.moving_since_ms = now.steady_ms;
        }
        self.moves += 1;
        self.effects.push_back(Effect::Move { row, message, receives });
    }

    /// A message that was to go to the dead-letter queue is there and gone here, or it is not.
    pub fn moved(&mut self, number: u64, is_moved: bool, now: Now) {
        if self.has_ended() {
            return;
        }
        self.moves -= 1;
        if is_moved {
            self.forget(number);
        } else {
            self.window.set(number, State::Delayed { until_ms: now.wall_ms + MOVE_AGAIN_MS });
        }
        self.go_on(now);
    }

    fn read(&mut self, reading: Reading, now: Now) {
        let missing = reading.chosen.iter().filter(|(_, _, content)| content.is_none());
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (number, ..) in missing {
            let Some(held) = self.window.get(*number) else { continue };
            rows.push(RowKey { segment: held.segment, number: *number });
            bytes += held.bytes;
        }
        if rows.is_empty() {
            return self.answer(reading, now);
        }
        let id = self.fresh_id();
        self.readings.insert(id, reading);
        self.effects.push_back(Effect::ReadContents { id, rows, bytes });
    }

    /// Bodies were read, in the order in which they were asked for; of one that is gone there is none.
    pub fn contents_read(
        &mut self,
        id: u64,
        contents: Result<Vec<Option<Content>>, Fault>,
        now: Now,
    ) {
        let Some(mut reading) = self.readings.remove(&id) else { return };
        match contents {
            _ if reading.chosen.is_empty() => {}
            Ok(contents) => {
                let mut contents = contents.into_iter();
                reading.chosen.retain_mut(|(number, holder, content)| {
                    if content.is_none() {
                        *content = contents.next().flatten().map(Arc::new);
                    }
                    // A deletion by a receipt of an earlier owner's may have ended meanwhile.
                    let is_held = self.window.is_held_by(*number, *holder);
                    if is_held && content.is_none() {
                        // It was deleted by an earlier owner's last request, or has ended.
                        self.forget(*number);
                    }
                    is_held && content.is_some()
                });
                if reading.chosen.is_empty() || !self.lease.is_valid(now) {
                    self.undo_chosen(&reading.chosen);
                    self.wait(reading.call, reading.until_ms, reading.receive);
                } else {
                    self.answer(reading, now);
                }
            }
            Err(fault) => {
                self.undo_chosen(&reading.chosen);
                self.effects.push_back(Effect::Failed(reading.call, fault));
            }
        }
        self.go_on(now);
    }

    fn undo_chosen(&mut self, chosen: &[Chosen]) {
        chosen.iter().for_each(|(number, holder, _)| self.window.undo(*number, *holder));
    }

    fn answer(&mut self, reading: Reading, now: Now) {
        let Reading { call, receive, chosen, .. } = reading;
        let until_ms = now.wall_ms.saturating_add(receive.visibility_timeout_ms);
        for (number, ..) in &chosen {
            self.window.give_out(*number, until_ms, now.wall_ms);
        }
        if let Some(id) = &receive.attempt_id {
            let got = chosen.iter().map(|(number, (_, reception), _)| (*number, *reception));
            self.attempts.remember(attempt_key(id), got.collect(), now.wall_ms);
        }
        let received = chosen
            .into_iter()
            .filter_map(|(number, holder, content)| self.received(number, holder, &*content?, now));
        let received = received.collect();
        self.effects.push_back(Effect::Received(call, received));
    }

    fn received(
        &self,
        number: u64,
        (epoch, reception): Holder,
        content: &Content,
        now: Now,
    ) -> Option<Received> {
        let held = self.window.get(number)?;
        let (queue, generation) = (self.queue, self.generation);
        let received_at_ms = now.wall_ms;
        let receipt = Receipt { queue, generation, epoch, number, reception, received_at_ms };
        Some(Received {
            delivery: receipt.encode(),
            message_id: held.id.to_string(),
            body: content.body.clone(),
            attributes: content.attributes.clone(),
            receive_count: held.receive_count.saturating_add(content.earlier_receives),
            sent_at_ms: sent_at_ms(held.id),
            // Two front-ends' clocks may differ. No message was received before it was sent.
            first_received_at_ms: held.first_received_at_ms.max(sent_at_ms(held.id)),
            sender_id: Some(content.sender.clone()).filter(|sender| !sender.is_empty()),
            trace_header: content.trace_header.clone(),
            group_id: Some(content.group_id.clone()),
            deduplication_id: content.deduplication_id.clone(),
            sequence_number: Some(sequence_number(number)),
            dead_letter_source: content.source.clone(),
        })
    }

    /// Returns until when nobody hears that there is nothing, since messages go to the dead-letter
    /// queue.
    pub(super) fn moves_waited_until_ms(&self) -> u64 {
        if self.moves == 0 { 0 } else { self.moving_since_ms.saturating_add(MOVE_WAITED_MS) }
    }

    /// Answers those that wait no longer: there is nothing. While messages are being read there may be something.
    fn end_receives(&mut self, now: Now) {
        if self.is_loading || now.steady_ms < self.moves_waited_until_ms() {
            return;
        }
        while let Some((until_ms, call)) = self.ends.first().copied() {
            if until_ms > now.steady_ms {
                return;
            }
            self.ends.remove(&(until_ms, call));
            if self.receives.remove(&call).is_some() {
                self.effects.push_back(Effect::Received(call, Vec::new()));
            }
        }
    }
}

fn attempt_key(id: &str) -> [u8; 16] {
    let digest = Sha256::digest(id.as_bytes());
    std::array::from_fn(|at| digest[at])
}
