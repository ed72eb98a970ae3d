//! Messages that the program acknowledges itself: until then no relay is sent RECEIVED for them.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ListenerSession;
use crate::limits::LISTENER_EVENTS_MAX;
use crate::session::Link;
use crate::{ClientId, MessageSeq};

/// Messages in the order in which they are given, that are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct ManualAcks {
    unacked: VecDeque<UnackedMessage>,
    /// The number of the first one of `unacked`, counted from the session's beginning.
    base: u64,
    /// The number of each.
    numbers: FxHashMap<(ClientId, MessageSeq), u64>,
}

#[derive(Debug)]
struct UnackedMessage {
    producer: ClientId,
    sequence: MessageSeq,
    /// Which of which connection's messages it is.
    at: LinkOrdinal,
}

/// Which of which connection's messages.
pub(super) type LinkOrdinal = (Link, u64);

impl ManualAcks {
    pub(super) fn push(&mut self, producer: ClientId, sequence: MessageSeq, at: LinkOrdinal) {
        self.numbers.insert((producer, sequence), self.base + self.unacked.len() as u64);
        self.unacked.push_back(UnackedMessage { producer, sequence, at });
    }

    /// Notes that a message came again. If the program still has it, it counts as the repetition
    /// from now on: its producer waits for this relay's ACK and no more for the other one's.
    /// Returns what is done.
    pub(super) fn repeat(
        &mut self,
        producer: ClientId,
        sequence: MessageSeq,
        at: LinkOrdinal,
    ) -> LinkOrdinal {
        let Some(number) = self.numbers.get(&(producer, sequence)) else { return at };
        std::mem::replace(&mut self.unacked[(number - self.base) as usize].at, at)
    }

    fn take(&mut self) -> Option<LinkOrdinal> {
        let given = self.unacked.pop_front()?;
        self.base += 1;
        self.numbers.remove(&(given.producer, given.sequence));
        Some(given.at)
    }

    pub(super) fn is_full(&self) -> bool {
        self.unacked.len() >= LISTENER_EVENTS_MAX
    }
}

/// The messages of a connection that RECEIVED does not cover yet, oldest first: which of them are done.
#[derive(Debug, Default)]
pub(super) struct ReceivedTracker {
    done: VecDeque<bool>,
    base: u64,
}

impl ReceivedTracker {
    pub(super) fn arrive(&mut self) {
        self.done.push_back(false);
    }

    fn finish(&mut self, ordinal: u64) {
        let place = ordinal.checked_sub(self.base).map(|index| index as usize);
        if let Some(done) = place.and_then(|index| self.done.get_mut(index)) {
            *done = true;
        }
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.base += 1;
        }
    }

    /// Returns the number below which all are done.
    pub(super) const fn first(&self) -> u64 {
        self.base
    }
}

impl ListenerSession {
    /// The `messages` oldest messages that were taken and not acknowledged are done, if the program said
    /// that it acknowledges itself: producers that wait for listeners are acknowledged. Gaps do not count.
    pub fn acknowledge(&mut self, messages: u64) {
        for _ in 0..messages {
            let Some(place) = self.manual_acks.as_mut().and_then(ManualAcks::take) else { break };
            self.done(place);
        }
        self.send_received();
    }

    /// A message is done: acknowledged, or none for the program.
    pub(super) fn done(&mut self, (link, ordinal): LinkOrdinal) {
        if let Some(state) = self.link_mut(link) {
            state.tracker.finish(ordinal);
        }
    }
}
