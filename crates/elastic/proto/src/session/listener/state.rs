//! What a listener knows of each producer and of each of its slots.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::{Gap, GapCause};
use crate::session::Link;
use crate::{ClientId, Epoch, MessageSeq, Slot, Time};

/// A producer.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) id: ClientId,
    /// All below was given, was a gap, or did not match. `None`: it came before all relays had announced
    /// their slots, so an earlier slot of it may turn up.
    pub(super) done: Option<MessageSeq>,
    /// The first message that was waited for: nothing below was given, and what comes of that in a slot of an
    /// epoch before this one is too late. In others its producer repeats what it published before we were there.
    pub(super) begin: (Epoch, MessageSeq),
    /// A relay has sent us away while the producer was there, or it may be at one that never knew of us:
    /// acknowledged does not mean that we have it, until another slot of it is open.
    pub(super) missed: Option<GapCause>,
    /// It has said that messages below may have been acknowledged without us.
    pub(super) missed_below: MessageSeq,
    /// Its last slot that began with what is sent again: its epoch and first message.
    pub(super) resent: (Epoch, MessageSeq),
    /// Its slots that are not at their end.
    pub(super) slots: Vec<usize>,
    /// A slot is held: what is missing is given up then.
    pub(super) wait_until: Option<Time>,
    /// Since when, and for what.
    pub(super) waits_since: Time,
    pub(super) waits_for: WaitsFor,
    /// The number of its leaving, while it has no slot.
    pub(super) departure: u64,
}

impl Producer {
    /// Nothing of it was known, and nothing below is waited for.
    pub(super) fn begin_at(&mut self, epoch: Epoch, first: MessageSeq) {
        self.begin = (epoch, first);
        self.done = Some(first);
    }
}

/// What a held slot waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Nothing is held.
    Nothing,
    /// Another slot may bring what is missing: one that is open, or that is still to be announced.
    Slot,
    /// The producer may send again what is missing.
    Resend,
}

/// A slot of a producer at a relay.
#[derive(Debug)]
pub(super) struct ProducerSlot {
    pub(super) producer: usize,
    /// Where it comes from; `None` when that connection is gone and some messages are still held.
    pub(super) link: Option<Link>,
    pub(super) slot: Slot,
    pub(super) epoch: Epoch,
    pub(super) first: MessageSeq,
    /// Messages from here on are left to a later slot, in which the producer sends them again.
    pub(super) limit: MessageSeq,
    /// The epoch before; 0: nothing below `first` comes any more from anybody.
    pub(super) previous: Epoch,
    /// The producer had begun here before we came: what is below went past us.
    pub(super) late: bool,
    /// It is not held.
    pub(super) open: bool,
    /// The PING behind whose answers all is there that other relays had sent before the START.
    pub(super) barrier: Option<u64>,
    pub(super) since: Time,
    pub(super) held: VecDeque<Held>,
}

impl ProducerSlot {
    /// Returns the message below which all is waited for: not what a later slot brings again, even
    /// if this one never ends.
    pub(super) fn begin(&self) -> MessageSeq {
        self.first.min(self.limit)
    }
}

/// What came in a slot that is held.
#[derive(Debug)]
pub(super) enum Held {
    Message {
        sequence: MessageSeq,
        encoded: Bytes,
        /// Which of its connection's messages it is.
        ordinal: u64,
    },
    Gap(Gap),
    Fin(MessageSeq),
}
