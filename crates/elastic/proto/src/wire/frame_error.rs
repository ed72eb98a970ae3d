//! Which frame cannot be read or written, and which of its fields.

use thiserror::Error;

use super::Kind;
use crate::fault::{Fault, FieldError};

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
