//! Messages that the program acknowledges itself: until then no relay is told that it has them.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::ListenerSession;
use super::links::LinkState;
use crate::limits::LISTENER_EVENTS_MAX;
use crate::session::Link;
use crate::{ClientId, MessageSeq};

/// Messages in the order in which they are given, that are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct ByHand {
    given: VecDeque<Given>,
    /// The number of the first one of `given`, counted from the session's beginning.
    base: u64,
    /// The number of each.
    numbers: FxHashMap<(ClientId, MessageSeq), u64>,
}

#[derive(Debug)]
struct Given {
    producer: ClientId,
    sequence: MessageSeq,
    /// Which of which connection's messages it is.
    at: Place,
}

/// Which of which connection's messages.
pub(super) type Place = (Link, u64);

impl ByHand {
    pub(super) fn give(&mut self, producer: ClientId, sequence: MessageSeq, at: Place) {
        self.numbers.insert((producer, sequence), self.base + self.given.len() as u64);
        self.given.push_back(Given { producer, sequence, at });
    }

    /// A message came again. If the program still has it, it counts as the repetition from now on: its
    /// producer waits for this relay's word and no more for the other one's. Gives what is done.
    pub(super) fn repeat(&mut self, producer: ClientId, sequence: MessageSeq, at: Place) -> Place {
        let Some(number) = self.numbers.get(&(producer, sequence)) else { return at };
        std::mem::replace(&mut self.given[(number - self.base) as usize].at, at)
    }

    fn take(&mut self) -> Option<Place> {
        let given = self.given.pop_front()?;
        self.base += 1;
        self.numbers.remove(&(given.producer, given.sequence));
        Some(given.at)
    }

    pub(super) fn is_full(&self) -> bool {
        self.given.len() >= LISTENER_EVENTS_MAX
    }
}

/// The messages of a connection that are not told by RECEIVED, oldest first: which of them are done.
#[derive(Debug, Default)]
pub(super) struct Undone {
    done: VecDeque<bool>,
    base: u64,
}

impl Undone {
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

    /// All below are done.
    pub(super) const fn first(&self) -> u64 {
        self.base
    }
}

impl ListenerSession {
    /// The `messages` oldest messages that were taken and not acknowledged are done, if the program said
    /// that it acknowledges by hand: producers who wait for listeners are told so. Gaps do not count.
    pub fn acknowledge(&mut self, messages: u64) {
        for _ in 0..messages {
            let Some(place) = self.by_hand.as_mut().and_then(ByHand::take) else { break };
            self.done(place);
        }
        self.tell_received();
    }

    /// A message is done: acknowledged, or none for the program.
    pub(super) fn done(&mut self, (link, ordinal): Place) {
        if let Some(state) = self.link_mut(link) {
            state.undone.finish(ordinal);
        }
    }

    /// How many of a connection's messages are done without a hole.
    pub(super) fn done_of(&self, state: &LinkState) -> u64 {
        if self.by_hand.is_some() {
            return state.undone.first();
        }
        self.first_held(state).unwrap_or(state.frames)
    }
}
