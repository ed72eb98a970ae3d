//! Reading bodies back.

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

/// What could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {what} at byte {offset} of {file}: {problem}", offset = location.offset)]
pub struct LoadError {
    /// The message, if it was a single one.
    pub seq: Option<Seq>,
    /// The file.
    pub file: String,
    /// The place.
    pub location: Location,
    /// What was to be read.
    pub what: &'static str,
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
