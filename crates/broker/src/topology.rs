//! The stored topology: typed items ⇄ key and value bytes.

use quelea_model::{QueueId, QueueName, Table, Timestamp, VhostName};

use crate::access::{Permission, TopicPermission, User};
use crate::exchange::ExchangeSpec;

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVhost {
    /// Its name.
    pub name: VhostName,
    /// For people.
    pub description: Box<str>,
    /// For people and tools.
    pub tags: Vec<Box<str>>,
}

/// A durable queue.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredQueue {
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub name: QueueName,
    /// Its number in the log.
    pub id: QueueId,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// Whether it belongs to one connection (never stored in practice; kept for the shape).
    pub exclusive: bool,
    /// When it was declared.
    pub created_at: Timestamp,
    /// Arguments as declared.
    pub arguments: Table,
}

/// Where a stored binding leads; queues by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredDestination {
    /// A queue.
    Queue(QueueName),
    /// An exchange.
    Exchange(quelea_model::ExchangeName),
}

/// A durable binding.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredBinding {
    /// Its vhost.
    pub vhost: VhostName,
    /// The exchange it leads from.
    pub source: quelea_model::ExchangeName,
    /// Where it leads.
    pub destination: StoredDestination,
    /// Routing key or pattern.
    pub key: Box<str>,
    /// Arguments.
    pub arguments: Table,
}

/// One stored item.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Kind 1.
    Vhost(StoredVhost),
    /// Kind 2.
    User(User),
    /// Kind 3.
    Permission(Permission),
    /// Kind 4.
    TopicPermission(TopicPermission),
    /// Kind 5: an exchange and its vhost.
    Exchange(VhostName, ExchangeSpec),
    /// Kind 6.
    Queue(StoredQueue),
    /// Kind 7.
    Binding(StoredBinding),
}

/// Why stored bytes are not an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored topology, {what} at byte {at} of the {part}: {reason}")]
pub struct TopologyError {
    /// The item's kind and the field.
    pub what: &'static str,
    /// `key` or `value`.
    pub part: &'static str,
    /// Byte offset.
    pub at: usize,
    /// What is wrong.
    pub reason: String,
}

#[expect(unused_variables, clippy::unused_self, clippy::missing_errors_doc, missing_docs, clippy::unimplemented, reason = "signatures first")]
impl Item {
    /// Its key: what identifies it. Enough to delete it.
    #[must_use]
    pub fn key(&self) -> Vec<u8> { unimplemented!() }
    /// Its value: the rest.
    #[must_use]
    pub fn value(&self) -> Vec<u8> { unimplemented!() }
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, TopologyError> { unimplemented!() }
}
