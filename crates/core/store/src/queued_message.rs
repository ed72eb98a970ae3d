//! What goes into an index and comes out of it.

use std::sync::Arc;

use quelea_model::{Message, Seq, Timestamp};

use crate::{Entry, LoadItem, PagedRange};

/// What is first in an index.
#[derive(Clone, Copy, Debug)]
pub enum Front<'a> {
    /// Nothing.
    Empty,
    /// An entry.
    Entry {
        /// The entry.
        entry: &'a Entry,
        /// When it expires.
        expires_at: Option<Timestamp>,
        /// The message, if it is in memory.
        body: Option<&'a Arc<Message>>,
    },
    /// A range that has to be loaded first ([`crate::QueueIndex::next_read`]).
    Paged(&'a PagedRange),
}

/// An entry in an index.
#[derive(Clone, Copy, Debug)]
pub struct QueuedMessageRef<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The message, if it is in memory.
    pub body: Option<&'a Arc<Message>>,
}

/// An entry on its way in or out.
#[derive(Clone, Debug)]
pub struct QueuedMessage {
    /// The entry.
    pub entry: Entry,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The message, if it is in memory.
    pub body: Option<Arc<Message>>,
}

/// What [`crate::QueueIndex::drain`] hands out.
#[derive(Clone, Debug)]
pub enum Drained {
    /// An entry.
    Entry(QueuedMessage),
    /// A paged-out range, for [`crate::Store::release_paged_range`].
    PagedRange(PagedRange),
}

/// A message in memory that is not in the log.
#[derive(Clone, Debug)]
pub struct UnstoredMessage {
    /// Its number.
    pub seq: Seq,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its priority.
    pub priority: u8,
    /// The message.
    pub message: Arc<Message>,
}

/// What has to be read next for the head of an index.
#[derive(Clone, Debug)]
pub enum NextRead {
    /// Enough is there.
    Nothing,
    /// These bodies.
    Items(Vec<LoadItem>),
    /// This range.
    PagedRange(PagedRange),
}

/// How far a checkpoint has come in one index.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckpointCursor {
    pub(crate) next: Seq,
}
