//! What can be wrong with a frame, and how it is reported to the peer.

pub use crate::fault::Fault;
use crate::frame::{ErrorCode, WireError};
use crate::parts::PartsError;
pub use crate::wire::{FrameError, FrameName};

impl WireError {
    /// Returns an error that does not end the connection.
    #[must_use]
    pub fn refusal(code: ErrorCode, field: &str, text: impl Into<String>) -> Self {
        Self { code, field: field.to_owned(), text: text.into(), fatal: false }
    }

    /// Returns an error after which nothing more is taken from the peer.
    #[must_use]
    pub fn fatal(code: ErrorCode, field: &str, text: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::refusal(code, field, text) }
    }
}

impl From<FrameError> for WireError {
    /// Returns the error as it is sent to the peer: after it nothing on the connection can be
    /// trusted.
    fn from(error: FrameError) -> Self {
        let code = match error.fault {
            Fault::Limit { .. }
            | Fault::Message(PartsError::TooLarge { .. } | PartsError::TooMany { .. }) => {
                ErrorCode::Limit
            }
            _ => ErrorCode::Malformed,
        };
        Self::fatal(code, error.field, error.to_string())
    }
}
