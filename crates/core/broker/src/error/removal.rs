//! What cannot be had yet, since something that was deleted is not all gone.

use quelea_model::VhostName;
use thiserror::Error;

use super::ResourceKind;

/// AMQP `RESOURCE_LOCKED`: a queue or exchange of that name was deleted, and not all of its bindings are out of
/// the log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} '{name}' in vhost '{vhost}' is being deleted, try again later")]
pub struct BeingDeleted {
    /// Queue or exchange.
    pub kind: ResourceKind,
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub name: String,
}

/// AMQP `RESOURCE_LOCKED`: a limit is reached, but for what was deleted and is not all gone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("vhost '{vhost}' has room only when what was deleted in it is gone, try again later")]
pub struct MakingRoom {
    /// The vhost.
    pub vhost: VhostName,
}
