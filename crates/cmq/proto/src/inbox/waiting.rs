//! What a flow has taken in and cannot deliver yet.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::Time;
use crate::inbox::partial::Partial;

/// A datagram that waits for those before it.
#[derive(Debug)]
pub(super) struct Held {
    /// Its messages, or its fragment with what stands before it.
    pub(super) body: Bytes,
    pub(super) count: u16,
    pub(super) fragment: bool,
    /// What its mailbox keeps for it.
    pub(super) room: usize,
}

/// Everything of one flow that waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Of an ordered flow: what came before its turn, by sequence.
    pub(super) held: BTreeMap<u64, Held>,
    /// Messages of which fragments are missing, by the sequence of the first fragment.
    pub(super) partials: BTreeMap<u64, Partial>,
    /// What it takes of the memory that all flows share.
    pub(super) taken: usize,
    /// When something last came out of here, or came in first.
    pub(super) progress: Time,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.partials.is_empty()
    }

    /// Returns what is held of the lowest sequence.
    pub(super) fn next(&self) -> Option<(&u64, &Held)> {
        self.held.first_key_value()
    }

    /// Returns the lowest sequence of all that waits; an incomplete message counts from its
    /// beginning.
    pub(super) fn lowest(&self) -> Option<u64> {
        [self.next().map(|(sequence, _)| *sequence), self.first_partial()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns where the lowest incomplete message begins.
    pub(super) fn first_partial(&self) -> Option<u64> {
        self.partials.first_key_value().map(|(first, _)| *first)
    }

    /// Returns what mailboxes keep for all of it.
    pub(super) fn room(&self) -> usize {
        let held: usize = self.held.values().map(|held| held.room).sum();
        held + self.partials.values().map(|partial| partial.room).sum::<usize>()
    }

    /// Returns the number of messages that begin in what is held, and of those of which a beginning
    /// came.
    pub(super) fn messages(&self) -> u64 {
        let held: u64 = self.held.values().map(|held| u64::from(held.count)).sum();
        held + self.partials.values().filter(|partial| partial.has_begun).count() as u64
    }

    /// Returns where the incomplete message begins that the datagram `sequence` would be a part of.
    pub(super) fn partial_over(&self, sequence: u64) -> Option<u64> {
        let (first, partial) = self.partials.range(..=sequence).next_back()?;
        (sequence < *first + u64::from(partial.fragments)).then_some(*first)
    }

    /// Returns the first datagram from `sequence` on that is a part of an incomplete message.
    pub(super) fn partial_from(&self, sequence: u64) -> Option<u64> {
        let over = self.partial_over(sequence).map(|_| sequence);
        over.or_else(|| self.partials.range(sequence..).next().map(|(first, _)| *first))
    }
}

/// What a waiting datagram takes of the shared memory beside its bytes.
pub(super) const HELD_BYTES: usize = 128;

/// Returns `body`, or a copy if keeping it would keep a much larger buffer from being freed. What
/// waits, waits long while the rest of its train is popped, so it is copied more readily than a
/// delivery.
pub(super) fn of_its_own(body: Bytes, buffer_bytes: usize) -> Bytes {
    if body.len() < buffer_bytes / 4 { Bytes::copy_from_slice(&body) } else { body }
}
