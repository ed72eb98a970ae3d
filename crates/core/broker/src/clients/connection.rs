//! A client's connection: what it owns, and how much of its output waits.

use std::sync::Arc;

use quelea_model::{Message, QueueId, Timestamp, VhostName};
use rustc_hash::FxHashSet;

use crate::ids::{ChannelId, ConsumerId, VhostId};
use crate::queues::queue::WaitingGet;
use crate::request::ConnectionInfo;

/// What a delivery takes on the wire besides names, properties and body: its three frames' own
/// bytes and the methods' fixed fields (AMQP 0-9-1 §2.3.5, basic.deliver).
const DELIVERY_OVERHEAD_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) info: ConnectionInfo,
    pub(crate) user: Arc<str>,
    pub(crate) vhost: VhostId,
    pub(crate) vhost_name: VhostName,
    pub(crate) connected_at: Timestamp,
    pub(crate) channels: Vec<ChannelId>,
    pub(crate) exclusive_queues: Vec<QueueId>,
    /// What it may still publish into crowded queues before it is held back.
    pub(crate) share: u32,
    /// It publishes nothing more before flow control lets it go on.
    pub(crate) is_held: bool,
    /// It publishes, or has tried to.
    pub(crate) is_publisher: bool,
    /// Consumers of all its channels.
    pub(crate) consumers: usize,
    /// Those of them that acknowledge.
    pub(crate) acknowledging: usize,
    /// Unsettled deliveries of all its channels.
    pub(crate) unacked: usize,
    /// Consumers that wait until some of them are settled.
    pub(crate) parked_by_unacked: FxHashSet<ConsumerId>,
    /// Bytes of deliveries that its client has not taken yet.
    pub(crate) output_waiting: usize,
    /// Consumers that wait until its client has taken more.
    pub(crate) parked: FxHashSet<ConsumerId>,
    /// Gets that wait for the same, each with its queue.
    pub(crate) parked_gets: Vec<(QueueId, WaitingGet)>,
}

impl Connection {
    pub(crate) fn new(
        info: ConnectionInfo,
        vhost: VhostId,
        vhost_name: VhostName,
        now: Timestamp,
    ) -> Self {
        Self {
            user: Arc::from(info.user.as_str()),
            info,
            vhost,
            vhost_name,
            connected_at: now,
            channels: Vec::new(),
            exclusive_queues: Vec::new(),
            share: 0,
            is_held: false,
            is_publisher: false,
            consumers: 0,
            acknowledging: 0,
            unacked: 0,
            parked_by_unacked: FxHashSet::default(),
            output_waiting: 0,
            parked: FxHashSet::default(),
            parked_gets: Vec::new(),
        }
    }

    /// One of its consumers is gone.
    pub(crate) fn forget_consumer(&mut self, id: ConsumerId, no_ack: bool) {
        self.consumers -= 1;
        self.acknowledging -= usize::from(!no_ack);
        self.parked.remove(&id);
        self.parked_by_unacked.remove(&id);
    }
}

/// Returns what a delivery takes of its connection's budget: about its bytes on the wire.
pub(crate) fn delivery_bytes(message: &Message, tag: &str) -> usize {
    DELIVERY_OVERHEAD_BYTES
        + tag.len()
        + message.exchange_bytes().len()
        + message.routing_key_bytes().len()
        + message.properties().len()
        + message.body().len()
}
