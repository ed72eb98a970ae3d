//! What can end a measurement of replicated queues early.

/// Why a measurement ended without its report.
#[derive(Debug, thiserror::Error)]
pub enum BdqsError {
    /// A front-end or a broker for the run did not start.
    #[error("cannot start quelea serve: {0}")]
    Start(String),
    /// The harness that starts Cassandra refused.
    #[error("python3 -m harness.cassandra {verb}: {reason}")]
    Harness {
        /// What was asked for.
        verb: String,
        /// The system's reason, or the harness' words.
        reason: String,
    },
    /// A front-end's metrics cannot be read.
    #[error("the metrics of {address}: {reason}")]
    Metrics {
        /// Of its management API.
        address: String,
        /// The system's reason, or what is missing.
        reason: String,
    },
    /// The driver, for raw rows.
    #[error("Cassandra: {0}")]
    Cassandra(String),
    /// An experiment that needs nodes of our own.
    #[error(
        "{0} fails nodes or adds some, which it does to nodes that it started: leave --nodes out"
    )]
    NotOurs(&'static str),
    /// A socket of a proxy or a thread.
    #[error("{doing}: {reason}")]
    System {
        /// What was tried, as a verb with `cannot`.
        doing: &'static str,
        /// The system's reason.
        reason: String,
    },
    /// The report has it all, and messages that were confirmed never came.
    #[error("{lost} messages were lost: {place}")]
    Lost {
        /// In all runs.
        lost: u64,
        /// Where to look for them.
        place: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}
