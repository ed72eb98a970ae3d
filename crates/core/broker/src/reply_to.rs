//! Direct reply-to: a request's answer goes straight to the channel that asked, through no queue.
//!
//! The client consumes from a queue that does not exist, and names it as `reply_to`; the broker
//! puts a key in its place that leads to the channel. An answer for a channel that is gone is
//! dropped, as is one for a client that does not read.

use std::sync::Arc;

use quelea_model::Message;

use crate::Broker;
use crate::arena::Key;
use crate::dispatch::delivery_bytes;
use crate::effect::Effect;
use crate::ids::ChannelId;

/// The queue that does not exist.
pub(crate) const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// What the keys begin with.
pub(crate) const REPLY_KEY_PREFIX: &str = "amq.rabbitmq.reply-to.";

/// Outputs' worth of answers that may wait for a client that does not read. More than one, since
/// answers, unlike other deliveries, have no queue to wait in.
const OUTPUTS_MAX: usize = 16;

/// A channel's consumer of direct replies.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Arc<str>,
    /// What `reply_to` becomes, and the routing key of the answers.
    pub(crate) key: String,
}

impl Broker {
    /// A key that leads to a channel and cannot be guessed from another.
    pub(crate) fn new_reply_key(&mut self, channel: ChannelId) -> String {
        let Key { slot, generation } = channel.0;
        self.random.name(&format!("{REPLY_KEY_PREFIX}{slot:x}.{generation:x}."))
    }

    /// The channel that a key leads to, if it is still there and still consumes.
    pub(crate) fn find_reply_consumer(&self, key: &str) -> Option<ChannelId> {
        let mut parts = key.strip_prefix(REPLY_KEY_PREFIX)?.splitn(3, '.');
        let slot = u32::from_str_radix(parts.next()?, 16).ok()?;
        let generation = u32::from_str_radix(parts.next()?, 16).ok()?;
        let channel = ChannelId(Key { slot, generation });
        let consumer = self.clients.channels.get(channel.0)?.reply_consumer.as_ref()?;
        (consumer.key == key).then_some(channel)
    }

    /// Delivers an answer. False: it was dropped.
    pub(crate) fn reply(&mut self, to: ChannelId, message: Message) -> bool {
        let Some(channel) = self.clients.channels.get_mut(to.0) else {
            return false;
        };
        let (Some(consumer), Some(connection)) = (
            channel.reply_consumer.as_ref(),
            self.clients.connections.get_mut(channel.connection.0),
        ) else {
            return false;
        };
        let consumer_tag = Arc::clone(&consumer.tag);
        if connection.output_waiting > self.config.output_bytes_max.saturating_mul(OUTPUTS_MAX) {
            self.counters.replies_dropped += 1;
            channel.counters.replies_dropped += 1;
            return false;
        }
        connection.output_waiting += delivery_bytes(&message, &consumer_tag);
        self.counters.deliver_no_ack += 1;
        channel.counters.deliver_no_ack += 1;
        let delivery_tag = channel.next_tag();
        self.effects.push_back(Effect::Deliver {
            connection: channel.connection,
            channel: to,
            channel_number: channel.number,
            consumer_tag,
            delivery_tag,
            redelivered: false,
            message: Arc::new(message),
        });
        true
    }
}
