//! What the broker says about itself: plain numbers and names, for the management API and metrics.
//! Every report costs time in proportion to what it lists, never to the messages in it.

use std::sync::Arc;

use quelea_model::{ExchangeName, QueueId, QueueName, Table, Timestamp, VhostName};
use quelea_store::StoreStats;

use crate::ids::{ChannelId, ConnectionId, ExchangeId, VhostId};

/// Messages that passed, counted from the start of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounters {
    /// Published: accepted from publishers (for a queue: put into it).
    pub publish: u64,
    /// Messages of publishers put into queues, each once for each queue; not dead letters and moved ones. Counted for the
    /// whole broker only: a queue has it as `publish`, with those.
    pub enqueued: u64,
    /// Publishes that no queue took, and that were not returned.
    pub drop_unroutable: u64,
    /// Publishes that no queue took, and that were returned.
    pub return_unroutable: u64,
    /// Publishes that a full queue rejected.
    pub rejected: u64,
    /// Times that a publishing connection was held back for consumers to follow: counted for the whole
    /// broker only.
    pub slowed: u64,
    /// Delivered to consumers that acknowledge.
    pub deliver: u64,
    /// Delivered to consumers that do not.
    pub deliver_no_ack: u64,
    /// Got with acknowledgement.
    pub get: u64,
    /// Got without.
    pub get_no_ack: u64,
    /// Gets that found the queue empty.
    pub get_empty: u64,
    /// Deliveries, of any kind, of messages that were delivered before.
    pub redeliver: u64,
    /// Acknowledgements.
    pub ack: u64,
    /// Messages that expired.
    pub expired: u64,
    /// Messages that a length limit pushed out.
    pub overflowed: u64,
    /// Messages that were rejected or negatively acknowledged without requeue.
    pub discarded: u64,
    /// Messages over their delivery limit.
    pub over_delivery_limit: u64,
    /// Messages that were dead-lettered to at least one queue.
    pub dead_lettered: u64,
    /// Dead-lettered messages that went nowhere: no route, or a cycle.
    pub dead_letters_dropped: u64,
    /// Direct replies that found their channel gone or its client not reading.
    pub replies_dropped: u64,
}

impl MessageCounters {
    /// Returns the number of deliveries and gets of all kinds.
    #[must_use]
    pub const fn all_delivered(&self) -> u64 {
        self.deliver + self.deliver_no_ack + self.get + self.get_no_ack
    }

    /// Adds another's counts.
    pub const fn add(&mut self, other: &Self) {
        self.publish += other.publish;
        self.enqueued += other.enqueued;
        self.drop_unroutable += other.drop_unroutable;
        self.return_unroutable += other.return_unroutable;
        self.rejected += other.rejected;
        self.slowed += other.slowed;
        self.deliver += other.deliver;
        self.deliver_no_ack += other.deliver_no_ack;
        self.get += other.get;
        self.get_no_ack += other.get_no_ack;
        self.get_empty += other.get_empty;
        self.redeliver += other.redeliver;
        self.ack += other.ack;
        self.expired += other.expired;
        self.overflowed += other.overflowed;
        self.discarded += other.discarded;
        self.over_delivery_limit += other.over_delivery_limit;
        self.dead_lettered += other.dead_lettered;
        self.dead_letters_dropped += other.dead_letters_dropped;
        self.replies_dropped += other.replies_dropped;
    }
}

/// Messages that clients published to an exchange, counted from the time that it was declared or the broker started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounters {
    /// Published to it. What comes to it from another exchange, or as a dead letter, is not counted, as in RabbitMQ.
    pub publish_in: u64,
    /// The same, each once for each queue that it was routed to, by way of other exchanges too.
    pub publish_out: u64,
}

/// What came and went since the start of the broker; what a restart brings back is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChurnCounters {
    /// Connections that opened a virtual host.
    pub connections_opened: u64,
    /// Connections of these that are closed.
    pub connections_closed: u64,
    /// Channels that were opened.
    pub channels_opened: u64,
    /// Channels that are closed, by themselves or with their connection.
    pub channels_closed: u64,
    /// Declarations of queues that succeeded, new ones or not; not passive ones.
    pub queues_declared: u64,
    /// Queues that were made.
    pub queues_created: u64,
    /// Queues that are gone, for whatever reason.
    pub queues_deleted: u64,
}

/// One queue.
#[derive(Clone, Debug)]
pub struct QueueReport {
    /// Tells it from earlier ones of its name.
    pub id: QueueId,
    /// Its virtual host.
    pub vhost: VhostName,
    /// Its name.
    pub name: QueueName,
    /// `classic` or `quorum`, as declared.
    pub kind: &'static str,
    /// Survives a restart.
    pub durable: bool,
    /// Belongs to one connection.
    pub exclusive: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// As declared.
    pub arguments: Table,
    /// Messages that wait for a consumer.
    pub messages_ready: u64,
    /// Messages that were delivered and not yet acknowledged.
    pub messages_unacknowledged: u64,
    /// Messages that may not be received yet.
    pub messages_delayed: u64,
    /// Messages on their way to a dead-letter exchange.
    pub messages_in_transit: u64,
    /// Messages that are set aside since the log does not give them back: damaged, or refused by the disk.
    pub messages_unreadable: u64,
    /// Bytes of the bodies of ready messages.
    pub message_bytes_ready: u64,
    /// When the oldest ready message came into the queue, or up to a second before that, or by three hundredths of its age. `None`:
    /// there is none, or it came before the broker's start.
    pub oldest_ready_at: Option<Timestamp>,
    /// Consumers.
    pub consumers: u32,
    /// Consumers that could take a message now.
    pub consumers_with_credit: u32,
    /// The tag of the single active consumer, if the queue has that mode and one is active.
    pub single_active_consumer_tag: Option<Arc<str>>,
    /// The connection that owns an exclusive queue.
    pub owner: Option<ConnectionId>,
    /// Bytes of memory: index entries and resident bodies.
    pub memory_bytes: usize,
    /// Messages whose body is in memory, in bytes.
    pub resident_bytes: usize,
    /// What passed.
    pub counters: MessageCounters,
}

impl QueueReport {
    /// Returns how many messages are neither ready nor settled: unacknowledged, or on their way to
    /// a dead-letter exchange.
    #[must_use]
    pub const fn unsettled(&self) -> u64 {
        self.messages_unacknowledged + self.messages_in_transit
    }
}

/// One exchange.
#[derive(Clone, Debug)]
pub struct ExchangeReport {
    /// Tells it from earlier ones of its name.
    pub id: ExchangeId,
    /// Its virtual host.
    pub vhost: VhostName,
    /// Its name; empty for the default exchange.
    pub name: ExchangeName,
    /// `direct`, `fanout`, `topic`, `headers`.
    pub kind: &'static str,
    /// Survives a restart.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Only other exchanges may publish to it.
    pub internal: bool,
    /// As declared.
    pub arguments: Table,
    /// What passed.
    pub counters: ExchangeCounters,
}

/// One binding.
#[derive(Clone, Debug)]
pub struct BindingReport {
    /// Its virtual host.
    pub vhost: VhostName,
    /// The exchange that messages come from; empty for the default exchange's implicit bindings.
    pub source: String,
    /// The queue or exchange that they go to.
    pub destination: String,
    /// Whether the destination is a queue.
    pub to_queue: bool,
    /// The binding key.
    pub routing_key: String,
    /// As bound.
    pub arguments: Table,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    /// Its number in this run of the broker.
    pub id: ConnectionId,
    /// `127.0.0.1:54321 -> 127.0.0.1:5672`.
    pub name: String,
    /// Its user.
    pub user: String,
    /// Its virtual host.
    pub vhost: VhostName,
    /// The peer's address and port.
    pub peer: String,
    /// Our own.
    pub local: String,
    /// The protocol.
    pub protocol: &'static str,
    /// The SASL mechanism.
    pub mechanism: String,
    /// What the client says about itself.
    pub client_properties: Table,
    /// Since when.
    pub connected_at: Timestamp,
    /// Open channels.
    pub channels: u32,
    /// Channels that it may open.
    pub channel_max: u16,
    /// Bytes of a frame.
    pub frame_max: u32,
    /// Seconds between heartbeats.
    pub heartbeat_s: u16,
    /// Bytes of deliveries that it has not taken yet.
    pub output_waiting_bytes: usize,
    /// Whether it is held back.
    pub state: ConnectionState,
}

/// Whether a connection is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// It is not.
    Running,
    /// It is faster than the consumers of a crowded queue, and waits for milliseconds.
    Flow,
    /// Publishers are blocked; it has not published yet, and will be blocked when it does.
    Blocking,
    /// Publishers are blocked, and it is one.
    Blocked,
}

/// One channel.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Its number in this run of the broker.
    pub id: ChannelId,
    /// Its connection.
    pub connection: ConnectionId,
    /// Its connection's name.
    pub connection_name: String,
    /// The peer's address and port.
    pub peer: String,
    /// Its number on the wire.
    pub number: u16,
    /// Its user.
    pub user: String,
    /// Its virtual host.
    pub vhost: VhostName,
    /// Consumers.
    pub consumers: u32,
    /// Deliveries that wait for their acknowledgement.
    pub messages_unacknowledged: u32,
    /// Prefetch for consumers to come; 0 is unlimited.
    pub prefetch_count: u16,
    /// Prefetch over all consumers; 0 is unlimited.
    pub global_prefetch_count: u16,
    /// What passed.
    pub counters: MessageCounters,
}

/// One consumer.
#[derive(Clone, Debug)]
pub struct ConsumerReport {
    /// The queue's virtual host.
    pub vhost: VhostName,
    /// The queue.
    pub queue: QueueName,
    /// Its tag.
    pub tag: Arc<str>,
    /// Its connection.
    pub connection: ConnectionId,
    /// Its connection's name.
    pub connection_name: String,
    /// Its channel.
    pub channel: ChannelId,
    /// The channel's number on the wire.
    pub channel_number: u16,
    /// Whether it acknowledges.
    pub ack_required: bool,
    /// Whether nobody else may consume from the queue.
    pub exclusive: bool,
    /// Whether it gets messages: false for those who wait behind a single active consumer.
    pub active: bool,
    /// Its prefetch; 0 is unlimited.
    pub prefetch_count: u16,
    /// Messages that it was given and has not settled.
    pub messages_unacknowledged: u32,
    /// Messages that it was given.
    pub messages_delivered: u64,
    /// Its priority.
    pub priority: i32,
    /// As given.
    pub arguments: Table,
}

/// One virtual host.
#[derive(Clone, Debug)]
pub struct VhostReport {
    /// Tells it from earlier ones of its name.
    pub id: VhostId,
    /// Its name.
    pub name: VhostName,
    /// Queues in it.
    pub queues: usize,
    /// Ready messages in it.
    pub messages_ready: u64,
    /// Unacknowledged messages in it.
    pub messages_unacknowledged: u64,
    /// What passed.
    pub counters: MessageCounters,
}

/// The whole broker, or some of its virtual hosts.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Queues.
    pub queues: usize,
    /// Exchanges.
    pub exchanges: usize,
    /// Bindings, but those by which the default exchange reaches each queue.
    pub bindings: usize,
    /// Connections.
    pub connections: usize,
    /// Channels.
    pub channels: usize,
    /// Consumers.
    pub consumers: usize,
    /// Ready messages.
    pub messages_ready: u64,
    /// Unacknowledged messages.
    pub messages_unacknowledged: u64,
    /// What passed.
    pub counters: MessageCounters,
    /// What came and went.
    pub churn: ChurnCounters,
    /// Bytes of bodies in memory.
    pub resident_bytes: usize,
    /// Bytes of index entries in memory.
    pub index_bytes: usize,
    /// Messages that are set aside in their queues since the log does not give them back.
    pub messages_unreadable: u64,
    /// All of them since the start, whatever became of their queues.
    pub unreadable: u64,
    /// What the last of them was, and where.
    pub unreadable_last: Option<String>,
    /// Why publishers are blocked, if they are.
    pub publishers_blocked: Option<String>,
    /// Whether that is for want of memory; else it is the disk.
    pub blocked_by_memory: bool,
    /// How the log failed, if it did: nothing that waits for it will be confirmed, and only a restart helps.
    pub log_failed: Option<String>,
    /// The store's own figures.
    pub store: StoreStats,
}
