//! Settling deliveries: acknowledged for good, dead-lettered, or back to their old place.

use quelea_model::{QueueId, Timestamp};
use quelea_store::{EntryFlags, NEVER, QueuedMessage, Ticket};

use crate::Broker;
use crate::consumer::Turn;
use crate::death::Reason;
use crate::error::UnknownDeliveryTag;
use crate::ids::{ChannelId, ConnectionId};
use crate::unacked::Unacked;

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settlement {
    Acknowledged,
    Discarded,
    Requeued,
}

impl Broker {
    /// basic.ack. With `multiple` all deliveries up to the tag; 0 is then all of the channel.
    ///
    /// The ticket is [`Ticket::NONE`]: nobody is promised anything. The log is told at the end of
    /// the turn, and synced soon after.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] (406) if no unsettled delivery has the tag; nothing is settled then.
    pub fn ack(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
    ) -> Result<Ticket, UnknownDeliveryTag> {
        self.settle(now, channel, tag, multiple, Settlement::Acknowledged)
    }

    /// basic.nack.
    ///
    /// # Errors
    /// As [`Broker::ack`].
    pub fn nack(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<Ticket, UnknownDeliveryTag> {
        let settlement = if requeue { Settlement::Requeued } else { Settlement::Discarded };
        self.settle(now, channel, tag, multiple, settlement)
    }

    /// basic.reject.
    ///
    /// # Errors
    /// As [`Broker::ack`].
    pub fn reject(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        requeue: bool,
    ) -> Result<Ticket, UnknownDeliveryTag> {
        self.nack(now, channel, tag, false, requeue)
    }

    /// Whether [`Broker::ack`] and the others would know the tag: for a transaction, which settles
    /// at its end.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] if not.
    pub fn check_tag(
        &self,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
    ) -> Result<(), UnknownDeliveryTag> {
        if multiple && tag == 0 {
            return Ok(());
        }
        match self.clients.channels.get(channel.0) {
            Some(state) if !state.unacked.contains(tag) => Err(UnknownDeliveryTag { tag }),
            _ => Ok(()),
        }
    }

    /// basic.recover: everything unsettled goes back to its queue, and from there to whoever's
    /// turn it is. RabbitMQ refuses `requeue: false` (540); here it does the same as `true`, which
    /// the specification leaves to the server (AMQP 0-9-1, basic.recover).
    pub fn recover(&mut self, now: Timestamp, channel: ChannelId, _requeue: bool) {
        self.requeue_all(now, channel);
        self.call_back_channel(channel);
    }

    /// All unsettled deliveries of a channel go back.
    pub(crate) fn requeue_all(&mut self, now: Timestamp, channel: ChannelId) {
        self.settle_up_to(now, channel, u64::MAX, Settlement::Requeued);
    }

    fn settle(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<Ticket, UnknownDeliveryTag> {
        self.check_tag(channel, tag, multiple)?;
        if multiple {
            let last = if tag == 0 { u64::MAX } else { tag };
            self.settle_up_to(now, channel, last, settlement);
        } else {
            let state = self.clients.channels.get_mut(channel.0);
            if let Some(unacked) = state.and_then(|state| state.unacked.take(tag)) {
                let queue = unacked.queue;
                self.settle_one(channel, unacked, settlement);
                self.after_settling(now, queue, settlement);
            }
        }
        self.call_back_channel(channel);
        Ok(Ticket::NONE)
    }

    fn settle_up_to(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        last: u64,
        settlement: Settlement,
    ) {
        let mut before: Option<QueueId> = None;
        while let Some(state) = self.clients.channels.get_mut(channel.0)
            && let Some(unacked) = state.unacked.take_up_to(last)
        {
            let queue = unacked.queue;
            if let Some(before) = before.filter(|before| *before != queue) {
                self.after_settling(now, before, settlement);
            }
            before = Some(queue);
            self.settle_one(channel, unacked, settlement);
        }
        if let Some(queue) = before {
            self.after_settling(now, queue, settlement);
        }
    }

    fn settle_one(&mut self, channel: ChannelId, unacked: Unacked, settlement: Settlement) {
        self.give_credit(channel, &unacked);
        let Some(queue) = self.queues.get_mut(&unacked.queue) else {
            // The queue is gone, and only the account of the segment is left to be balanced.
            self.store.release(&unacked.entry);
            return;
        };
        queue.unacked -= 1;
        if let Some(groups) = &mut queue.groups {
            match settlement {
                Settlement::Requeued => groups.show(unacked.entry.seq),
                // For how long a client had it is not known.
                _ => groups.remove_hidden(unacked.entry.seq, 0, Timestamp::ZERO),
            }
        }
        match settlement {
            Settlement::Acknowledged => {
                queue.counters.ack += 1;
                self.counters.ack += 1;
                if let Some(state) = self.clients.channels.get_mut(channel.0) {
                    state.counters.ack += 1;
                }
                if unacked.entry.is_stored() {
                    queue.acks.push(unacked.entry);
                    if !queue.is_settling {
                        queue.is_settling = true;
                        self.settled.push(unacked.queue);
                    }
                    self.note_settled(unacked.queue);
                }
            }
            Settlement::Discarded => {
                self.counters.discarded += 1;
                let (id, is_stored) = (unacked.queue, unacked.entry.is_stored());
                queue.discard(ready(unacked), Reason::Rejected);
                if is_stored {
                    self.note_settled(id);
                }
            }
            Settlement::Requeued => self.requeue(unacked),
        }
    }

    /// Within a transaction an acknowledgement is worth waiting for.
    fn note_settled(&mut self, queue: QueueId) {
        if self.atomic.is_some()
            && let Some(queue) = self.queues.get(&queue)
        {
            self.note_durability(queue.rules.durability);
        }
    }

    /// A message goes back to its old place, or away if it came back too often.
    fn requeue(&mut self, unacked: Unacked) {
        let id = unacked.queue;
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let mut message = ready(unacked);
        let entry = &mut message.entry;
        entry.delivery_count = entry.delivery_count.saturating_add(1);
        entry.flags = entry.flags.with(EntryFlags::REDELIVERED);
        if queue.rules.delivery_limit.is_some_and(|limit| entry.delivery_count > limit) {
            self.counters.over_delivery_limit += 1;
            return queue.discard(message, Reason::DeliveryLimit);
        }
        let is_logged = queue.rules.counts_deliveries() || self.store.checkpoint_under_way();
        if is_logged && entry.is_durable() && entry.is_stored() {
            self.store.append_requeue(id, entry, message.expires_at);
        }
        queue.ready.insert(message);
    }

    /// Once for many deliveries of a queue.
    fn after_settling(&mut self, now: Timestamp, queue: QueueId, settlement: Settlement) {
        // The next message of a group may have waited for this one.
        let has_groups = self.queues.get(&queue).is_some_and(|queue| queue.groups.is_some());
        if settlement != Settlement::Acknowledged || has_groups {
            self.touch(queue);
            self.follow_up(queue);
        }
        if settlement == Settlement::Requeued {
            self.enforce_length(queue, now);
        }
    }

    /// The consumer of a settled delivery may take another one.
    fn give_credit(&mut self, channel: ChannelId, unacked: &Unacked) {
        if let Some(state) = self.clients.channels.get_mut(channel.0) {
            self.memory.settled(state, unacked);
            if unacked.consumer.is_some() {
                state.unacked_of_consumers -= 1;
            }
            if let Some(connection) = self.clients.connections.get_mut(state.connection.0) {
                connection.unacked -= 1;
            }
        }
        let Some(id) = unacked.consumer else {
            return;
        };
        let Some(consumer) = self.clients.consumers.get_mut(id.0) else {
            return;
        };
        consumer.unacked -= 1;
        if consumer.turn == Turn::ParkedByPrefetch && consumer.has_credit() {
            self.call_back(id);
        }
    }

    /// The connection may take more: the consumers of all its channels that waited for it stand in
    /// their queues' rings again.
    pub(crate) fn call_back_connection(&mut self, connection: ConnectionId) {
        let Some(state) = self.clients.connections.get_mut(connection.0) else {
            return;
        };
        if state.unacked >= self.config.unacked_per_connection_max {
            return;
        }
        for consumer in std::mem::take(&mut state.parked_by_unacked) {
            self.call_back(consumer);
        }
    }

    /// The channel may take more: those who waited for it stand in their queues' rings again.
    pub(crate) fn call_back_channel(&mut self, channel: ChannelId) {
        let Some(state) = self.clients.channels.get(channel.0) else {
            return;
        };
        self.call_back_connection(state.connection);
        let Some(state) = self.clients.channels.get_mut(channel.0) else {
            return;
        };
        if state.parked.is_empty()
            || state.flow_stopped
            || !state.has_credit(self.config.unacked_per_channel_max)
        {
            return;
        }
        for consumer in std::mem::take(&mut state.parked) {
            self.call_back(consumer);
        }
    }
}

fn ready(unacked: Unacked) -> QueuedMessage {
    QueuedMessage {
        entry: unacked.entry,
        expires_at: Some(unacked.expires_at).filter(|at| *at != NEVER),
        body: unacked.body,
    }
}
