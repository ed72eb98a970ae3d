//! Starting and stopping consumers.

use std::sync::Arc;

use quelea_model::{QueueId, Timestamp, Value};

use crate::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::consumer::{Consumer, Turn};
use crate::effect::Effect;
use crate::error::{
    ChannelGone, ConsumeError, ExclusivelyConsumed, InvalidArgument, LimitReached, ResourceKind,
};
use crate::ids::{ChannelId, ConsumerId};
use crate::reply_to::{REPLY_TO, ReplyConsumer};
use crate::request::Consume;

impl Broker {
    /// basic.consume; gives the consumer's tag, made up if none was given. Deliveries come as
    /// effects, at the earliest from the next [`Broker::run`].
    ///
    /// # Errors
    /// [`ConsumeError`]; nothing has changed then.
    pub fn consume(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        request: &Consume,
    ) -> Result<Arc<str>, ConsumeError> {
        self.check_consumer(channel, request)?;
        if request.queue == REPLY_TO {
            return self.consume_replies(channel, request);
        }
        let id = self.find_queue(channel, &request.queue, Operation::Read)?;
        check_arguments(&request.arguments)?;
        let priority = self.consumer_priority(channel, id, request)?;
        self.check_exclusive_consumer(id, request.exclusive)?;
        let tag = self.consumer_tag(&request.consumer_tag);
        let state = self.clients.channels.get_mut(channel.0).ok_or(ChannelGone)?;
        let queue = self.queues.get_mut(&id).ok_or(ChannelGone)?;
        let connection = self.clients.connections.get_mut(state.connection.0).ok_or(ChannelGone)?;
        connection.consumers += 1;
        let consumer = ConsumerId(self.clients.consumers.next_key());
        self.clients.consumers.insert(Consumer {
            queue: id,
            channel,
            channel_number: state.number,
            connection: state.connection,
            tag: Arc::clone(&tag),
            no_ack: request.no_ack,
            exclusive: request.exclusive,
            rank: queue.consumers.add(consumer, priority),
            priority,
            prefetch: state.prefetch,
            unacked: 0,
            turn: Turn::Standby,
            arguments: request.arguments.clone(),
        });
        state.consumers.insert(Arc::clone(&tag), consumer);
        queue.used_at = now;
        if request.exclusive {
            queue.consumers.exclusive = Some(consumer);
        }
        self.activate(id, consumer);
        Ok(tag)
    }

    /// basic.cancel. False: there is no such consumer, which is no error (AMQP 0-9-1,
    /// basic.cancel). Its unsettled deliveries stay unsettled.
    pub fn cancel(&mut self, now: Timestamp, channel: ChannelId, consumer_tag: &str) -> bool {
        let Some(state) = self.clients.channels.get_mut(channel.0) else {
            return false;
        };
        if state.reply_consumer.as_ref().is_some_and(|c| &*c.tag == consumer_tag) {
            state.reply_consumer = None;
            return true;
        }
        match state.consumers.get(consumer_tag).copied() {
            Some(consumer) => {
                self.remove_consumer(consumer, now);
                true
            }
            None => false,
        }
    }

    /// Takes a consumer out of its channel and queue. An auto-delete queue goes with its last one.
    pub(crate) fn remove_consumer(&mut self, id: ConsumerId, now: Timestamp) {
        let Some(consumer) = self.clients.consumers.remove(id.0) else {
            return;
        };
        if let Some(channel) = self.clients.channels.get_mut(consumer.channel.0) {
            channel.consumers.remove(&consumer.tag);
            channel.parked.remove(&id);
        }
        if let Some(connection) = self.clients.connections.get_mut(consumer.connection.0) {
            connection.forget_consumer(id);
        }
        let Some(queue) = self.queues.get_mut(&consumer.queue) else {
            return;
        };
        let was_active = queue.consumers.single_active == Some(id);
        queue.consumers.remove(consumer.rank, consumer.turn == Turn::InRing);
        if queue.consumers.is_empty() {
            queue.used_at = now;
            if queue.auto_delete {
                self.remove_queue(consumer.queue);
                return;
            }
            self.arm_timer(consumer.queue);
        } else if was_active {
            self.choose_active(consumer.queue);
        }
    }

    /// Tells the channels of a queue's consumers that it is gone, and forgets them.
    pub(crate) fn cancel_consumers(&mut self, consumers: impl IntoIterator<Item = ConsumerId>) {
        for id in consumers {
            let Some(consumer) = self.clients.consumers.remove(id.0) else {
                continue;
            };
            if let Some(connection) = self.clients.connections.get_mut(consumer.connection.0) {
                connection.forget_consumer(id);
            }
            let Some(channel) = self.clients.channels.get_mut(consumer.channel.0) else {
                continue;
            };
            channel.parked.remove(&id);
            channel.consumers.remove(&consumer.tag);
            self.effects.push_back(Effect::ConsumerCancelled {
                connection: consumer.connection,
                channel: consumer.channel,
                channel_number: consumer.channel_number,
                consumer_tag: consumer.tag,
            });
        }
    }

    /// Puts a new consumer in the ring, or on standby behind the single active one.
    fn activate(&mut self, id: QueueId, consumer: ConsumerId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        if queue.rules.single_active_consumer {
            if queue.consumers.single_active.is_none() {
                self.choose_active(id);
            }
            return;
        }
        self.enter_ring(consumer);
    }

    /// Makes a waiting consumer the single active one.
    fn choose_active(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        queue.consumers.single_active = queue.consumers.candidate();
        if let Some(consumer) = queue.consumers.single_active {
            self.enter_ring(consumer);
        }
    }

    fn enter_ring(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.clients.consumers.get_mut(id.0)
            && consumer.turn == Turn::Standby
        {
            // Whatever holds it back is found when its turn comes.
            consumer.turn = Turn::ParkedByPrefetch;
            self.call_back(id);
        }
    }

    fn check_consumer(&self, channel: ChannelId, request: &Consume) -> Result<(), ConsumeError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let tag = request.consumer_tag.as_str();
        let is_reply_tag = state.reply_consumer.as_ref().is_some_and(|c| &*c.tag == tag);
        if !tag.is_empty() && (is_reply_tag || state.consumers.contains_key(tag)) {
            return Err(ConsumeError::TagInUse { tag: tag.to_owned() });
        }
        let limit = self.config.consumers_per_channel_max;
        if state.consumers.len() >= limit {
            let what = String::from("another consumer on this channel");
            return Err(LimitReached { what, limit }.into());
        }
        let connection = self.clients.connections.get(state.connection.0).ok_or(ChannelGone)?;
        let limit = self.config.consumers_per_connection_max;
        if connection.consumers >= limit {
            let what = String::from("another consumer on this connection");
            return Err(LimitReached { what, limit }.into());
        }
        Ok(())
    }

    fn consume_replies(
        &mut self,
        channel: ChannelId,
        request: &Consume,
    ) -> Result<Arc<str>, ConsumeError> {
        if !request.no_ack {
            return Err(ConsumeError::ReplyConsumerAcknowledges);
        }
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        if state.reply_consumer.is_some() {
            return Err(ConsumeError::ReplyConsumerSet);
        }
        let tag = self.consumer_tag(&request.consumer_tag);
        let key = self.new_reply_key(channel);
        if let Some(state) = self.clients.channels.get_mut(channel.0) {
            state.reply_consumer = Some(ReplyConsumer { tag: Arc::clone(&tag), key });
        }
        Ok(tag)
    }

    fn consumer_tag(&mut self, wanted: &str) -> Arc<str> {
        if wanted.is_empty() { Arc::from(self.random.name("amq.ctag-")) } else { Arc::from(wanted) }
    }

    fn consumer_priority(
        &self,
        channel: ChannelId,
        id: QueueId,
        request: &Consume,
    ) -> Result<i32, ConsumeError> {
        let Some(value) = request.arguments.get("x-priority") else {
            return Ok(0);
        };
        let problem = match value.as_integer().map(i32::try_from) {
            Some(Ok(priority)) => return Ok(priority),
            Some(Err(_)) => format!("{value:?} is not a 32-bit integer"),
            None => {
                format!("unacceptable type {}, an integer is expected", Value::type_name(value))
            }
        };
        let vhost = self.clients.channels.get(channel.0).ok_or(ChannelGone)?.vhost_name.clone();
        let name = self.queues.get(&id).map_or_else(String::new, |q| q.name.to_string());
        let kind = ResourceKind::Queue;
        let argument = String::from("x-priority");
        Err(InvalidArgument { kind, vhost, name, argument, problem }.into())
    }

    fn check_exclusive_consumer(&self, id: QueueId, exclusive: bool) -> Result<(), ConsumeError> {
        let Some(queue) = self.queues.get(&id) else {
            return Ok(());
        };
        // A single active consumer is exclusive already, as long as it lasts.
        let is_taken = queue.consumers.exclusive.is_some()
            || (exclusive && queue.rules.single_active_consumer);
        if is_taken || (exclusive && !queue.consumers.is_empty()) {
            let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
            return Err(ExclusivelyConsumed { vhost, queue }.into());
        }
        Ok(())
    }
}
