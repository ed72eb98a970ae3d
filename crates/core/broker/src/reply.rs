//! What operations answer.

use quelea_model::QueueName;
use quelea_store::Ticket;

/// What came of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Confirm when the store has reached it.
    pub ticket: Ticket,
    /// Whether any queue was found; if not, a mandatory message is to be returned (312 NO_ROUTE).
    pub routed: bool,
    /// A full queue with `reject-publish` refused it: basic.nack instead of basic.ack.
    pub rejected: bool,
}

/// What came of queue.declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDeclared {
    /// The name, made up if none was given.
    pub name: QueueName,
    /// Ready messages.
    pub messages: u32,
    /// Consumers.
    pub consumers: u32,
    /// declare-ok leaves when the store has reached it.
    pub ticket: Ticket,
}

/// What came of queue.purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// How many ready messages went.
    pub messages: u32,
    /// purge-ok leaves when the store has reached it.
    pub ticket: Ticket,
}

/// What came of queue.delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDeleted {
    /// How many ready messages went with it.
    pub messages: u32,
    /// delete-ok leaves when the store has reached it.
    pub ticket: Ticket,
}
