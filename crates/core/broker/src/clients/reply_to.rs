//! Direct reply-to: a request's answer goes straight to the channel that asked, through no queue.
//!
//! The client consumes from a queue that does not exist, and names it as `reply_to`; the broker
//! puts a key in its place that leads to the channel. An answer for a channel that is gone is
//! dropped, as is one for a client that does not read.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::Message;
use slotmap::KeyData;

use super::Clients;
use super::connection::delivery_bytes;
use crate::effect::Effect;
use crate::ids::ChannelId;
use crate::random::Random;
use crate::report::MessageCounters;

/// The queue that does not exist.
pub(crate) const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// What the keys begin with.
pub(crate) const REPLY_KEY_PREFIX: &str = "amq.rabbitmq.reply-to.";

/// Outputs' worth of answers that may wait for a client that does not read. More than one, since
/// answers, unlike other deliveries, have no queue to wait in.
const OUTPUTS_MAX: usize = 16;

impl Clients {
    /// Returns the channel that a key leads to, if it is still there and still consumes.
    pub(crate) fn find_reply_consumer(&self, key: &str) -> Option<ChannelId> {
        let (channel, _) = key.strip_prefix(REPLY_KEY_PREFIX)?.split_once('.')?;
        let channel = KeyData::from_ffi(u64::from_str_radix(channel, 16).ok()?);
        let channel = ChannelId::from(channel);
        let consumer = self.channels.get(channel)?.reply_consumer.as_ref()?;
        (consumer.key == key).then_some(channel)
    }

    /// Delivers an answer. False: it was dropped.
    pub(crate) fn reply(
        &mut self,
        effects: &mut VecDeque<Effect>,
        counters: &mut MessageCounters,
        to: ChannelId,
        message: Message,
    ) -> bool {
        let Some(channel) = self.channels.get_mut(to) else {
            return false;
        };
        let (Some(consumer), Some(connection)) =
            (channel.reply_consumer.as_ref(), self.connections.get_mut(channel.connection))
        else {
            return false;
        };
        let consumer_tag = Arc::clone(&consumer.tag);
        if connection.output_waiting > self.config.output_bytes_max.saturating_mul(OUTPUTS_MAX) {
            counters.replies_dropped += 1;
            channel.counters.replies_dropped += 1;
            return false;
        }
        connection.output_waiting += delivery_bytes(&message, &consumer_tag);
        counters.deliver_no_ack += 1;
        channel.counters.deliver_no_ack += 1;
        let delivery_tag = channel.next_tag();
        effects.push_back(Effect::Deliver {
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

/// Creates a key that leads to a channel and cannot be guessed from another.
pub(crate) fn new_reply_key(random: &mut Random, channel: ChannelId) -> String {
    random.name(&format!("{REPLY_KEY_PREFIX}{:x}.", channel.as_u64()))
}
