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
    /// The directory for the run did not start.
    #[error("cannot start a directory: {0}")]
    Start(String),
    /// The directory's HTTP interface did not answer.
    #[error("{request}: {source}")]
    Call {
        /// Method and path.
        request: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The directory's HTTP interface refused.
    #[error("{request} was refused with {status}: {text}")]
    Refused {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The directory's words.
        text: String,
    },
    /// A producer or listener cannot go on.
    #[error("{who}: {source}")]
    Client {
        /// Whose, as `producer 3`.
        who: String,
        /// The client library's reason.
        source: quelea_elastic_client::Error,
    },
    /// Something that was waited for did not come.
    #[error("not within {seconds} s: {what}")]
    Late {
        /// What.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The report has it all, and listeners did not get each message once and in its order.
    #[error(
        "of {received} deliveries {lost} were lost, {duplicates} doubled and {out_of_order} out of order"
    )]
    Disorder {
        /// How many came.
        received: u64,
        /// How many never came.
        lost: u64,
        /// Came again.
        duplicates: u64,
        /// Came behind a later one.
        out_of_order: u64,
    },
    /// Ctrl-C before there was anything to report.
    #[error("interrupted")]
    Interrupted,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}
