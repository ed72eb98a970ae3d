//! What can be wrong with a frame.

use thiserror::Error;

pub use crate::fault::Fault;
use crate::fault::FieldError;
use crate::frame::{ErrorCode, WireError};
use crate::parts::PartsError;
use crate::wire::Kind;

/// A frame that cannot be read or written: which frame, which of its fields, and what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{frame}: field {field}: {fault}")]
pub struct FrameError {
    /// The frame.
    pub frame: FrameName,
    /// The field, in the words of docs/formats/elastic.md.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

impl FrameError {
    pub(crate) const fn of(kind: Kind, FieldError { field, fault }: FieldError) -> Self {
        Self { frame: FrameName::Known(kind), field, fault }
    }
}

/// A frame's name, or the number of one that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameName {
    /// One of ours.
    Known(Kind),
    /// None of ours.
    Unknown(u8),
}

impl std::fmt::Display for FrameName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(kind) => f.write_str(kind.name()),
            Self::Unknown(number) => write!(f, "frame kind {number:#04x}"),
        }
    }
}

impl WireError {
    /// An error that does not end the connection.
    #[must_use]
    pub fn refusal(code: ErrorCode, field: &str, text: impl Into<String>) -> Self {
        Self { code, field: field.to_owned(), text: text.into(), fatal: false }
    }

    /// An error after which nothing more is taken from the peer.
    #[must_use]
    pub fn fatal(code: ErrorCode, field: &str, text: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::refusal(code, field, text) }
    }
}

impl From<FrameError> for WireError {
    /// As it is sent to the peer: after it nothing on the connection can be trusted.
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
