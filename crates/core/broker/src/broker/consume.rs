//! Asking for messages: starting and stopping consumers, and basic.get.

use std::sync::Arc;

use quelea_model::{QueueId, Timestamp, Value};

use super::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::clients::channel::ReplyConsumer;
use crate::clients::consumer::{Consumer, ConsumerState};
use crate::clients::reply_to::{REPLY_TO, new_reply_key};
use crate::error::{
    ChannelGone, ConsumeError, ExclusivelyConsumed, GetError, InvalidArgument, LimitReached,
    ResourceKind,
};
use crate::ids::{ChannelId, ConsumerId};
use crate::messaging::Messaging;
use crate::request::{Browse, Consume};
use crate::topology_changes::AUTO_DELETE;
use crate::work::STEPS_PER_BROWSED;

impl Broker {
    /// Adds a consumer (basic.consume). Returns its tag, made up if none was given. Deliveries come
    /// as effects, at the earliest from the next [`Broker::run`].
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
        let Messaging { clients, queues, .. } = &mut self.messaging;
        let state = clients.channels.get_mut(channel).ok_or(ChannelGone)?;
        let queue = queues.get_mut(id).ok_or(ChannelGone)?;
        let connection = clients.connections.get_mut(state.connection).ok_or(ChannelGone)?;
        connection.consumers += 1;
        connection.acknowledging += usize::from(!request.no_ack);
        let consumer = clients.consumers.insert_with_key(|consumer| Consumer {
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
            state: ConsumerState::Standby,
            served_at: 0,
            delivered: 0,
            is_called: false,
            arguments: request.arguments.clone(),
        });
        state.consumers.insert(Arc::clone(&tag), consumer);
        queue.used_at = now;
        if request.exclusive {
            queue.consumers.exclusive = Some(consumer);
        }
        clients.activate(queues, id, consumer);
        Ok(tag)
    }

    /// Removes a consumer (basic.cancel). Its unsettled deliveries stay unsettled. Returns false if
    /// there is no such consumer, which is no error (AMQP 0-9-1, basic.cancel).
    pub fn cancel(&mut self, now: Timestamp, channel: ChannelId, consumer_tag: &str) -> bool {
        let Some(state) = self.messaging.clients.channels.get_mut(channel) else {
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

    /// Gets a message (basic.get). The answer is an effect, [`Effect::Got`](crate::Effect::Got) or
    /// [`Effect::GotEmpty`](crate::Effect::GotEmpty): mostly at once, later if the message has to
    /// be read from the log or the client has too much to read already, and never if the channel
    /// closes before.
    ///
    /// # Errors
    /// [`GetError`]; there is no answer then.
    pub fn get(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        queue: &str,
        no_ack: bool,
    ) -> Result<(), GetError> {
        let id = self.find_queue(channel, queue, Operation::Read)?;
        let got = self.messaging.get(now, channel, id, no_ack);
        self.work.spend(self.messaging.take_steps());
        got
    }

    /// Looks at ready messages of a queue that the channel's user may read. They stay where they are, as they are. The
    /// answer is [`Effect::Browsed`](crate::Effect::Browsed): a page, as large as a turn's steps allow.
    ///
    /// # Errors
    /// [`GetError`]; there is no answer then.
    pub fn browse(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        queue: &str,
        wanted: Browse,
    ) -> Result<(), GetError> {
        let id = self.find_queue(channel, queue, Operation::Read)?;
        let entries_max = self.work.per_turn() / STEPS_PER_BROWSED;
        let Messaging { queues, log, .. } = &mut self.messaging;
        let looked_at = queues.browse(log, (channel, id), wanted, entries_max, now)?;
        self.work.spend(looked_at * STEPS_PER_BROWSED);
        self.messaging.answer_browses();
        Ok(())
    }

    /// Takes a consumer out of its channel and queue. An auto-delete queue goes with its last one.
    pub(super) fn remove_consumer(&mut self, id: ConsumerId, now: Timestamp) {
        let Messaging { clients, queues, .. } = &mut self.messaging;
        if let Some(unused) = clients.remove_consumer(queues, id, now) {
            self.note_queue_end(unused, AUTO_DELETE);
            self.remove_queue(unused);
        }
    }

    fn check_consumer(&self, channel: ChannelId, request: &Consume) -> Result<(), ConsumeError> {
        let state = self.messaging.clients.channel(channel)?;
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
        let connection = self.messaging.clients.connection_of(state)?;
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
        let state = self.messaging.clients.channel(channel)?;
        if state.reply_consumer.is_some() {
            return Err(ConsumeError::ReplyConsumerSet);
        }
        let tag = self.consumer_tag(&request.consumer_tag);
        let key = new_reply_key(&mut self.random, channel);
        if let Some(state) = self.messaging.clients.channels.get_mut(channel) {
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
            Some(Err(_)) => format!("{value} is not a 32-bit integer"),
            None => {
                format!("unacceptable type {}, an integer is expected", Value::type_name(value))
            }
        };
        let vhost = self.messaging.clients.channel(channel)?.vhost_name.clone();
        let name = self.messaging.queues.get(id).map_or_else(String::new, |q| q.name.to_string());
        let kind = ResourceKind::Queue;
        let argument = String::from("x-priority");
        Err(InvalidArgument { kind, vhost, name, argument, problem }.into())
    }

    fn check_exclusive_consumer(&self, id: QueueId, exclusive: bool) -> Result<(), ConsumeError> {
        let Some(queue) = self.messaging.queues.get(id) else {
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
