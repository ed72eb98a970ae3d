//! Putting a message into queues: length limits, expiry, the log.

use std::sync::Arc;

use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::{
    Durability, Entry, EntryFlags, Location, NEVER, NewMessage, QueuedMessage, Visibility,
};
use smallvec::SmallVec;

use super::{DISCARDS_AT_ONCE, Messaging};
use crate::queues::Queues;
use crate::queues::queue::InvisibleMessage;
use crate::queues::queue::arguments::Overflow;
use crate::queues::queue::dead_letters::DeadLetterReason;
use crate::queues::queue::groups::group_of;
use crate::work::{STEPS_PER_DISCARD, STEPS_PER_TARGET};

/// A message that is put into no more queues than these is counted with what the turn has put into them.
const TARGETS_COUNTED_LATER: usize = 16;

/// What a message asks for besides its queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageOptions {
    /// It asks to survive a restart.
    pub(crate) persistent: bool,
    pub(crate) priority: u8,
    pub(crate) ttl_ms: Option<u64>,
    /// From when it may be received, whatever the queues' own delays; `None`: as each queue has it.
    pub(crate) visible_at: Option<Timestamp>,
    /// Its group; `None`: its headers say.
    pub(crate) group: Option<u64>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enqueued {
    /// What its confirm has to wait for.
    pub(crate) durability: Durability,
    /// A full queue refused it.
    pub(crate) rejected: bool,
    /// Queues that took it.
    pub(crate) taken: usize,
    /// A queue that took it and slows publishers down.
    pub(crate) slowed_by: Option<QueueId>,
}

/// A queue that takes a message.
struct TargetQueue {
    id: QueueId,
    keeps: bool,
    expires_at: Option<Timestamp>,
    visible_at: Option<Timestamp>,
}

impl Messaging {
    /// Puts a message into queues. It goes into the log once, for all that keep it.
    pub(crate) fn enqueue(
        &mut self,
        now: Timestamp,
        queues: &[QueueId],
        message: &Arc<Message>,
        options: MessageOptions,
    ) -> Enqueued {
        let mut enqueued =
            Enqueued { durability: Durability::None, rejected: false, taken: 0, slowed_by: None };
        let mut targets: SmallVec<[TargetQueue; 4]> = SmallVec::new();
        for &id in queues {
            if !self.admits(id, now, message) {
                enqueued.rejected = true;
                continue;
            }
            let Some(queue) = self.queues.get(id) else {
                continue;
            };
            let keeps = options.persistent && queue.keeps_messages();
            if keeps {
                enqueued.durability = enqueued.durability.max(queue.rules.durability);
            }
            let visible_at =
                options.visible_at.unwrap_or_else(|| now.plus_ms(queue.settings().delay_ms));
            let visible_at = Some(visible_at).filter(|at| *at > now);
            let expires_at = queue.expiry(now, options.ttl_ms);
            targets.push(TargetQueue { id, keeps, expires_at, visible_at });
        }
        enqueued.taken = targets.len();
        let seq = self.queues.take_seq(now);
        let location = if enqueued.durability == Durability::None {
            Location::NOWHERE
        } else {
            self.log.note_durability(enqueued.durability);
            self.append(seq, &targets, message, options, now)
        };
        for target in &targets {
            if self.push(target, seq, location, message, options, now) {
                enqueued.slowed_by = Some(target.id);
            }
            // The end of the turn is too late: very many such messages may come before it.
            if targets.len() > TARGETS_COUNTED_LATER {
                self.queues.count_memory(target.id);
            }
        }
        self.steps += (queues.len() as u64).saturating_sub(1) * STEPS_PER_TARGET;
        enqueued
    }

    /// Writes a message to the log, for the targets that keep it.
    fn append(
        &mut self,
        seq: Seq,
        targets: &[TargetQueue],
        message: &Message,
        options: MessageOptions,
        now: Timestamp,
    ) -> Location {
        let keepers = || targets.iter().filter(|target| target.keeps);
        let queues: SmallVec<[QueueId; 8]> = keepers().map(|target| target.id).collect();
        let expiries: SmallVec<[Timestamp; 8]> = if keepers().any(|t| t.expires_at.is_some()) {
            keepers().map(|target| target.expires_at.unwrap_or(NEVER)).collect()
        } else {
            SmallVec::new()
        };
        // Queues may differ in their delays; then each is noted by itself.
        let shared = match targets {
            [only] => only.visible_at,
            _ => None,
        };
        let location = self.log.store.append_message(NewMessage {
            seq,
            queues: &queues,
            durable: true,
            enqueued_at: now,
            visible_at: shared,
            expiries: &expiries,
            priority: options.priority,
            message,
        });
        for target in keepers().filter(|_| shared.is_none()) {
            if let Some(visible_at) = target.visible_at {
                let noted = Visibility { seq, visible_at, ..Visibility::default() };
                self.log.store.append_visibility(target.id, &noted);
            }
        }
        location
    }

    /// Returns whether the queue slows the publisher down.
    fn push(
        &mut self,
        target: &TargetQueue,
        seq: Seq,
        location: Location,
        message: &Arc<Message>,
        options: MessageOptions,
        now: Timestamp,
    ) -> bool {
        let Some((queue, schedule)) = self.queues.with_schedule(target.id) else {
            return false;
        };
        let mut flags = EntryFlags::NONE;
        if target.keeps {
            flags = flags.with(EntryFlags::DURABLE).with(EntryFlags::STORED);
        }
        if target.expires_at.is_some() {
            flags = flags.with(EntryFlags::HAS_EXPIRY);
        }
        let entry = Entry {
            seq,
            location: if target.keeps { location } else { Location::NOWHERE },
            body_bytes: message.body().len() as u32,
            delivery_count: 0,
            priority: options.priority,
            flags,
        };
        let expires_at = target.expires_at;
        queue.counters.publish += 1;
        if let Some(groups) = &mut queue.groups {
            let group = options.group.unwrap_or_else(|| group_of(message));
            match target.visible_at {
                None => groups.add_visible(seq, group),
                Some(_) => groups.add_delayed(seq, group),
            }
        }
        if let Some(visible_at) = target.visible_at {
            // The body is read back when its time comes.
            let body = (!entry.is_stored()).then(|| Arc::clone(message));
            let mut message = QueuedMessage { entry, expires_at, body };
            let never = Timestamp::ZERO;
            self.log.spill_invisible(target.id, &mut message, now);
            queue.ready.skip();
            queue.invisible.insert(InvisibleMessage {
                message,
                visible_at,
                received_at: never,
                first_received_at: never,
            });
            self.queues.reschedule(target.id);
            return false;
        }
        queue.ready.push(QueuedMessage { entry, expires_at, body: Some(Arc::clone(message)) });
        let is_limited = queue.has_length_limit();
        let slows = self.flow_control.slows(queue, now);
        schedule.wake(queue);
        // A TTL of 0 means: to a consumer at once, or never.
        if expires_at.is_some_and(|at| at <= now) {
            self.dispatch(target.id, now);
        }
        if is_limited {
            self.enforce_length(target.id, now);
        }
        slows
    }

    /// Decides whether the queue takes one more message, or refuses it since it is full.
    fn admits(&mut self, id: QueueId, now: Timestamp, message: &Arc<Message>) -> bool {
        if self.has_room(id, now, 1, message.body().len() as u64) {
            return true;
        }
        self.counters.rejected += 1;
        if let Some(queue) = self.queues.get_mut(id) {
            queue.counters.rejected += 1;
            if queue.rules.overflow == Overflow::RejectPublishDlx
                && queue.rules.dead_letter.is_some()
            {
                let entry = Entry { body_bytes: message.body().len() as u32, ..Entry::default() };
                let body = Some(Arc::clone(message));
                let message = QueuedMessage { entry, expires_at: None, body };
                queue.dead_letters.push(message, DeadLetterReason::MaxLength);
                self.queues.reschedule(id);
            }
        }
        false
    }

    /// Returns whether a queue takes so many more messages, of so many bytes together, and refuses
    /// none.
    pub(crate) fn has_room(&mut self, id: QueueId, now: Timestamp, count: u64, bytes: u64) -> bool {
        let has_room = |queues: &Queues| {
            let queue = queues.get(id).filter(|queue| queue.refuses_overflow());
            queue.is_none_or(|queue| !queue.would_overflow(count, bytes))
        };
        if has_room(&self.queues) {
            return true;
        }
        // What consumers can take at once does not count.
        self.dispatch_before_decision(id, now);
        has_room(&self.queues)
    }

    /// Drops messages from the head of a queue that is too long; if they are very many, the rest as it is dispatched. With
    /// `reject-publish` only a requeue can make it so, and nothing is dropped, as in RabbitMQ.
    pub(crate) fn enforce_length(&mut self, id: QueueId, now: Timestamp) {
        let is_over = self.queues.get(id).is_some_and(|queue| queue.is_over_limit());
        if !is_over {
            return;
        }
        // What consumers can take at once does not count.
        self.dispatch(id, now);
        if self.shorten(id, now, DISCARDS_AT_ONCE) {
            self.queues.wake(id);
        }
    }

    /// Drops `max` messages at most. True: it is still too long.
    pub(super) fn shorten(&mut self, id: QueueId, now: Timestamp, max: usize) -> bool {
        let Some(queue) = self.queues.get_mut(id) else {
            return false;
        };
        if queue.rules.overflow != Overflow::DropHead {
            return false;
        }
        let (mut is_absent, mut dropped) = (false, 0);
        queue.is_too_long = false;
        while queue.is_over_limit() {
            if dropped == max {
                queue.is_too_long = true;
                break;
            }
            let Some(message) = queue.ready.pop() else {
                is_absent = true;
                break;
            };
            dropped += 1;
            if message.expires_at.is_some_and(|at| at < now) {
                self.counters.expired += 1;
                queue.discard(message, DeadLetterReason::Expired);
            } else {
                self.counters.overflowed += 1;
                queue.discard(message, DeadLetterReason::MaxLength);
            }
        }
        let is_too_long = queue.is_too_long;
        // It goes on when the head is read.
        queue.is_too_long |= is_absent;
        self.steps += dropped as u64 * STEPS_PER_DISCARD;
        if is_absent {
            self.queues.read_head(&mut self.log, id, now);
        }
        self.queues.reschedule(id);
        is_too_long
    }
}
