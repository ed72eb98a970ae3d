//! Settling deliveries: acknowledged for good, dead-lettered, or back to their old place.

use quelea_model::{QueueId, Timestamp};
use quelea_store::{EntryFlags, QueuedMessage};

use super::Messaging;
use crate::clients::consumer::ConsumerState;
use crate::clients::unacked::{Unacked, UnackedDeliveries};
use crate::error::UnknownDeliveryTag;
use crate::ids::ChannelId;
use crate::log::Log;
use crate::queues::queue::Queue;
use crate::queues::queue::dead_letters::DeadLetterReason;
use crate::work::{STEPS_PER_ACK, STEPS_PER_DISCARD, STEPS_PER_REQUEUE};

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Acknowledged,
    Discarded,
    Requeued,
}

impl Settlement {
    /// Returns the steps that each delivery takes.
    pub(crate) const fn steps(self) -> u64 {
        match self {
            Self::Acknowledged => STEPS_PER_ACK,
            Self::Discarded => STEPS_PER_DISCARD,
            Self::Requeued => STEPS_PER_REQUEUE,
        }
    }
}

impl Messaging {
    /// Checks whether [`Messaging::settle`] would know the tag.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] if not.
    pub(crate) fn check_tag(
        &self,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
    ) -> Result<(), UnknownDeliveryTag> {
        if multiple && tag == 0 {
            return Ok(());
        }
        match self.clients.channels.get(channel) {
            Some(state) if !state.unacked.contains(tag) => Err(UnknownDeliveryTag { tag }),
            _ => Ok(()),
        }
    }

    /// Returns whether an open transaction has settled any of a channel's deliveries.
    pub(crate) fn holds_any(&self, channel: ChannelId) -> bool {
        self.clients.channels.get(channel).is_some_and(|state| state.unacked.holds_any())
    }

    /// All unsettled deliveries of a channel go back but those that an open transaction has settled.
    pub(crate) fn requeue_unheld(&mut self, now: Timestamp, channel: ChannelId) {
        let state = self.clients.channel(channel).ok();
        let mut tags = state.map_or_else(Vec::new, |state| state.unacked.unheld()).into_iter();
        self.settle_each(now, channel, Settlement::Requeued, |unacked| unacked.take(tags.next()?));
    }

    /// Settles one delivery, or with `multiple` all up to the tag; 0 is then all of the channel.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] if no unsettled delivery has the tag; nothing is settled then.
    pub(crate) fn settle(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<(), UnknownDeliveryTag> {
        self.check_tag(channel, tag, multiple)?;
        if multiple {
            let last = if tag == 0 { u64::MAX } else { tag };
            // What a closed channel had is on its way back.
            if self.clients.channel(channel).is_ok() {
                self.settle_up_to(now, channel, last, settlement);
            }
        } else {
            let state = self.clients.channel_mut(channel).ok();
            if let Some(unacked) = state.and_then(|state| state.unacked.take(tag)) {
                let queue = unacked.queue;
                self.settle_one(now, channel, unacked, settlement);
                self.after_settling(now, queue, settlement);
            }
        }
        self.clients.resume_channel(&mut self.queues, channel);
        Ok(())
    }

    fn settle_up_to(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        last: u64,
        settlement: Settlement,
    ) {
        self.settle_each(now, channel, settlement, |unacked| unacked.take_up_to(last));
    }

    /// Settles what `next` takes of a channel's deliveries.
    fn settle_each(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        settlement: Settlement,
        mut next: impl FnMut(&mut UnackedDeliveries) -> Option<Unacked>,
    ) {
        let mut before: Option<QueueId> = None;
        while let Some(state) = self.clients.channels.get_mut(channel)
            && let Some(unacked) = next(&mut state.unacked)
        {
            let queue = unacked.queue;
            if let Some(before) = before.filter(|before| *before != queue) {
                self.after_settling(now, before, settlement);
            }
            before = Some(queue);
            self.settle_one(now, channel, unacked, settlement);
        }
        if let Some(queue) = before {
            self.after_settling(now, queue, settlement);
        }
    }

    pub(super) fn settle_one(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        unacked: Unacked,
        settlement: Settlement,
    ) {
        self.give_credit(channel, &unacked);
        let Some((queue, schedule)) = self.queues.with_schedule(unacked.queue) else {
            // The queue is gone, and only the account of the segment is left to be balanced.
            self.log.store.release(&unacked.entry);
            return;
        };
        queue.unacked -= 1;
        if let Some(groups) = &mut queue.groups {
            match settlement {
                Settlement::Requeued => groups.mark_returned(unacked.entry.seq),
                // For how long a client had it is not known.
                _ => groups.remove_in_flight(unacked.entry.seq, 0, Timestamp::ZERO),
            }
        }
        // What ends a message is worth waiting for within a transaction.
        if unacked.entry.is_stored() && settlement != Settlement::Requeued {
            self.log.note_durability(queue.rules.durability);
        }
        match settlement {
            Settlement::Acknowledged => {
                queue.counters.ack += 1;
                self.counters.ack += 1;
                if let Some(state) = self.clients.channels.get_mut(channel) {
                    state.counters.ack += 1;
                }
                if unacked.entry.is_stored() {
                    queue.acks.push(unacked.entry);
                    schedule.log_acks_of(queue);
                }
            }
            Settlement::Discarded => {
                self.counters.discarded += 1;
                queue.discard(unacked.into_ready(), DeadLetterReason::Rejected);
            }
            Settlement::Requeued => {
                let message = unacked.into_ready();
                // The moment itself was for the delivery that has failed: a TTL of 0 is over.
                if message.expires_at.is_some_and(|at| at <= now) {
                    self.counters.expired += 1;
                    if message.entry.is_stored() {
                        self.log.note_durability(queue.rules.durability);
                    }
                    return queue.discard(message, DeadLetterReason::Expired);
                }
                let over_limit = requeue(&mut self.log, queue, message);
                self.counters.over_delivery_limit += u64::from(over_limit);
            }
        }
    }

    /// Once for many deliveries of a queue.
    pub(super) fn after_settling(
        &mut self,
        now: Timestamp,
        queue: QueueId,
        settlement: Settlement,
    ) {
        // The next message of a group may have waited for this one.
        let has_groups = self.queues.get(queue).is_some_and(|queue| queue.groups.is_some());
        if settlement != Settlement::Acknowledged || has_groups {
            self.queues.wake(queue);
            self.queues.reschedule(queue);
        }
        if settlement == Settlement::Requeued {
            self.enforce_length(queue, now);
        }
    }

    /// The consumer of a settled delivery may take another one.
    fn give_credit(&mut self, channel: ChannelId, unacked: &Unacked) {
        if let Some(state) = self.clients.channels.get_mut(channel) {
            let body = unacked.body.as_deref();
            self.queues.memory.settled(&mut state.unacked_resident, body);
            if unacked.consumer.is_some() {
                state.unacked_of_consumers -= 1;
            }
            if let Some(connection) = self.clients.connections.get_mut(state.connection) {
                connection.unacked -= 1;
            }
        }
        let Some(id) = unacked.consumer else {
            return;
        };
        let Some(consumer) = self.clients.consumers.get_mut(id) else {
            return;
        };
        consumer.unacked -= 1;
        if consumer.state == ConsumerState::ParkedByPrefetch && consumer.has_credit() {
            self.clients.resume(&mut self.queues, id);
        }
    }
}

/// Puts a message back to its old place, or away if it came back too often: then true.
fn requeue(log: &mut Log, queue: &mut Queue, mut message: QueuedMessage) -> bool {
    let entry = &mut message.entry;
    entry.delivery_count = entry.delivery_count.saturating_add(1);
    entry.flags = entry.flags.with(EntryFlags::REDELIVERED);
    if queue.rules.delivery_limit.is_some_and(|limit| entry.delivery_count > limit) {
        if entry.is_stored() {
            log.note_durability(queue.rules.durability);
        }
        queue.discard(message, DeadLetterReason::DeliveryLimit);
        return true;
    }
    let is_logged = queue.rules.counts_deliveries() || log.store.checkpoint_under_way();
    if is_logged && entry.is_durable() && entry.is_stored() {
        log.store.append_requeue(queue.id, entry, message.expires_at);
        log.note_durability(queue.rules.durability);
    }
    queue.ready.insert(message);
    false
}
