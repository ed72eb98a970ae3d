//! Reading bodies back.

use std::fmt;
use std::sync::Arc;

use quelea_model::{Message, QueueId, Seq, Timestamp};

use crate::{Entry, Location, PagedRange};

/// One body to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadItem {
    /// The message.
    pub seq: Seq,
    /// Where its record lies.
    pub location: Location,
    /// Bytes of its body.
    pub body_bytes: u32,
}

/// What to read.
#[derive(Clone, Debug)]
pub enum LoadWhat {
    /// Single bodies. [`crate::QueueIndex::next_read`] bounds their bytes.
    Items(Vec<LoadItem>),
    /// A paged-out range: all its entries, and bodies up to the limit of read-ahead.
    PagedRange(PagedRange),
}

/// Asks for bodies or a range of one queue.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// Comes back in the answer.
    pub token: u64,
    /// The queue.
    pub queue: QueueId,
    /// What to read.
    pub what: LoadWhat,
}

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFault {
    /// The disk gave an error, time and again.
    Io,
    /// Something else lies there.
    Damage,
}

/// What is missed when something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// One message.
    Message(Seq),
    /// All of a range, whatever in it is damaged.
    PagedRange(PagedRange),
}

impl Missed {
    /// Returns how many messages are missed.
    #[must_use]
    pub const fn messages(&self) -> u32 {
        match self {
            Self::Message(_) => 1,
            Self::PagedRange(range) => range.count,
        }
    }

    /// Returns the range, if it is one.
    #[must_use]
    pub const fn range(&self) -> Option<&PagedRange> {
        match self {
            Self::Message(_) => None,
            Self::PagedRange(range) => Some(range),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(seq) => write!(f, "message {}", seq.0),
            Self::PagedRange(range) => {
                let (count, first, last) = (range.count, range.first.0, range.last.0);
                write!(f, "{count} messages from {first} to {last}")
            }
        }
    }
}

/// What could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {missed} at byte {offset} of {file}: {problem}", offset = location.offset)]
pub struct LoadError {
    /// What is missed.
    pub missed: Missed,
    /// Whose fault it is.
    pub fault: LoadFault,
    /// The file.
    pub file: String,
    /// Where reading ended: the message's place, or within the range.
    pub location: Location,
    /// What was found instead.
    pub problem: String,
}

/// The entries of a range.
#[derive(Clone, Debug)]
pub struct LoadedRange {
    /// The range that they replace.
    pub range: PagedRange,
    /// As many as the range has, sorted by `seq`.
    pub entries: Vec<Entry>,
    /// Empty, or as many as entries, with [`crate::NEVER`] where there is none.
    pub expiries: Vec<Timestamp>,
}

/// The answer to a [`LoadRequest`]. [`crate::QueueIndex::fill`] takes it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Of the request.
    pub token: u64,
    /// Of the request.
    pub queue: QueueId,
    /// Messages, sorted by `seq`. Of a range perhaps only the first ones.
    pub messages: Vec<(Seq, Arc<Message>)>,
    /// The entries, if a range was asked for and could be read.
    pub range: Option<LoadedRange>,
    /// What could not be read.
    pub errors: Vec<LoadError>,
}
