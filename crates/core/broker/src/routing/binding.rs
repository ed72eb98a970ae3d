//! Bindings: an edge from an exchange to a queue or to another exchange.

use quelea_model::{ExchangeName, QueueId, QueueName, Table};

use super::exchange::ExchangeSpec;

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// To a queue.
    Queue(QueueId, QueueName),
    /// To another exchange.
    Exchange(ExchangeName),
}

/// One binding. Source, destination, key and arguments together are its identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The exchange that it leads from.
    pub source: ExchangeName,
    /// Where it leads.
    pub destination: Destination,
    /// The routing key, or the pattern of a topic exchange.
    pub key: Box<str>,
    /// Arguments, sorted by name; the pattern of a headers exchange.
    pub arguments: Table,
    /// Whether both ends survive a restart, so that the binding does too.
    pub durable: bool,
}

/// What went away by an operation, in its order: for the caller to forget on disk and to report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removed {
    /// Bindings.
    pub bindings: Vec<Binding>,
    /// Exchanges: the one that was deleted, and those that auto-deleted in turn.
    pub exchanges: Vec<ExchangeSpec>,
}
