//! What can be wrong with a frame.

use thiserror::Error;

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

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// More than a limit of [`crate::limits`].
    #[error("{value} is more than the limit of {limit}")]
    Limit {
        /// At most this.
        limit: u64,
        /// This it is.
        value: u64,
    },
    /// The frame ends before the field does.
    #[error("needs {needed} bytes and the frame has {left} left")]
    Short {
        /// Bytes of the field.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The frame goes on behind its last field.
    #[error("{bytes} bytes are left behind it")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A number that means nothing here.
    #[error("{value} is none of its values")]
    Unknown {
        /// It.
        value: u64,
    },
    /// Empty where it must not be.
    #[error("is empty")]
    Empty,
    /// The parts of a message.
    #[error(transparent)]
    Message(PartsError),
    /// Not UTF-8.
    #[error("is not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The first byte that is wrong.
        at: u64,
    },
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
