//! What comes of asking another store for a queue's name.

use quelea_model::VhostName;
use thiserror::Error;

/// AMQP `PRECONDITION_FAILED`: the other store has a queue of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "queue '{name}' in vhost '{vhost}' is of class replicated, which AMQP does not serve: a name is one queue"
)]
pub struct ReplicatedQueue {
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub name: String,
}

/// AMQP `PRECONDITION_FAILED`: the other store does not answer, and two queues of one name must not be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot tell whether queue '{name}' in vhost '{vhost}' is of class replicated: {reason}")]
pub struct NameUnknown {
    /// The vhost.
    pub vhost: VhostName,
    /// The name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// AMQP `RESOURCE_LOCKED`: the other store has not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "whether queue '{name}' in vhost '{vhost}' is of class replicated is being asked, try again later"
)]
pub struct NameBeingChecked {
    /// The vhost.
    pub vhost: VhostName,
    /// The name.
    pub name: String,
}
