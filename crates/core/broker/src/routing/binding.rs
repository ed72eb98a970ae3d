//! Bindings: an edge from an exchange to a queue or to another exchange.

use quelea_model::limits::BINDINGS_PER_VHOST_MAX;
use quelea_model::{ExchangeName, QueueId, QueueName, Table, VhostName};

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

/// Why two ends were not bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// One end is the default exchange (403 ACCESS_REFUSED).
    #[error("operation not permitted on the default exchange")]
    DefaultExchange,
    /// There is no such exchange (404 NOT_FOUND).
    #[error("no exchange '{exchange}' in vhost '{vhost}'")]
    NoSuchExchange {
        /// The name.
        exchange: Box<str>,
        /// The vhost.
        vhost: VhostName,
    },
    /// There is no such queue (404 NOT_FOUND).
    #[error("no queue '{queue}' in vhost '{vhost}'")]
    NoSuchQueue {
        /// The name.
        queue: QueueName,
        /// The vhost.
        vhost: VhostName,
    },
    /// A headers exchange's `x-match` is of another type than text (406 PRECONDITION_FAILED).
    #[error("Invalid x-match field type {found}; expected longstr")]
    MatchType {
        /// The type that was found.
        found: &'static str,
    },
    /// A headers exchange's `x-match` has an unknown value (406 PRECONDITION_FAILED).
    #[error(
        "Invalid x-match field value <<\"{found}\">>; expected all, any, all-with-x, or any-with-x"
    )]
    MatchValue {
        /// The value that was found.
        found: String,
    },
    /// The vhost holds as many bindings as it may (406 PRECONDITION_FAILED).
    #[error("binding limit of {BINDINGS_PER_VHOST_MAX} in vhost '{vhost}' is reached")]
    TooMany {
        /// The vhost.
        vhost: VhostName,
    },
}

/// Why a binding was not removed. A binding that is not there is no error, as in RabbitMQ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnbindError {
    /// One end is the default exchange (403 ACCESS_REFUSED).
    #[error("operation not permitted on the default exchange")]
    DefaultExchange,
}
