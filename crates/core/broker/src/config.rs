//! The broker's limits that a user may set.

use quelea_model::limits;

/// Limits of one broker; the defaults are the constants of [`quelea_model::limits`].
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// Bytes of bodies in memory before they are dropped (durable) or written out (transient).
    pub resident_bytes_max: usize,
    /// Bytes of index entries in memory before ranges are paged out.
    pub index_bytes_max: usize,
    /// Bytes of what is known of invisible messages, groups and deduplication ids before publishers are
    /// blocked.
    pub held_bytes_max: usize,
    /// Bytes that may be read ahead for one queue's consumers.
    pub read_ahead_bytes_max: usize,
    /// Bytes of deliveries that may wait in one connection.
    pub output_bytes_max: usize,
    /// Deliveries that one channel may leave unacknowledged.
    pub unacked_per_channel_max: usize,
    /// Deliveries that one connection may leave unacknowledged.
    pub unacked_per_connection_max: usize,
    /// Consumers of one channel.
    pub consumers_per_channel_max: usize,
    /// Consumers of one connection.
    pub consumers_per_connection_max: usize,
    /// Queues of one virtual host.
    pub queues_per_vhost_max: usize,
    /// Exclusive queues of one connection.
    pub exclusive_queues_per_connection_max: usize,
    /// Bytes appended to the store and not yet written before publishers are asked to wait.
    pub store_pending_bytes_max: usize,
    /// Connections of all virtual hosts together.
    pub connections_max: usize,
    /// Delivery limit of queues with `x-queue-type: quorum` that name none.
    pub quorum_delivery_limit: u16,
    /// The user who may only connect from loopback; empty for none.
    pub loopback_user: String,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            resident_bytes_max: limits::RESIDENT_BYTES_MAX,
            index_bytes_max: limits::INDEX_BYTES_MAX,
            held_bytes_max: limits::HELD_BYTES_MAX,
            read_ahead_bytes_max: limits::READ_AHEAD_BYTES_MAX,
            output_bytes_max: limits::OUTPUT_BYTES_MAX,
            unacked_per_channel_max: limits::UNACKED_PER_CHANNEL_MAX,
            unacked_per_connection_max: limits::UNACKED_PER_CONNECTION_MAX,
            consumers_per_channel_max: limits::CONSUMERS_PER_CHANNEL_MAX,
            consumers_per_connection_max: limits::CONSUMERS_PER_CONNECTION_MAX,
            queues_per_vhost_max: limits::QUEUES_PER_VHOST_MAX,
            exclusive_queues_per_connection_max: limits::EXCLUSIVE_QUEUES_PER_CONNECTION_MAX,
            store_pending_bytes_max: limits::STORE_PENDING_BYTES_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            quorum_delivery_limit: limits::QUORUM_DELIVERY_LIMIT,
            loopback_user: String::from("guest"),
        }
    }
}
