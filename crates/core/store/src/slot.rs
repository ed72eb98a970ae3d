//! A place in an index: a chunk, or the range that stands for one.

use quelea_model::Seq;

use crate::PagedRange;
use crate::chunk::Chunk;

#[derive(Debug)]
pub(crate) enum Slot {
    Chunk(Chunk),
    PagedRange(PagedRange),
}

impl Slot {
    pub(crate) const fn chunk(&self) -> Option<&Chunk> {
        match self {
            Self::Chunk(chunk) => Some(chunk),
            Self::PagedRange(_) => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunk().is_some_and(Chunk::is_empty)
    }

    /// Returns the first number; of an empty chunk, which there is only alone, the greatest
    /// possible.
    pub(crate) fn first_seq(&self) -> Seq {
        match self {
            Self::Chunk(chunk) => chunk.first_seq().unwrap_or(Seq(u64::MAX)),
            Self::PagedRange(range) => range.first,
        }
    }

    /// Returns the last number; of an empty chunk the smallest possible.
    pub(crate) fn last_seq(&self) -> Seq {
        match self {
            Self::Chunk(chunk) => chunk.last_seq().unwrap_or(Seq(0)),
            Self::PagedRange(range) => range.last,
        }
    }
}
