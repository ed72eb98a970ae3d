//! Receiving: a message is taken, and nobody else sees it until its visibility timeout is over or it
//! is deleted (BDQS §III-B.3). What is promised survives the process, but not the loss of power: then a
//! message may be visible again at once.

use std::sync::Arc;

use quelea_model::limits::{
    DEAD_LETTERS_WAITING_MAX, IN_FLIGHT_MAX, RECEIVE_BYTES_MAX, RECEIVES_WAITING_MAX,
};
use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::{Durability, EntryFlags, NewMessage, QueuedMessage, StoreState, Ticket};

use crate::Broker;
use crate::death::Reason;
use crate::effect::Effect;
use crate::error::{LimitReached, NoSuchQueueId, ReceiveError};
use crate::ids::ReceiveId;
use crate::queue::groups::Ordering;
use crate::queue::{Choice, Hidden, WaitingReceive};

/// What to receive.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// At most so many messages; at least 1.
    pub max: usize,
    /// For how long others will not see them, in ms.
    pub visibility_timeout_ms: u64,
    /// How long to wait for the first, in ms.
    pub wait_ms: u64,
    /// Hash of the caller's name for this attempt, if it gave one: a repetition within five minutes
    /// first makes visible what the attempt before got.
    pub attempt: Option<u64>,
}

/// One delivery of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The queue.
    pub queue: QueueId,
    /// The message.
    pub seq: Seq,
    /// Which of its receptions it is, counted from 1.
    pub receive_count: u16,
}

/// A message that was received.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// What deletes it.
    pub receipt: Receipt,
    /// When it was received for the first time.
    pub first_received_at: Timestamp,
    /// The message.
    pub message: Arc<Message>,
}

/// Why a queue's turn of receives ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Nobody waits, or there is nothing for them.
    All,
    /// A message has to be read first: this one, or the head.
    Absent(Option<Seq>),
}

impl Broker {
    /// Receives messages. The answer is an [`Effect::Received`] with the same id: at once if there
    /// are messages, else when there are some, or when it has waited for as long as it may.
    ///
    /// # Errors
    /// [`ReceiveError`]; there is no answer then.
    pub fn receive(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receive: Receive,
    ) -> Result<ReceiveId, ReceiveError> {
        self.show_due(id, now);
        if let Some(attempt) = receive.attempt {
            self.repeat_attempt(now, id, attempt);
        }
        let queue = self.queues.get_mut(&id).ok_or(NoSuchQueueId { queue: id })?;
        let is_fifo = queue.settings().fifo.is_some();
        if !is_fifo && queue.hidden.in_flight() >= IN_FLIGHT_MAX {
            let what = String::from("another message in flight");
            return Err(ReceiveError::OverLimit(LimitReached { what, limit: IN_FLIGHT_MAX }));
        }
        if self.receives_waiting >= RECEIVES_WAITING_MAX {
            let what = String::from("another receive that waits");
            return Err(ReceiveError::Busy(LimitReached { what, limit: RECEIVES_WAITING_MAX }));
        }
        self.next_receive += 1;
        self.receives_waiting += 1;
        let receive_id = ReceiveId(self.next_receive);
        queue.used_at = now;
        queue.receives.push(
            receive_id,
            WaitingReceive {
                max: receive.max.max(1),
                visibility_timeout_ms: receive.visibility_timeout_ms,
                until: now.plus_ms(receive.wait_ms),
                attempt: receive.attempt,
            },
        );
        self.dispatch(id, now);
        Ok(receive_id)
    }

    /// Ends a receive without an answer. Nothing happens if it has been answered.
    pub fn cancel_receive(&mut self, id: QueueId, receive: ReceiveId) {
        if let Some(queue) = self.queues.get_mut(&id)
            && queue.receives.remove(receive).is_some()
        {
            self.receives_waiting -= 1;
        }
    }

    /// Answers those who wait, as far as there is something for them, and those who wait no longer.
    pub(crate) fn serve_receives(&mut self, id: QueueId, now: Timestamp) -> Served {
        loop {
            let Some(queue) = self.queues.get(&id) else {
                return Served::All;
            };
            let Some((receive_id, waiting)) = queue.receives.first() else {
                return Served::All;
            };
            let waiting = waiting.clone();
            match self.collect(id, &waiting, now) {
                Ok(messages) if !messages.is_empty() => {
                    self.answer_receive(id, receive_id, messages, &waiting, now);
                }
                Ok(_) => {
                    self.end_receives(id, now);
                    return Served::All;
                }
                Err(absent) => return Served::Absent(absent),
            }
        }
    }

    /// Takes messages for one receive; `Err` if the first has to be read.
    fn collect(
        &mut self,
        id: QueueId,
        waiting: &WaitingReceive,
        now: Timestamp,
    ) -> Result<Vec<ReceivedMessage>, Option<Seq>> {
        let mut messages = Vec::new();
        let mut bytes = 0;
        let mut group = None;
        let target = self.redrive_target(id);
        while messages.len() < waiting.max && bytes < RECEIVE_BYTES_MAX {
            let Some(queue) = self.queues.get_mut(&id) else {
                break;
            };
            if queue.transit.len() >= DEAD_LETTERS_WAITING_MAX
                || queue.hidden.in_flight() >= IN_FLIGHT_MAX
            {
                break;
            }
            let choice = queue.choose(Some(&mut self.random), group);
            let message = match choice {
                Choice::Nothing => break,
                Choice::Absent(seq) if messages.is_empty() => return Err(seq),
                Choice::Absent(_) => break,
                Choice::Front | Choice::This(_) => queue.take(choice),
            };
            let Some(message) = message else { break };
            queue.read_ahead.given_out();
            let body_bytes = message.entry.body_bytes as usize;
            let over = target.filter(|(_, max)| message.entry.delivery_count >= *max);
            if message.expires_at.is_some_and(|at| at <= now) {
                self.counters.expired += 1;
                queue.discard(message, Reason::Expired);
                continue;
            }
            // Where there is no room it is received once more instead.
            let is_over = over.is_some_and(|(to, _)| self.has_room(to, body_bytes));
            let Some(queue) = self.queues.get_mut(&id) else {
                break;
            };
            if is_over {
                self.counters.over_delivery_limit += 1;
                queue.discard(message, Reason::Redriven);
            } else {
                group = queue.groups.as_ref().map(|groups| groups.group_of(message.entry.seq));
                let until = now.plus_ms(waiting.visibility_timeout_ms);
                if let Some(message) = self.hide(id, message, until, now) {
                    bytes += message.message.body().len();
                    messages.push(message);
                }
            }
        }
        Ok(messages)
    }

    /// The queue that messages are moved to, if there is one, and how often they may be received
    /// before that.
    fn redrive_target(&self, id: QueueId) -> Option<(QueueId, u16)> {
        let queue = self.queues.get(&id)?;
        let redrive = queue.settings().redrive.as_ref()?;
        let vhost = self.vhosts.get(queue.vhost.0)?;
        vhost.queues.get(&*redrive.target).map(|target| (*target, redrive.receives_max))
    }

    /// Hides a message that is being received; gives what the receiver gets.
    fn hide(
        &mut self,
        id: QueueId,
        mut message: QueuedMessage,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> Option<ReceivedMessage> {
        let queue = self.queues.get_mut(&id)?;
        let entry = &mut message.entry;
        let seq = entry.seq;
        let body = if entry.is_stored() { message.body.take() } else { message.body.clone() };
        let Some(body) = body else {
            queue.ready.insert(message);
            return None;
        };
        entry.delivery_count = entry.delivery_count.saturating_add(1);
        let redelivered = entry.flags.has(EntryFlags::REDELIVERED);
        entry.flags = entry.flags.with(EntryFlags::REDELIVERED);
        for counters in [&mut queue.counters, &mut self.counters] {
            counters.get += 1;
            counters.redeliver += u64::from(redelivered);
        }
        let receipt = Receipt { queue: id, seq, receive_count: entry.delivery_count };
        let first_received_at = self.put_away(id, message, visible_at, now)?;
        Some(ReceivedMessage { receipt, first_received_at, message: body })
    }

    /// Puts a message that was visible among the hidden ones, and notes it; gives when it was first
    /// received.
    pub(crate) fn put_away(
        &mut self,
        id: QueueId,
        mut message: QueuedMessage,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.store_hidden(id, &mut message, now);
        let queue = self.queues.get_mut(&id)?;
        let entry = &message.entry;
        let seq = entry.seq;
        let is_logged = entry.is_durable() && entry.is_stored();
        let first_received_at = queue.hidden.received_before(seq).unwrap_or(now);
        let hidden = Hidden { message, visible_at, received_at: now, first_received_at };
        if is_logged {
            self.store.append_visibility(id, &hidden.visibility());
        }
        queue.hidden.insert(hidden);
        if let Some(groups) = &mut queue.groups {
            groups.hide(seq);
        }
        Some(first_received_at)
    }

    /// A message is hidden for up to twelve hours: if only memory has it, it is written to the log like
    /// any that has to make room, so that bodies in hiding do not stop the publishers.
    pub(crate) fn store_hidden(
        &mut self,
        id: QueueId,
        message: &mut QueuedMessage,
        now: Timestamp,
    ) {
        if message.entry.is_stored() || *self.store.state() != StoreState::Healthy {
            return;
        }
        let Some(body) = message.body.take() else {
            return;
        };
        message.entry.location = self.store.append_message(NewMessage {
            seq: message.entry.seq,
            queues: &[id],
            durable: false,
            enqueued_at: now,
            visible_at: None,
            expiries: message.expires_at.as_slice(),
            priority: message.entry.priority,
            message: &body,
        });
        message.entry.flags = message.entry.flags.with(EntryFlags::STORED);
    }

    fn answer_receive(
        &mut self,
        id: QueueId,
        receive: ReceiveId,
        messages: Vec<ReceivedMessage>,
        waiting: &WaitingReceive,
        now: Timestamp,
    ) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.receives.remove(receive);
            self.receives_waiting -= 1;
            if let (Some(attempt), Some(groups)) = (waiting.attempt, &mut queue.groups)
                && groups.ordering() == Ordering::Fifo
            {
                let receipts = messages.iter().map(|message| message.receipt).collect();
                groups.attempts.remember(attempt, receipts, now);
            }
        }
        // Who has a receipt relies on it after the process is killed, too: what was noted has to be
        // written, though not synced. Losing power only makes messages visible too early.
        // A full disk must not keep anybody from emptying the queues.
        let ticket = match self.store.state() {
            StoreState::Healthy => self.ticket(Durability::Os),
            StoreState::Full { .. } | StoreState::Failed { .. } => Ticket::NONE,
        };
        self.effects.push_back(Effect::Received { receive, messages: Some(messages), ticket });
    }

    /// A caller that did not get its answer asks again: what it would have got is visible again.
    fn repeat_attempt(&mut self, now: Timestamp, id: QueueId, attempt: u64) {
        let receipts = self
            .queues
            .get_mut(&id)
            .and_then(|queue| queue.groups.as_mut())
            .and_then(|groups| groups.attempts.take(attempt, now));
        if let Some(receipts) = receipts {
            self.give_back(now, &receipts);
        }
    }

    /// Tells those who wait no longer that there is nothing.
    fn end_receives(&mut self, id: QueueId, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        while let Some(receive) = queue.receives.pop_ended(now) {
            self.receives_waiting -= 1;
            queue.counters.get_empty += 1;
            self.counters.get_empty += 1;
            self.effects.push_back(Effect::Received {
                receive,
                messages: Some(Vec::new()),
                ticket: Ticket::NONE,
            });
        }
    }

    /// The queue is gone: so is everything that they wait for.
    pub(crate) fn fail_receives(&mut self, queue: &mut crate::queue::Queue) {
        for receive in queue.receives.drain() {
            self.receives_waiting -= 1;
            self.effects.push_back(Effect::Received {
                receive,
                messages: None,
                ticket: Ticket::NONE,
            });
        }
    }
}
