//! What can end a measurement of elastic queues early.

use std::io;

/// Why a measurement ended without its report.
#[derive(Debug, thiserror::Error)]
pub enum ElasticError {
    /// No connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A connection broke.
    #[error("{who}: the connection broke: {source}")]
    Socket {
        /// Whose, as `producer 3`.
        who: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The server ended a connection.
    #[error("{who}: the server closed the connection")]
    Closed {
        /// Whose, as `producer 3`.
        who: String,
    },
    /// The server said something that its protocol does not allow, or refused.
    #[error("{who}: {text}")]
    Protocol {
        /// Whose, as `producer 3`.
        who: String,
        /// What.
        text: String,
    },
    /// A body that is not from this run.
    #[error("listener {listener}: a message of {bytes} bytes has no stamp of this run")]
    Foreign {
        /// Who got it.
        listener: usize,
        /// Its length.
        bytes: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}
