//! Why a store did not do what it was asked for.

/// Why the store did not do what it was asked for. Errors of the request itself are outcomes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The queue went away since its facts were asked for.
    #[error("the queue does not exist")]
    NoSuchQueue,
    /// Too many messages are in flight (120,000).
    #[error("too many messages are in flight, the limit is {limit}")]
    OverLimit {
        /// The limit.
        limit: usize,
    },
    /// The queue was purged less than a minute ago.
    #[error("a purge is under way or less than 60 seconds old")]
    PurgeInProgress,
    /// What was named (a move task, say) is not there, or is not in a state to be acted on.
    #[error("{0}")]
    NotFound(String),
    /// It makes no sense for this queue.
    #[error("{0}")]
    Unsupported(String),
    /// A limit of the broker, or arguments that it does not take.
    #[error("{0}")]
    Invalid(String),
    /// What was to be replaced is not what was seen any more.
    #[error("the queue is being changed by others")]
    Conflict,
    /// It cannot be done now: the disk is full, memory is short, too few replicas answer, the process
    /// stops. It may have been done all the same. Try again.
    #[error("{0}")]
    Unavailable(String),
}
