//! Messages between a queue and its dead-letter exchange, and what they take of the memory.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use quelea_model::{Message, Seq};
use quelea_store::QueuedMessage;
use rustc_hash::FxHashMap;

/// Why a message left its queue other than by acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadLetterReason {
    Rejected,
    Expired,
    MaxLength,
    DeliveryLimit,
    /// It was received too often, and the queue has a redrive policy.
    Redriven,
}

impl DeadLetterReason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
            Self::Redriven => "redriven",
        }
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A message between its queue and the dead-letter exchange: no longer ready, not yet settled.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) message: QueuedMessage,
    pub(crate) reason: DeadLetterReason,
}

/// Oldest first. Publishers can fill it faster than it is moved on, so its bytes are counted: with
/// too many of them in all queues publishers wait.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    letters: VecDeque<DeadLetter>,
    bytes: usize,
    redriven: usize,
}

impl DeadLetters {
    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Returns whether there are some that were received too often.
    pub(crate) const fn has_redriven(&self) -> bool {
        self.redriven > 0
    }

    /// Returns the bytes of memory, bodies included.
    pub(crate) const fn resident_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, message: QueuedMessage, reason: DeadLetterReason) {
        self.bytes += bytes_of(&message);
        self.redriven += usize::from(reason == DeadLetterReason::Redriven);
        self.letters.push_back(DeadLetter { message, reason });
    }

    pub(crate) fn front(&self) -> Option<&DeadLetter> {
        self.letters.front()
    }

    pub(crate) fn pop(&mut self) -> Option<DeadLetter> {
        let letter = self.letters.pop_front()?;
        self.count_out(&letter);
        Some(letter)
    }

    /// Takes a message by its number.
    pub(crate) fn remove(&mut self, seq: Seq) -> Option<QueuedMessage> {
        let at = self.letters.iter().position(|letter| letter.message.entry.seq == seq)?;
        let letter = self.letters.remove(at)?;
        self.count_out(&letter);
        Some(letter.message)
    }

    fn count_out(&mut self, letter: &DeadLetter) {
        self.bytes -= bytes_of(&letter.message);
        self.redriven -= usize::from(letter.reason == DeadLetterReason::Redriven);
    }

    /// Takes the bodies that were read.
    pub(crate) fn fill(&mut self, bodies: &FxHashMap<Seq, Arc<Message>>) {
        for DeadLetter { message, .. } in &mut self.letters {
            if message.body.is_none()
                && let Some(body) = bodies.get(&message.entry.seq)
            {
                self.bytes += body.resident_bytes();
                message.body = Some(Arc::clone(body));
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.letters.iter().map(|letter| &letter.message)
    }

    /// Returns the messages at these places, counted from the oldest: for a checkpoint, which
    /// changes the places of entries in the log.
    pub(crate) fn range_mut(
        &mut self,
        places: Range<usize>,
    ) -> impl Iterator<Item = &mut QueuedMessage> {
        self.letters.range_mut(places).map(|letter| &mut letter.message)
    }
}

fn bytes_of(message: &QueuedMessage) -> usize {
    size_of::<DeadLetter>() + message.body.as_ref().map_or(0, |body| body.resident_bytes())
}
