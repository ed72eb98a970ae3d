//! What the broker wants done on this connection.

use std::sync::Arc;

use quelea_amqp_codec::method::{Method, basic};
use quelea_amqp_codec::{ReplyCode, ShortStr};
use quelea_broker::{Broker, ChannelId, CloseReason, ConnectionId, Effect};
use quelea_model::{Message, Properties, Timestamp, Value};

use crate::session::Session;

/// Headers with a longer value are left out of a message that does not fit into a client's frames.
const LONG_HEADER_BYTES: usize = 1024;

/// Names the headers that were left out.
const LEFT_OUT_HEADER: &str = "x-headers-left-out";

impl Session {
    /// Carries out one effect. The shell passes an effect to the session of its connection, and
    /// those without a connection to all sessions. Effects for what is closed are ignored.
    pub fn effect(&mut self, broker: &mut Broker, effect: Effect, now: Timestamp) {
        match effect {
            Effect::Deliver {
                connection,
                channel,
                channel_number,
                consumer_tag,
                delivery_tag,
                redelivered,
                message,
            } => {
                if self.is_open(connection, channel, channel_number) {
                    let message = self.fitting(message);
                    self.discard_unless_it_fits(broker, channel, delivery_tag, &message, now);
                    let tag = &*consumer_tag;
                    self.write_deliveries(|session| {
                        let wire = &mut session.wire;
                        wire.deliver(channel_number, tag, delivery_tag, redelivered, &message);
                    });
                } else if self.connection == Some(connection) {
                    // It counts as waiting output, and will never be written.
                    broker.output_drained(now, connection, message.resident_bytes());
                }
            }
            Effect::Got {
                connection,
                channel,
                channel_number,
                delivery_tag,
                redelivered,
                message_count,
                message,
            } => {
                if self.is_open(connection, channel, channel_number) {
                    let message = self.fitting(message);
                    self.discard_unless_it_fits(broker, channel, delivery_tag, &message, now);
                    let answer = get_ok(delivery_tag, redelivered, message_count, &message);
                    let (properties, body) = (message.properties(), message.body_bytes());
                    self.write_deliveries(|session| {
                        session.wire.send_content(channel_number, &answer, properties, body);
                    });
                    self.got(channel_number);
                }
            }
            // No AMQP client asked for it.
            Effect::Received { .. } | Effect::Browsed { .. } => {}
            Effect::GotEmpty { connection, channel, channel_number } => {
                if self.is_open(connection, channel, channel_number) {
                    self.wire.send(channel_number, &Method::from(basic::GetEmpty {}));
                    self.got(channel_number);
                }
            }
            Effect::ConsumerCancelled { connection, channel, channel_number, consumer_tag } => {
                if self.is_open(connection, channel, channel_number) {
                    self.consumer_cancelled(channel_number, &consumer_tag);
                }
            }
            Effect::CloseConnection { connection, reason } => {
                if self.connection == Some(connection) {
                    self.close_by_broker(broker, &reason, now);
                }
            }
            Effect::PublishersBlocked { reason } => self.blocked(&reason),
            Effect::PublishersUnblocked => self.unblocked(),
            // The shell has it go on.
            Effect::PublisherResumed { .. } => {}
            // Not for clients.
            Effect::MessagesUnreadable { .. } | Effect::DefinitionLost { .. } => {}
        }
    }

    /// Notifies the client that a consumer is none any more, if it wants to know.
    fn consumer_cancelled(&mut self, channel_number: u16, consumer_tag: &str) {
        if self.wire.capability("consumer_cancel_notify") {
            let consumer_tag = ShortStr::from(consumer_tag);
            let cancel = basic::Cancel { consumer_tag, no_wait: true };
            self.wire.send(channel_number, &Method::from(cancel));
        }
    }

    /// Returns the message without its long headers, if its properties do not fit into the client's
    /// frames with them. Those who send by other protocols know nothing of frames: what was confirmed
    /// to them must not be lost for that.
    fn fitting(&self, message: Arc<Message>) -> Arc<Message> {
        if self.wire.fits(message.properties()) {
            return message;
        }
        let Ok(mut properties) = Properties::decode(message.properties()) else {
            return message;
        };
        let Some(headers) = &mut properties.headers else { return message };
        let long = headers.iter().filter(|(_, value)| is_long(value));
        let names: Vec<_> = long.map(|(name, _)| Value::text(name)).collect();
        if names.is_empty() {
            return message;
        }
        // Not one by one: there may be very many.
        headers.retain(|_, value| !is_long(value));
        headers.set(LEFT_OUT_HEADER, Value::Array(names));
        let (exchange, key) = (message.exchange(), message.routing_key());
        Arc::new(Message::new(exchange, key, &properties.to_bytes(), message.body_bytes()))
    }

    /// A message whose properties do not fit into the client's frames closes the channel (311). It
    /// must not go back to its queue then, or it would close one channel after the other: it is
    /// dead-lettered or dropped, and counted.
    fn discard_unless_it_fits(
        &self,
        broker: &mut Broker,
        channel: ChannelId,
        delivery_tag: u64,
        message: &Message,
        now: Timestamp,
    ) {
        if !self.wire.fits(message.properties()) {
            // Without acknowledgements the tag is not known, and the message has gone already.
            let _ = broker.nack(now, channel, delivery_tag, false, false);
        }
    }

    fn close_by_broker(&mut self, broker: &mut Broker, reason: &CloseReason, now: Timestamp) {
        self.close(broker, ReplyCode::ConnectionForced, &reason.text(), (0, 0), now);
    }

    /// Returns whether the channel that an effect is for is still the one of that number.
    fn is_open(&self, connection: ConnectionId, channel: ChannelId, number: u16) -> bool {
        self.connection == Some(connection)
            && self.channels.get(&number).is_some_and(|open| open.id == channel)
    }

    /// The answer to basic.get is out: the channel goes on.
    fn got(&mut self, number: u16) {
        if let Some(channel) = self.channels.get_mut(&number)
            && channel.pending_replies.got()
        {
            self.pending_replies -= 1;
        }
    }
}

/// Returns whether a header is left out of a message that does not fit.
fn is_long(value: &Value) -> bool {
    match value {
        Value::LongString(bytes) | Value::ByteArray(bytes) => bytes.len() > LONG_HEADER_BYTES,
        _ => false,
    }
}

fn get_ok(delivery_tag: u64, redelivered: bool, message_count: u32, message: &Message) -> Method {
    Method::from(basic::GetOk {
        delivery_tag,
        redelivered,
        exchange: ShortStr::from(message.exchange()),
        routing_key: ShortStr::from(message.routing_key()),
        message_count,
    })
}
