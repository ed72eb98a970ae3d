//! AMQP clients: their connections, channels and consumers, and who of the consumers may take a
//! message.

pub(crate) mod channel;
pub(crate) mod connection;
pub(crate) mod consumer;
pub(crate) mod reply_to;
pub(crate) mod unacked;

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::{QueueId, Timestamp};
use rustc_hash::FxHashSet;
use slotmap::SlotMap;

use crate::config::BrokerConfig;
use crate::effect::Effect;
use crate::error::ChannelGone;
use crate::ids::{ChannelId, ConnectionId, ConsumerId};
use crate::queues::Queues;
use crate::queues::queue::WaitingGet;
use channel::Channel;
use connection::Connection;
use consumer::{Consumer, ConsumerState};

/// Connections, their channels, and their consumers.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) config: Arc<BrokerConfig>,
    pub(crate) connections: SlotMap<ConnectionId, Connection>,
    pub(crate) channels: SlotMap<ChannelId, Channel>,
    pub(crate) consumers: SlotMap<ConsumerId, Consumer>,
    /// Deliveries to consumers so far: the time by which it is decided whose turn it is.
    pub(crate) deliveries: u64,
    /// Channels that may have credit for others of their consumers. Empty between operations.
    pub(crate) to_call_others: Vec<ChannelId>,
}

impl Clients {
    pub(crate) fn new(config: Arc<BrokerConfig>) -> Self {
        let (connections, channels) = (SlotMap::with_key(), SlotMap::with_key());
        Self {
            config,
            connections,
            channels,
            consumers: SlotMap::with_key(),
            deliveries: 0,
            to_call_others: Vec::new(),
        }
    }

    /// Returns a channel that is open.
    ///
    /// # Errors
    /// [`ChannelGone`] if it is closed.
    #[inline]
    pub(crate) fn channel(&self, id: ChannelId) -> Result<&Channel, ChannelGone> {
        self.channels.get(id).filter(|channel| !channel.is_closing).ok_or(ChannelGone)
    }

    /// Returns a channel that is open, to be changed.
    ///
    /// # Errors
    /// [`ChannelGone`] if it is closed.
    #[inline]
    pub(crate) fn channel_mut(&mut self, id: ChannelId) -> Result<&mut Channel, ChannelGone> {
        self.channels.get_mut(id).filter(|channel| !channel.is_closing).ok_or(ChannelGone)
    }

    /// Returns a channel's connection.
    ///
    /// # Errors
    /// [`ChannelGone`] if it is closed.
    pub(crate) fn connection_of(&self, channel: &Channel) -> Result<&Connection, ChannelGone> {
        self.connections.get(channel.connection).ok_or(ChannelGone)
    }

    /// Returns what a client calls itself, for the variable of topic permissions.
    pub(crate) fn client_id(&self, channel: &Channel) -> Option<&str> {
        let connection = self.connections.get(channel.connection)?;
        connection.info.client_properties.get("client_id")?.as_text()
    }

    /// Opens a channel; its number is only for the effects.
    ///
    /// # Errors
    /// [`ChannelGone`] if the connection is closed.
    pub(crate) fn open_channel(
        &mut self,
        connection: ConnectionId,
        number: u16,
    ) -> Result<ChannelId, ChannelGone> {
        let state = self.connections.get_mut(connection).ok_or(ChannelGone)?;
        let user = Arc::clone(&state.user);
        let channel = Channel::new(connection, number, user, state.vhost, state.vhost_name.clone());
        let id = self.channels.insert(channel);
        state.channels.push(id);
        Ok(id)
    }

    /// A channel whose consumers and deliveries are gone goes too.
    pub(crate) fn remove_channel(&mut self, queues: &mut Queues, id: ChannelId) {
        let Some(channel) = self.channels.remove(id) else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(channel.connection) {
            connection.channels.retain(|other| *other != id);
        }
        self.resume_connection(queues, channel.connection);
    }

    /// Takes a consumer out of its channel and queue. Returns the queue if it goes with its last
    /// consumer.
    pub(crate) fn remove_consumer(
        &mut self,
        queues: &mut Queues,
        id: ConsumerId,
        now: Timestamp,
    ) -> Option<QueueId> {
        let consumer = self.forget_consumer(id)?;
        self.call_others(queues);
        let queue = queues.get_mut(consumer.queue)?;
        let was_active = queue.consumers.single_active == Some(id);
        queue.consumers.remove(consumer.rank, consumer.state == ConsumerState::InRing);
        if queue.consumers.is_empty() {
            queue.used_at = now;
            if queue.auto_delete {
                return Some(consumer.queue);
            }
            queues.arm_timer(consumer.queue);
        } else if was_active {
            self.choose_active(queues, consumer.queue);
        }
        None
    }

    /// The queue of these consumers is gone: their channels are notified.
    pub(crate) fn cancel_consumers(
        &mut self,
        queues: &mut Queues,
        effects: &mut VecDeque<Effect>,
        consumers: impl IntoIterator<Item = ConsumerId>,
    ) {
        for id in consumers {
            let Some(consumer) = self.forget_consumer(id) else {
                continue;
            };
            if self.channels.contains_key(consumer.channel) {
                effects.push_back(Effect::ConsumerCancelled {
                    connection: consumer.connection,
                    channel: consumer.channel,
                    channel_number: consumer.channel_number,
                    consumer_tag: consumer.tag,
                });
            }
        }
        self.call_others(queues);
    }

    /// The queue of these gets is gone: they find it empty.
    pub(crate) fn answer_empty<'a>(
        &self,
        effects: &mut VecDeque<Effect>,
        gets: impl IntoIterator<Item = &'a WaitingGet>,
    ) {
        for get in gets {
            if let Some(channel) = self.channels.get(get.channel) {
                effects.push_back(Effect::GotEmpty {
                    connection: channel.connection,
                    channel: get.channel,
                    channel_number: channel.number,
                });
            }
        }
    }

    /// Puts a new consumer in its queue's ring, or on standby behind the single active one.
    pub(crate) fn activate(&mut self, queues: &mut Queues, id: QueueId, consumer: ConsumerId) {
        let Some(queue) = queues.get_mut(id) else {
            return;
        };
        if !queue.rules.single_active_consumer {
            self.enter_ring(queues, consumer);
        } else if queue.consumers.single_active.is_none() {
            self.choose_active(queues, id);
        }
    }

    /// Lets a consumer stand in its queue's ring again.
    pub(crate) fn resume(&mut self, queues: &mut Queues, id: ConsumerId) {
        let Some(consumer) = self.consumers.get_mut(id) else {
            return;
        };
        if matches!(consumer.state, ConsumerState::InRing | ConsumerState::Standby) {
            return;
        }
        consumer.state = ConsumerState::InRing;
        if let Some((queue, schedule)) = queues.with_schedule(consumer.queue) {
            queue.consumers.call(consumer.rank);
            schedule.wake(queue);
        }
    }

    /// The connection may take more: the consumers of all its channels that waited for it stand in
    /// their queues' rings again.
    pub(crate) fn resume_connection(&mut self, queues: &mut Queues, connection: ConnectionId) {
        let Some(state) = self.connections.get_mut(connection) else {
            return;
        };
        if state.unacked >= self.config.unacked_per_connection_max {
            return;
        }
        let parked = std::mem::take(&mut state.parked_by_unacked);
        self.resume_in_turn(queues, parked);
    }

    /// Lets consumers stand in their queues' rings again, the one who has waited longest first.
    fn resume_in_turn(&mut self, queues: &mut Queues, parked: FxHashSet<ConsumerId>) {
        let served_at = |id| self.consumers.get(id).map_or(0, |consumer| consumer.served_at);
        let mut parked: Vec<_> = parked.into_iter().map(|id| (served_at(id), id)).collect();
        parked.sort_unstable();
        for (_, consumer) in parked {
            self.resume(queues, consumer);
        }
    }

    /// The channel may take more: as many of those who waited for it as it has credit for stand in
    /// their queues' rings again, and the credit is kept for them.
    pub(crate) fn resume_channel(&mut self, queues: &mut Queues, channel: ChannelId) {
        let Some(state) = self.channels.get(channel) else {
            return;
        };
        self.resume_connection(queues, state.connection);
        let Some(state) = self.channels.get_mut(channel) else {
            return;
        };
        if state.parked.is_empty() {
            return;
        }
        let credit = state.credit(self.config.unacked_per_channel_max);
        let mut free = credit.saturating_sub(state.called);
        while free > 0
            && let Some(state) = self.channels.get_mut(channel)
            && let Some((_, id)) = state.parked.pop_first()
        {
            let Some(consumer) = self.consumers.get_mut(id) else { continue };
            consumer.is_called = true;
            state.called += 1;
            free -= 1;
            if let Some(queue) = queues.get_mut(consumer.queue) {
                queue.consumers.called.push(id);
            }
            self.resume(queues, id);
        }
    }

    /// A consumer that was called has its delivery, or there is none for it: others may be called in its
    /// place, by [`Clients::call_others`].
    pub(crate) fn uncall(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.consumers.get_mut(id).filter(|consumer| consumer.is_called)
            && let Some(channel) = self.channels.get_mut(consumer.channel)
        {
            consumer.is_called = false;
            channel.called -= 1;
            self.to_call_others.push(consumer.channel);
        }
    }

    /// Lets those channels call others of their consumers whose called ones did not need the credit.
    pub(crate) fn call_others(&mut self, queues: &mut Queues) {
        while let Some(channel) = self.to_call_others.pop() {
            self.resume_channel(queues, channel);
        }
    }

    /// Returns to a connection's output budget what its peer has taken. Consumers and gets that were
    /// held back go on at the next dispatch.
    pub(crate) fn output_drained(
        &mut self,
        queues: &mut Queues,
        effects: &mut VecDeque<Effect>,
        connection: ConnectionId,
        bytes: usize,
    ) {
        let Some(state) = self.connections.get_mut(connection) else {
            return;
        };
        state.output_waiting = state.output_waiting.saturating_sub(bytes);
        // Not for every few bytes: half a budget makes a good batch.
        if (state.parked.is_empty() && state.parked_gets.is_empty())
            || state.output_waiting > self.config.output_bytes_max / 2
        {
            return;
        }
        let (gets, parked) =
            (std::mem::take(&mut state.parked_gets), std::mem::take(&mut state.parked));
        for (queue, get) in gets {
            match queues.with_schedule(queue) {
                Some((queue, schedule)) => {
                    queue.gets.push_back(get);
                    schedule.wake(queue);
                }
                // The queue was deleted in the meantime.
                None => self.answer_empty(effects, [&get]),
            }
        }
        self.resume_in_turn(queues, parked);
    }

    /// Takes a consumer out of its channel and connection.
    fn forget_consumer(&mut self, id: ConsumerId) -> Option<Consumer> {
        self.uncall(id);
        let consumer = self.consumers.remove(id)?;
        if let Some(channel) = self.channels.get_mut(consumer.channel) {
            channel.consumers.remove(&consumer.tag);
            channel.parked.remove(&(consumer.served_at, id));
        }
        if let Some(connection) = self.connections.get_mut(consumer.connection) {
            connection.forget_consumer(id, consumer.no_ack);
        }
        Some(consumer)
    }

    /// Makes a waiting consumer the single active one.
    fn choose_active(&mut self, queues: &mut Queues, id: QueueId) {
        let Some(queue) = queues.get_mut(id) else {
            return;
        };
        queue.consumers.single_active = queue.consumers.candidate();
        if let Some(consumer) = queue.consumers.single_active {
            self.enter_ring(queues, consumer);
        }
    }

    fn enter_ring(&mut self, queues: &mut Queues, id: ConsumerId) {
        if let Some(consumer) = self.consumers.get_mut(id)
            && consumer.state == ConsumerState::Standby
        {
            // Whatever holds it back is found when its turn comes.
            consumer.state = ConsumerState::ParkedByPrefetch;
            self.resume(queues, id);
        }
    }
}
