//! What fronts ask of the broker, one struct per operation that has more than two facts.

use bytes::Bytes;
use quelea_model::{Seq, Table};

/// Who connects, for [`Broker::open_connection`](crate::Broker::open_connection).
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    /// The authenticated user.
    pub user: String,
    /// The virtual host to open.
    pub vhost: String,
    /// The peer's address and port, as text.
    pub peer: String,
    /// Our own address and port, as text.
    pub local: String,
    /// Whether the peer is on this machine's loopback interface.
    pub loopback: bool,
    /// Whether whoever opens it keeps an audit trail of what it changes.
    pub is_audited: bool,
    /// A name for people: RabbitMQ's form is `127.0.0.1:54321 -> 127.0.0.1:5672`.
    pub name: String,
    /// The protocol, for people: `AMQP 0-9-1`.
    pub protocol: &'static str,
    /// The SASL mechanism that was used.
    pub mechanism: String,
    /// What the client says about itself.
    pub client_properties: Table,
    /// Negotiated limits, for reports: channels, bytes of a frame, seconds between heartbeats.
    pub channel_max: u16,
    /// Bytes of a frame.
    pub frame_max: u32,
    /// Seconds between heartbeats; 0 is none.
    pub heartbeat_s: u16,
}

/// exchange.declare.
#[derive(Clone, Debug, Default)]
pub struct DeclareExchange {
    /// The exchange's name.
    pub name: String,
    /// Its type: `direct`, `fanout`, `topic`, `headers`.
    pub kind: String,
    /// Only ask whether it exists.
    pub passive: bool,
    /// Survives a restart.
    pub durable: bool,
    /// Goes when its last binding goes.
    pub auto_delete: bool,
    /// Only other exchanges may publish to it.
    pub internal: bool,
    /// `alternate-exchange` and others.
    pub arguments: Table,
}

/// exchange.bind and exchange.unbind.
#[derive(Clone, Debug, Default)]
pub struct ExchangeBinding {
    /// Where messages go.
    pub destination: String,
    /// Where they come from.
    pub source: String,
    /// The binding key.
    pub routing_key: String,
    /// For headers exchanges.
    pub arguments: Table,
}

/// queue.declare.
#[derive(Clone, Debug, Default)]
pub struct DeclareQueue {
    /// The queue's name; empty for one that the broker makes up.
    pub name: String,
    /// Only ask whether it exists.
    pub passive: bool,
    /// Survives a restart.
    pub durable: bool,
    /// Only for this connection, and gone with it.
    pub exclusive: bool,
    /// Goes when its last consumer goes.
    pub auto_delete: bool,
    /// `x-message-ttl` and the others.
    pub arguments: Table,
    /// The name may be one that a broker made up, in whose definitions the queue was.
    pub is_imported: bool,
}

/// queue.bind and queue.unbind.
#[derive(Clone, Debug, Default)]
pub struct QueueBinding {
    /// The queue; empty for the channel's last declared one.
    pub queue: String,
    /// The exchange.
    pub exchange: String,
    /// The binding key. Empty together with an empty `queue` it is the queue's name.
    pub routing_key: String,
    /// For headers exchanges.
    pub arguments: Table,
}

/// basic.publish with its content.
#[derive(Clone, Debug)]
pub struct Publish<'a> {
    /// The exchange; empty for the default one.
    pub exchange: &'a str,
    /// The routing key.
    pub routing_key: &'a str,
    /// Wire-shaped properties, already checked with `PropertyView::check`.
    pub properties: &'a [u8],
    /// The body.
    pub body: Bytes,
    /// Whether the publisher wants the message back if no queue takes it.
    pub mandatory: bool,
    /// Whether the publisher waits for the returned ticket (the channel is in confirm mode). Without it
    /// a persistent message is still written, but no sync is asked for its sake.
    pub confirm: bool,
}

/// basic.consume.
#[derive(Clone, Debug, Default)]
pub struct Consume {
    /// The queue; empty for the channel's last declared one.
    pub queue: String,
    /// Empty for one that the broker makes up.
    pub consumer_tag: String,
    /// Accepted and ignored, as in RabbitMQ.
    pub no_local: bool,
    /// Deliveries count as acknowledged when they leave.
    pub no_ack: bool,
    /// Nobody else may consume from the queue.
    pub exclusive: bool,
    /// `x-priority` and others.
    pub arguments: Table,
}

/// What to receive.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// At most so many messages; at least 1.
    pub max: usize,
    /// For how long others will not see them, in ms.
    pub visibility_timeout_ms: u64,
    /// How long to wait for the first, in ms.
    pub wait_ms: u64,
    /// Hash of the caller's name for this attempt, if it gave one: a repetition within five minutes
    /// first makes visible what the attempt before got.
    pub attempt: Option<u64>,
}

/// A message for one queue.
#[derive(Clone, Debug)]
pub struct Send {
    /// Wire-shaped properties; the message is kept across restarts whatever they say.
    pub properties: Bytes,
    /// The body.
    pub body: Bytes,
    /// From when it may be received, in ms from now; `None`: as the queue has it.
    pub delay_ms: Option<u64>,
    /// Its group, which also stands in the header [`crate::GROUP_HEADER`].
    pub group: Option<Box<str>>,
    /// Its deduplication id. Its scope is the queue, or the group, as the queue has it.
    pub deduplication: Option<Box<str>>,
    /// What it is called.
    pub message_id: [u8; 16],
}

/// Which of a queue's ready messages to look at.
#[derive(Clone, Copy, Debug)]
pub struct Browse {
    /// Where the last page ended; `None`: at the message that comes next.
    pub from: Option<BrowsePlace>,
    /// At most so many messages.
    pub messages_max: usize,
    /// At most so many bytes of bodies, but one message at least.
    pub body_bytes_max: usize,
}

/// A place among the ready messages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowsePlace {
    pub(crate) priority: u8,
    pub(crate) seq: Seq,
}

impl BrowsePlace {
    pub(crate) const BEGINNING: Self = Self { priority: u8::MAX, seq: Seq(0) };
}
