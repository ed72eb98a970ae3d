//! What a relay wants kept, as it is published: runs of one producer's messages.

use bytes::Bytes;
use quelea_elastic_proto::{ClientId, MessageSeq};

/// A batch takes the core's thread for about a millisecond at most.
const MESSAGES_MAX: usize = 1_024;

/// Bytes of a batch, but for its last run.
const BYTES_MAX: usize = 1 << 20;

/// Runs in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) runs: Vec<Run>,
    messages: usize,
    bytes: usize,
}

/// Messages of one producer, numbered from `first`.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) producer: ClientId,
    pub(crate) first: MessageSeq,
    pub(crate) messages: Vec<Bytes>,
}

impl Batch {
    pub(crate) fn push(&mut self, run: Run) {
        self.messages += run.messages.len();
        self.bytes += run.messages.iter().map(Bytes::len).sum::<usize>();
        self.runs.push(run);
    }

    /// Returns whether it is to be published before more is taken.
    pub(crate) const fn is_full(&self) -> bool {
        self.messages >= MESSAGES_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl Run {
    /// Returns the number of its message at this index; one past its last one behind it.
    pub(crate) const fn sequence(&self, index: usize) -> MessageSeq {
        MessageSeq(self.first.0.saturating_add(index as u64))
    }
}
