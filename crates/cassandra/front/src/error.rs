//! Why a front-end over Cassandra does not start.

use quelea_cassandra_store::ConnectError;
use quelea_node::CoreStopped;
use quelea_sqs_server::SqsStartError;

/// Why replicated queues are not served.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// Cassandra.
    #[error("cannot use Cassandra: {0}")]
    Connect(#[from] ConnectError),
    /// The system gives no thread.
    #[error("cannot start the thread that speaks with Cassandra: {0}")]
    Thread(std::io::Error),
    /// The address at which it is to hear the other front-ends.
    #[error("bdqs.listen: {address}: {error}")]
    Peers {
        /// The address.
        address: String,
        /// What is wrong with it.
        error: std::io::Error,
    },
    /// The server itself.
    #[error(transparent)]
    Start(#[from] SqsStartError),
    /// The node whose thread it was to run on.
    #[error("cannot start SQS: {0}")]
    Core(#[from] CoreStopped),
}

impl FrontError {
    /// Returns whether another attempt may succeed though nothing that was configured changes.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_transient())
    }
}
