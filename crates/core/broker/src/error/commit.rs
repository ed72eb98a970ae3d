//! Why a transaction is not committed.

use quelea_model::{QueueName, VhostName};
use thiserror::Error;

use super::PublishError;

/// Why a transaction was not committed: nothing of it has happened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum CommitError {
    #[error("transaction not committed: {0}")]
    Publish(#[from] PublishError),
    /// AMQP `PRECONDITION_FAILED`: a queue with a limit of length refuses what is too much.
    #[error(
        "transaction not committed: queue '{queue}' in vhost '{vhost}' has no room for {count} \
         messages of {bytes} bytes"
    )]
    QueueFull {
        /// Its vhost.
        vhost: VhostName,
        /// Its name.
        queue: QueueName,
        /// How many messages the transaction has for it.
        count: u64,
        /// Bytes of their bodies.
        bytes: u64,
    },
    /// AMQP `PRECONDITION_FAILED`: what is committed as one would take too long.
    #[error(
        "transaction not committed: its messages go to {found} queues or more, counted for each \
         message, the limit is {max}"
    )]
    TooManyTargets {
        /// How many were found before it was given up.
        found: usize,
        /// [`quelea_model::limits::TX_TARGETS_MAX`].
        max: usize,
    },
}
