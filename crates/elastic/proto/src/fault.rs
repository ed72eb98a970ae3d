//! What can be wrong with a frame's field.

use thiserror::Error;

use crate::parts::PartsError;

/// A field that cannot be read or written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldError {
    /// In the words of docs/formats/elastic.md.
    pub(crate) field: &'static str,
    pub(crate) fault: Fault,
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
