//! The messages of a queue that may not be received yet: delayed ones, and those that somebody
//! received and has not deleted. No timer each: they are sorted by the time from which they may be
//! received (BDQS §III-B.3).

use std::collections::{BTreeMap, BTreeSet};

use quelea_model::{Seq, Timestamp};
use quelea_store::{QueuedMessage, Visibility};

/// A message that waits for its time.
#[derive(Debug)]
pub(crate) struct InvisibleMessage {
    /// Its body is kept only if the log does not have it. The entry's delivery count is the number
    /// of times that it was received; 0 of one that is delayed.
    pub(crate) message: QueuedMessage,
    /// From when it may be received.
    pub(crate) visible_at: Timestamp,
    /// When it was last received; what was recovered says when it was first.
    pub(crate) received_at: Timestamp,
    /// When it was first received; zero if it never was.
    pub(crate) first_received_at: Timestamp,
}

impl InvisibleMessage {
    pub(crate) const fn is_delayed(&self) -> bool {
        self.message.entry.delivery_count == 0
    }

    /// Returns the message's visibility as the log keeps it.
    pub(crate) const fn visibility(&self) -> Visibility {
        Visibility {
            seq: self.message.entry.seq,
            visible_at: self.visible_at,
            first_received_at: self.first_received_at,
            receive_count: self.message.entry.delivery_count,
        }
    }
}

/// All of a queue, and what is remembered of messages that were received and are visible again.
#[derive(Debug, Default)]
pub(crate) struct InvisibleMessages {
    by_seq: BTreeMap<Seq, InvisibleMessage>,
    by_time: BTreeSet<(Timestamp, Seq)>,
    delayed: usize,
    /// Bytes of bodies that only memory has.
    bytes: usize,
    /// First reception of messages that are visible again.
    received_before: BTreeMap<Seq, Timestamp>,
}

impl InvisibleMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_seq.is_empty()
    }

    pub(crate) const fn delayed(&self) -> usize {
        self.delayed
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.by_seq.len() - self.delayed
    }

    pub(crate) const fn resident_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<&InvisibleMessage> {
        self.by_seq.get(&seq)
    }

    /// Returns the oldest message.
    pub(crate) fn first(&self) -> Option<&InvisibleMessage> {
        self.by_seq.values().next()
    }

    pub(crate) fn insert(&mut self, invisible: InvisibleMessage) {
        let seq = invisible.message.entry.seq;
        self.received_before.remove(&seq);
        self.delayed += usize::from(invisible.is_delayed());
        self.bytes += bytes_of(&invisible.message);
        self.by_time.insert((invisible.visible_at, seq));
        self.by_seq.insert(seq, invisible);
    }

    /// Takes a message, wherever its time lies.
    pub(crate) fn remove(&mut self, seq: Seq) -> Option<InvisibleMessage> {
        let invisible = self.by_seq.remove(&seq)?;
        self.delayed -= usize::from(invisible.is_delayed());
        self.bytes -= bytes_of(&invisible.message);
        self.by_time.remove(&(invisible.visible_at, seq));
        Some(invisible)
    }

    /// Sets when a message may be received. Returns the message.
    pub(crate) fn set_visible_at(&mut self, seq: Seq, at: Timestamp) -> Option<&InvisibleMessage> {
        let invisible = self.by_seq.get_mut(&seq)?;
        self.by_time.remove(&(invisible.visible_at, seq));
        invisible.visible_at = at;
        self.by_time.insert((at, seq));
        Some(invisible)
    }

    /// Returns when the next one may be received.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the next one whose time has come.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<InvisibleMessage> {
        let (at, seq) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.remove(seq)
    }

    /// Remembers when a message that is visible again was first received.
    pub(crate) fn remember(&mut self, seq: Seq, first_received_at: Timestamp) {
        self.received_before.insert(seq, first_received_at);
    }

    /// Returns when a visible message was first received, if it was.
    pub(crate) fn received_before(&self, seq: Seq) -> Option<Timestamp> {
        self.received_before.get(&seq).copied()
    }

    /// A visible message left the queue.
    pub(crate) fn forget(&mut self, seq: Seq) {
        self.received_before.remove(&seq);
    }

    /// Forgets all visible messages, which left the queue. Returns what was remembered of them.
    pub(crate) fn forget_all(&mut self) -> Self {
        Self { received_before: std::mem::take(&mut self.received_before), ..Self::default() }
    }

    /// Forgets one of the messages that are visible again. False: there are no more.
    pub(crate) fn forget_one(&mut self) -> bool {
        self.received_before.pop_first().is_some()
    }

    /// Takes a message, whatever its time.
    pub(crate) fn pop(&mut self) -> Option<QueuedMessage> {
        let seq = *self.by_seq.first_key_value()?.0;
        self.remove(seq).map(|invisible| invisible.message)
    }

    /// Returns the messages from this number on, in order. Numbers make a cursor that holds while
    /// others come and go.
    pub(crate) fn starting_at(&mut self, seq: Seq) -> impl Iterator<Item = &mut InvisibleMessage> {
        self.by_seq.range_mut(seq..).map(|(_, invisible)| invisible)
    }

    /// Returns the messages from this number on, in order.
    pub(crate) fn starting_from(&self, seq: Seq) -> impl Iterator<Item = &InvisibleMessage> {
        self.by_seq.range(seq..).map(|(_, invisible)| invisible)
    }

    /// Returns what the entries take of the memory, about, bodies aside.
    pub(crate) fn bytes(&self) -> usize {
        const HIDDEN_BYTES: usize = 160;
        const REMEMBERED_BYTES: usize = 24;
        self.by_seq.len() * HIDDEN_BYTES + self.received_before.len() * REMEMBERED_BYTES
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InvisibleMessage> {
        self.by_seq.values()
    }

    /// Returns the messages from this number on that were received and are visible again, with the
    /// first reception, in order.
    pub(crate) fn received_before_from(&self, seq: Seq) -> impl Iterator<Item = (Seq, Timestamp)> {
        self.received_before.range(seq..).map(|(seq, at)| (*seq, *at))
    }
}

fn bytes_of(message: &QueuedMessage) -> usize {
    message.body.as_ref().map_or(0, |body| body.resident_bytes())
}

#[cfg(test)]
mod tests {
    use quelea_store::Entry;

    use super::*;

    fn invisible(seq: u64, visible_at: u64, receive_count: u16) -> InvisibleMessage {
        let entry = Entry { seq: Seq(seq), delivery_count: receive_count, ..Entry::default() };
        InvisibleMessage {
            message: QueuedMessage { entry, expires_at: None, body: None },
            visible_at: Timestamp::from_millis(visible_at),
            received_at: Timestamp::ZERO,
            first_received_at: Timestamp::ZERO,
        }
    }

    #[test]
    fn messages_come_out_by_their_time_and_not_before() {
        let mut messages = InvisibleMessages::default();
        for (seq, at, count) in [(1, 30, 1), (2, 10, 0), (3, 20, 2)] {
            messages.insert(invisible(seq, at, count));
        }
        assert_eq!((messages.in_flight(), messages.delayed()), (2, 1));
        let mut due =
            |now| messages.pop_due(Timestamp::from_millis(now)).map(|h| h.message.entry.seq.0);
        assert_eq!(
            [due(9), due(10), due(10), due(25), due(25)],
            [None, Some(2), None, Some(3), None]
        );
        assert_eq!((messages.in_flight(), messages.delayed()), (1, 0));
    }

    #[test]
    fn a_changed_time_replaces_the_old_one() {
        let mut messages = InvisibleMessages::default();
        messages.insert(invisible(1, 30, 1));
        messages.set_visible_at(Seq(1), Timestamp::from_millis(5));
        assert_eq!(messages.next_time(), Some(Timestamp::from_millis(5)));
        assert!(messages.remove(Seq(1)).is_some());
        assert_eq!(messages.next_time(), None);
        assert!(messages.set_visible_at(Seq(1), Timestamp::ZERO).is_none());
    }
}
