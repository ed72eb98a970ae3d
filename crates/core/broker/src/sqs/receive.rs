//! Receiving: a message is taken, and nobody else sees it until its visibility timeout is over or it
//! is deleted (BDQS §III-B.3). What is promised survives the process, but not the loss of power: then a
//! message may be visible again at once.

use quelea_model::limits::{DEAD_LETTERS_WAITING_MAX, IN_FLIGHT_MAX, RECEIVE_BYTES_MAX};
use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{Durability, Entry, EntryFlags, QueuedMessage, Ticket};

use crate::effect::Effect;
use crate::error::{LimitReached, NoSuchQueueId, ReceiveError};
use crate::ids::ReceiveId;
use crate::messaging::Messaging;
use crate::queues::queue::dead_letters::DeadLetterReason;
use crate::queues::queue::groups::Ordering;
use crate::queues::queue::{Choice, WaitingReceive};
use crate::reply::{Receipt, ReceivedMessage};
use crate::request::Receive;

/// How often bodies are read for one receive before it gets what is in memory: when there is so little
/// memory that they are dropped before it is served, it is not to wait for ever.
const READS_TOGETHER_MAX: u8 = 3;

/// Why a queue's turn of receives ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Nobody waits, or there is nothing for them.
    All,
    /// A message has to be read first: this one, or the head.
    Absent(Option<Seq>),
}

/// What a receive of a FIFO queue comes to.
#[derive(Debug, Default)]
struct Upcoming {
    /// Those that it gets and that the log has.
    stored: Vec<Entry>,
    /// Whether the body of one of them has to be read.
    is_absent: bool,
    /// The first that it does not get, and why: it has expired, or was received too often.
    unwanted: Option<(Seq, DeadLetterReason)>,
}

impl Messaging {
    /// Receives messages. The answer is an [`Effect::Received`] with the same id: at once if there
    /// are messages, else when there are some, or when it has waited for as long as it may.
    ///
    /// # Errors
    /// [`ReceiveError`]; there is no answer then.
    pub(crate) fn receive(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receive: Receive,
    ) -> Result<ReceiveId, ReceiveError> {
        self.queues.make_due_visible(&mut self.log, id, now);
        if let Some(attempt) = receive.attempt {
            self.repeat_attempt(now, id, attempt);
        }
        let queue = self.queues.get_mut(id).ok_or(NoSuchQueueId { queue: id })?;
        let is_fifo = queue.settings().fifo.is_some();
        if !is_fifo && queue.invisible.in_flight() >= IN_FLIGHT_MAX {
            let what = String::from("another message in flight");
            return Err(ReceiveError::OverLimit(LimitReached { what, limit: IN_FLIGHT_MAX }));
        }
        let receive_id = self.receives.begin()?;
        queue.used_at = now;
        queue.receives.push(
            receive_id,
            WaitingReceive {
                max: receive.max.max(1),
                visibility_timeout_ms: receive.visibility_timeout_ms,
                until: now.plus_ms(receive.wait_ms),
                attempt: receive.attempt,
                reads: 0,
            },
        );
        self.dispatch(id, now);
        Ok(receive_id)
    }

    /// Ends a receive without an answer. Nothing happens if it has been answered.
    pub(crate) fn cancel_receive(&mut self, id: QueueId, receive: ReceiveId) {
        if let Some(queue) = self.queues.get_mut(id)
            && queue.receives.remove(receive).is_some()
        {
            self.receives.end();
        }
    }

    /// Answers those who wait, as far as there is something for them, and those who wait no longer.
    pub(crate) fn serve_receives(&mut self, id: QueueId, now: Timestamp) -> Served {
        loop {
            let Some(queue) = self.queues.get(id) else {
                return Served::All;
            };
            let Some((receive_id, waiting)) = queue.receives.first() else {
                return Served::All;
            };
            let waiting = waiting.clone();
            if self.reads_together(id, receive_id, &waiting, now) {
                return Served::Absent(None);
            }
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

    /// Reads the bodies that a receive of a FIFO queue will get. Returns whether it has to wait for
    /// that: it gets all that it may of a group at once, and not what happens to be in memory.
    fn reads_together(
        &mut self,
        id: QueueId,
        receive_id: ReceiveId,
        waiting: &WaitingReceive,
        now: Timestamp,
    ) -> bool {
        if waiting.reads >= READS_TOGETHER_MAX {
            return false;
        }
        let upcoming = loop {
            let Some(upcoming) = self.upcoming(id, waiting.max, now) else {
                return false;
            };
            let Some((seq, reason)) = upcoming.unwanted else { break upcoming };
            // What comes behind it in another order when it is gone is seen the next time.
            let queue = self.queues.get_mut(id);
            if let Some((queue, message)) = queue.and_then(|q| q.ready.remove(seq).map(|m| (q, m)))
            {
                match reason {
                    DeadLetterReason::Expired => self.counters.expired += 1,
                    _ => self.counters.over_delivery_limit += 1,
                }
                queue.discard(message, reason);
            }
        };
        if upcoming.is_absent
            && self.queues.read_together(&mut self.log, id, &upcoming.stored)
            && let Some(queue) = self.queues.get_mut(id)
            && let Some(waiting) = queue.receives.get_mut(receive_id)
        {
            waiting.reads += 1;
        }
        upcoming.is_absent
    }

    /// Returns what a receive of a FIFO queue comes to; `None` of other queues, and while groups are
    /// not known.
    fn upcoming(&self, id: QueueId, max: usize, now: Timestamp) -> Option<Upcoming> {
        let target = self.queues.redrive_target(id);
        let queue = self.queues.get(id)?;
        let groups = queue.groups.as_ref()?;
        if groups.ordering() != Ordering::Fifo || groups.is_unknown {
            return None;
        }
        let mut upcoming = Upcoming::default();
        let (mut given, mut bytes) = (0, 0);
        for seq in groups.upcoming() {
            let Some(held) = queue.ready.get(seq) else { break };
            let is_full = queue.dead_letters.len() >= DEAD_LETTERS_WAITING_MAX;
            if given == max || bytes >= RECEIVE_BYTES_MAX || is_full {
                break;
            }
            let body_bytes = held.entry.body_bytes as usize;
            let over = target.filter(|(_, max)| held.entry.delivery_count >= *max);
            if held.expires_at.is_some_and(|at| at <= now) {
                upcoming.unwanted = Some((seq, DeadLetterReason::Expired));
                break;
            } else if over.is_some_and(|(to, _)| self.queues.has_room(to, body_bytes)) {
                upcoming.unwanted = Some((seq, DeadLetterReason::Redriven));
                break;
            }
            given += 1;
            bytes += body_bytes;
            upcoming.is_absent |= held.body.is_none();
            // What is here is read too: it may be dropped from memory before the rest is.
            upcoming.stored.extend(held.entry.is_stored().then_some(*held.entry));
        }
        Some(upcoming)
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
        let mut received = None;
        let target = self.queues.redrive_target(id);
        while messages.len() < waiting.max && bytes < RECEIVE_BYTES_MAX {
            let Some(queue) = self.queues.get_mut(id) else {
                break;
            };
            if queue.dead_letters.len() >= DEAD_LETTERS_WAITING_MAX
                || queue.invisible.in_flight() >= IN_FLIGHT_MAX
            {
                break;
            }
            let choice = queue.choose(Some(&mut self.receives.random), received);
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
                queue.discard(message, DeadLetterReason::Expired);
                continue;
            }
            // Where there is no room it is received once more instead.
            let is_over = over.is_some_and(|(to, _)| self.queues.has_room(to, body_bytes));
            let Some(queue) = self.queues.get_mut(id) else {
                break;
            };
            if is_over {
                self.counters.over_delivery_limit += 1;
                queue.discard(message, DeadLetterReason::Redriven);
            } else {
                received = Some(message.entry.seq);
                let until = now.plus_ms(waiting.visibility_timeout_ms);
                if let Some(message) = self.take_received(id, message, until, now) {
                    bytes += message.message.body().len();
                    messages.push(message);
                }
            }
        }
        Ok(messages)
    }

    /// Makes a message invisible that is being received. Returns what the receiver gets.
    fn take_received(
        &mut self,
        id: QueueId,
        mut message: QueuedMessage,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> Option<ReceivedMessage> {
        let queue = self.queues.get_mut(id)?;
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
        let first_received_at =
            self.queues.make_invisible(&mut self.log, id, message, visible_at, now)?;
        Some(ReceivedMessage { receipt, first_received_at, message: body })
    }

    fn answer_receive(
        &mut self,
        id: QueueId,
        receive: ReceiveId,
        messages: Vec<ReceivedMessage>,
        waiting: &WaitingReceive,
        now: Timestamp,
    ) {
        if let Some(queue) = self.queues.get_mut(id) {
            queue.receives.remove(receive);
            self.receives.end();
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
        let ticket = if self.log.is_healthy() { self.ticket(Durability::Os) } else { Ticket::NONE };
        self.effects.push_back(Effect::Received { receive, messages: Some(messages), ticket });
    }

    /// A caller that did not get its answer asks again: what it would have got is visible again.
    fn repeat_attempt(&mut self, now: Timestamp, id: QueueId, attempt: u64) {
        let receipts = self
            .queues
            .get_mut(id)
            .and_then(|queue| queue.groups.as_mut())
            .and_then(|groups| groups.attempts.take(attempt, now));
        if let Some(receipts) = receipts {
            self.queues.undo_receives(&mut self.log, &receipts, now);
        }
    }

    /// Answers those that wait no longer: there is nothing. They stay while messages that were received too often are
    /// on their way to the dead-letter queue, a second at most: who was told that there is nothing here finds them there.
    fn end_receives(&mut self, id: QueueId, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        let patience_ms = queue.receive_patience_ms();
        while let Some(receive) = queue.receives.pop_ended(now, patience_ms) {
            self.receives.end();
            queue.counters.get_empty += 1;
            self.counters.get_empty += 1;
            self.effects.push_back(Effect::Received {
                receive,
                messages: Some(Vec::new()),
                ticket: Ticket::NONE,
            });
        }
    }
}
