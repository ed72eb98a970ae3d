//! Giving the store all live entries for its checkpoint, a slice at a time, while everything goes
//! on in between.
//!
//! Ready messages come first, then those delivered and not settled, then hidden ones, then those on
//! their way to a dead-letter exchange: messages move in that direction only, but for a requeue and
//! for one that becomes visible again, which the store is told of (`Store::append_requeue`). So none
//! slips through.

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::Visibility;

use crate::Broker;
use crate::queue::Queue;
use crate::queue::ready_messages::ReadyCursor;

/// Entries that are given in one call of [`Broker::run`]: well under a millisecond.
const ENTRIES_PER_SLICE: usize = 8_192;

/// How far a pass has come.
#[derive(Debug)]
pub(crate) enum CheckpointPass {
    /// The queues that are left, and how far the last of them has come.
    Ready { queues: Vec<QueueId>, cursor: ReadyCursor },
    /// The channels from this slot on; of the first one, the deliveries after this tag.
    Unacked { slot: usize, tag: u64 },
    /// The queues that are left, and how far the last of them has come.
    Noted { queues: Vec<QueueId>, at: Noted },
    /// The queues that are left; of the last one, the hidden messages from this number on.
    Hidden { queues: Vec<QueueId>, from: Seq },
    /// The queues that are left.
    Transit { queues: Vec<QueueId> },
    /// The last pass of all.
    Finished,
}

/// How far a pass has come with what is noted of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    /// The messages from this number on.
    seq: Seq,
    /// The deduplication ids that were sent from then on.
    sent_at: Timestamp,
}

impl CheckpointPass {
    pub(crate) const fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

impl Broker {
    /// Does a slice of the pass, and begins one when it is time. True: call again soon.
    pub(crate) fn checkpoint_slice(&mut self, now: Timestamp) -> bool {
        let Some(pass) = self.checkpoint.take() else {
            return self.begin_checkpoint();
        };
        if pass.is_finished() {
            self.checkpoint = Some(pass);
            return false;
        }
        if !self.store.checkpoint_gathering() {
            // Given up: the disk refused it. A shutdown does without.
            self.checkpoint = self.is_shutting_down.then_some(CheckpointPass::Finished);
            return false;
        }
        if !self.store.checkpoint_ready() {
            self.checkpoint = Some(pass);
            return false;
        }
        self.checkpoint = match pass {
            CheckpointPass::Ready { queues, cursor } => Some(self.give_ready(queues, cursor)),
            CheckpointPass::Unacked { slot, tag } => Some(self.give_unacked(slot, tag)),
            CheckpointPass::Noted { queues, at } => Some(self.give_noted(queues, at, now)),
            CheckpointPass::Hidden { queues, from } => Some(self.give_hidden(queues, from)),
            CheckpointPass::Transit { queues } => self.give_transit(queues),
            CheckpointPass::Finished => Some(CheckpointPass::Finished),
        };
        true
    }

    fn begin_checkpoint(&mut self) -> bool {
        let wanted = self.is_shutting_down || self.store.wants_checkpoint();
        if !wanted || self.store.checkpoint_under_way() {
            return false;
        }
        self.flush_settled();
        self.store.begin_checkpoint();
        if self.store.checkpoint_gathering() {
            let queues = self.queues.keys().copied().collect();
            let cursor = ReadyCursor::default();
            self.checkpoint = Some(CheckpointPass::Ready { queues, cursor });
            return true;
        }
        self.checkpoint = self.is_shutting_down.then_some(CheckpointPass::Finished);
        false
    }

    fn give_ready(&mut self, mut queues: Vec<QueueId>, mut cursor: ReadyCursor) -> CheckpointPass {
        let mut left = ENTRIES_PER_SLICE;
        while let Some(id) = queues.last() {
            let Some(queue) = self.queues.get_mut(id) else {
                queues.pop();
                cursor = ReadyCursor::default();
                continue;
            };
            // A queue costs something although it is empty.
            left = left.saturating_sub(1 + queue.ready.len());
            if !queue.ready.checkpoint(*id, &mut cursor, ENTRIES_PER_SLICE, &mut *self.store) {
                return CheckpointPass::Ready { queues, cursor };
            }
            queues.pop();
            cursor = ReadyCursor::default();
            if left == 0 {
                return CheckpointPass::Ready { queues, cursor };
            }
        }
        CheckpointPass::Unacked { slot: 0, tag: 0 }
    }

    fn give_unacked(&mut self, mut slot: usize, mut tag: u64) -> CheckpointPass {
        let mut left = ENTRIES_PER_SLICE;
        while slot < self.clients.channels.slots() {
            if let Some((_, channel)) = self.clients.channels.at_slot(slot) {
                for (delivery, unacked) in channel.unacked.after_mut(tag) {
                    if left == 0 {
                        return CheckpointPass::Unacked { slot, tag };
                    }
                    left -= 1;
                    tag = delivery;
                    if unacked.entry.is_stored() && self.queues.contains_key(&unacked.queue) {
                        let entry = std::slice::from_mut(&mut unacked.entry);
                        let expiry = [unacked.expires_at];
                        self.store.checkpoint_entries(unacked.queue, entry, &expiry);
                    }
                }
            }
            slot += 1;
            tag = 0;
        }
        let queues = self.queues.values().filter(|q| q.has_notes()).map(|q| q.id).collect();
        CheckpointPass::Noted { queues, at: Noted::default() }
    }

    /// What is noted of messages that are visible, and of deduplication ids: the log before the
    /// checkpoint is not read again.
    fn give_noted(
        &mut self,
        mut queues: Vec<QueueId>,
        mut at: Noted,
        now: Timestamp,
    ) -> CheckpointPass {
        let mut left = ENTRIES_PER_SLICE;
        while let Some(id) = queues.last().copied() {
            let Some(queue) = self.queues.get_mut(&id) else {
                queues.pop();
                at = Noted::default();
                continue;
            };
            for (seq, first_received_at) in queue.hidden.received_before_from(at.seq) {
                if left == 0 {
                    return CheckpointPass::Noted { queues, at };
                }
                left -= 1;
                at.seq = seq.next();
                let Some(held) = queue.ready.get(seq).filter(|held| held.entry.is_durable()) else {
                    continue;
                };
                let receive_count = held.entry.delivery_count;
                let visible_at = Timestamp::ZERO;
                let noted = Visibility { seq, visible_at, first_received_at, receive_count };
                self.store.append_visibility(id, &noted);
            }
            let since = at.sent_at;
            for sent in queue.deduplications.iter_mut().flat_map(|ids| ids.since(since, now)) {
                // Those of one moment are given together: the next slice begins at another one.
                if left == 0 && sent.sent_at > at.sent_at {
                    at.sent_at = sent.sent_at;
                    return CheckpointPass::Noted { queues, at };
                }
                left = left.saturating_sub(1);
                at.sent_at = sent.sent_at;
                self.store.append_deduplication(id, sent);
            }
            queues.pop();
            at = Noted::default();
            left = left.saturating_sub(1);
            if left == 0 {
                return CheckpointPass::Noted { queues, at };
            }
        }
        let queues = self.queues.values().filter(|q| !q.hidden.is_empty()).map(|q| q.id).collect();
        CheckpointPass::Hidden { queues, from: Seq(0) }
    }

    fn give_hidden(&mut self, mut queues: Vec<QueueId>, mut from: Seq) -> CheckpointPass {
        let mut left = ENTRIES_PER_SLICE;
        while let Some(id) = queues.last().copied() {
            let hidden = self.queues.get_mut(&id).map(|queue| queue.hidden.starting_at(from));
            for hidden in hidden.into_iter().flatten() {
                if left == 0 {
                    return CheckpointPass::Hidden { queues, from };
                }
                left -= 1;
                let visibility = hidden.visibility();
                let entry = &mut hidden.message.entry;
                from = entry.seq.next();
                if entry.is_stored() {
                    let expiry = [hidden.message.expires_at.unwrap_or(quelea_store::NEVER)];
                    let is_durable = entry.is_durable();
                    self.store.checkpoint_entries(id, std::slice::from_mut(entry), &expiry);
                    if is_durable {
                        self.store.append_visibility(id, &visibility);
                    }
                }
            }
            queues.pop();
            from = Seq(0);
            left = left.saturating_sub(1);
            if left == 0 {
                return CheckpointPass::Hidden { queues, from };
            }
        }
        let moving = |q: &Queue| !q.transit.is_empty() || !q.unreadable.is_empty();
        let moving = self.queues.values().filter(|q| moving(q)).map(|q| q.id).collect();
        CheckpointPass::Transit { queues: moving }
    }

    /// A queue's transit is bounded, so one queue is a slice.
    fn give_transit(&mut self, mut queues: Vec<QueueId>) -> Option<CheckpointPass> {
        let Some(id) = queues.pop() else {
            self.store.finish_checkpoint();
            return self.is_shutting_down.then_some(CheckpointPass::Finished);
        };
        if let Some(queue) = self.queues.get_mut(&id) {
            for message in queue.transit.iter_mut().chain(&mut queue.unreadable) {
                if message.entry.is_stored() {
                    let expiry = [message.expires_at.unwrap_or(quelea_store::NEVER)];
                    let entry = std::slice::from_mut(&mut message.entry);
                    self.store.checkpoint_entries(id, entry, &expiry);
                }
            }
        }
        Some(CheckpointPass::Transit { queues })
    }
}
