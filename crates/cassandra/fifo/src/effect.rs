//! What an owner has its front-end do.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_sqs_protocol::{Fault, QueueRef, ReceiptOutcome, Received, SendOutcome};

use crate::call::CallId;
use crate::message::{Arrival, RowKey, SegmentKey};
use crate::moving::MovedOut;

/// Rows that are written at once, to one partition.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The partition.
    pub segment: SegmentKey,
    /// When the partition is begun by this batch, in ms since 1970: then it has to be listed, and that acknowledged, first.
    pub begins_at_ms: Option<u64>,
    /// The messages, each with its number.
    pub messages: Vec<(u64, Arrival)>,
}

impl Batch {
    /// Returns the last number.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.messages.last().map_or(0, |(number, _)| *number)
    }
}

/// What the owner's row says when a lease is asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The last number that counts of each earlier epoch.
    pub sealed: BTreeMap<u64, u64>,
    /// The last number that counts of all earlier epochs.
    pub sealed_to: u64,
    /// [`OwnerRow::oldest`](crate::OwnerRow::oldest).
    pub oldest: SegmentKey,
    /// [`OwnerRow::received`](crate::OwnerRow::received), of one that lets go.
    pub received: Vec<u8>,
}

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    /// Read the deduplication ids of these partitions, up to those numbers; then [`Owner::deduplications_read`].
    ///
    /// [`Owner::deduplications_read`]: crate::Owner::deduplications_read
    ReadDeduplications(Vec<(SegmentKey, u64)>),
    /// Read messages of these partitions without their bodies, each beyond a number and up to another; then
    /// [`Owner::loaded`](crate::Owner::loaded).
    Load(Vec<(SegmentKey, u64, u64)>),
    /// Write a batch; then [`Owner::written`](crate::Owner::written), or [`Owner::refused`](crate::Owner::refused). One is under way
    /// at a time.
    Write(Arc<Batch>),
    /// Have a batch that was refused not be there, whatever an earlier attempt at it still does: delete its messages and their
    /// deduplication ids; then [`Owner::discarded`](crate::Owner::discarded).
    Discard(Arc<Batch>),
    /// Read messages; then [`Owner::contents_read`](crate::Owner::contents_read).
    ReadContents {
        /// Which reading.
        id: u64,
        /// Where the messages are.
        rows: Vec<RowKey>,
        /// What they take of the memory when they are read, in bytes.
        bytes: usize,
    },
    /// Delete messages; then [`Owner::deleted`](crate::Owner::deleted).
    Delete {
        /// Which deletion.
        id: u64,
        /// Where the messages are.
        rows: Vec<RowKey>,
    },
    /// Send a message to the dead-letter queue; then [`Owner::moved`](crate::Owner::moved).
    Move {
        /// The message.
        row: RowKey,
        /// Its id.
        message: uuid::Uuid,
        /// How often it was received here.
        receives: u32,
    },
    /// Send messages to another queue, those that go to the same one in their order, and delete them here when they are there;
    /// then [`Owner::moved_out`](crate::Owner::moved_out).
    MoveOut {
        /// Who wants it.
        call: CallId,
        /// Where the messages are.
        rows: Vec<RowKey>,
        /// Where to; `None`: each to the queue that it came from.
        to: Option<QueueRef>,
    },
    /// Remove partitions of which nothing is left, each with its last number. Nothing depends on it.
    Drop(Vec<(SegmentKey, u64)>),
    /// Ask for the lease again; then [`Owner::renewed`](crate::Owner::renewed), or what failed of it.
    Renew(Renewal),
    /// Let go of the queue: the owner has ended.
    Release(Renewal),
    /// Answer a send.
    Sent(CallId, Vec<SendOutcome>),
    /// Answer a receive; if nobody waits any more, [`Owner::undo`](crate::Owner::undo).
    Received(CallId, Vec<Received>),
    /// Answer a deletion, or a change of visibility.
    Settled(CallId, Vec<ReceiptOutcome>),
    /// Answer a call that had messages moved.
    MovedOut(CallId, MovedOut),
    /// A call failed.
    Failed(CallId, Fault),
    /// This is not the queue's owner any more: the caller looks for it again.
    NotOwner(CallId),
}

impl Effect {
    /// Returns whether a caller is answered by it.
    pub(crate) const fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Sent(..)
                | Self::Received(..)
                | Self::Settled(..)
                | Self::MovedOut(..)
                | Self::Failed(..)
                | Self::NotOwner(..)
        )
    }
}
