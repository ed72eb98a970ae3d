//! What can go wrong for a program.

use std::time::Duration;

use quelea_elastic_proto::frame::{ErrorCode, WireError};
use quelea_elastic_proto::session::{PublishError, SubscribeError};
use thiserror::Error;

/// Why a producer or a listener cannot go on. That relays and directories are lost is no error: they
/// are looked for again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// A directory or relay refused us, and would again.
    #[error("refused ({code:?}): {text}", code = .0.code, text = .0.text)]
    Refused(WireError),
    /// No message, or the producer was closed.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// No prefix.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// The client was given no directory.
    #[error("directories: at least one address is needed")]
    NoDirectory,
    /// Something that the program chose cannot be.
    #[error("{field}: {reason}")]
    Invalid {
        /// What: an option's name, `queue` or `directory`.
        field: &'static str,
        /// The limit and the value.
        reason: String,
    },
    /// The queue was not opened within [`crate::Options::open_timeout`].
    #[error("queue {queue:?} was not opened within {} s: {cause}", within.as_secs_f64())]
    NotOpened {
        /// Its name.
        queue: String,
        /// The time.
        within: Duration,
        /// The last thing that went wrong.
        cause: String,
    },
    /// It was closed.
    #[error("it was closed")]
    Closed,
    /// The system gives no random numbers.
    #[error("no random number for the client's identity: {0}")]
    Random(String),
}

/// Returns whether asking again would be refused again.
pub(super) const fn is_final(error: &WireError) -> bool {
    matches!(error.code, ErrorCode::Version | ErrorCode::Key | ErrorCode::Queue | ErrorCode::Value)
}
