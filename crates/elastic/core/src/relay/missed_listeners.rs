//! The listeners of a relay that may miss what is acknowledged.

use std::collections::VecDeque;

use quelea_elastic_proto::ClientId;

use crate::relay::limits::MISSED_LISTENERS_MAX;

/// A place in the order in which listeners came here; grows.
pub(crate) type MissedNumber = u64;

/// Listeners that may miss what is acknowledged now, at most [`MISSED_LISTENERS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct MissedListeners {
    /// Producers reported them. They may be gone for good, or not exist: they make room for the others.
    vouched: VecDeque<(MissedNumber, ClientId)>,
    /// This relay saw it itself.
    observed: VecDeque<(MissedNumber, ClientId)>,
    last: MissedNumber,
}

impl MissedListeners {
    pub(crate) fn all(&self) -> impl Iterator<Item = &(MissedNumber, ClientId)> {
        self.vouched.iter().chain(&self.observed)
    }

    pub(crate) const fn last(&self) -> MissedNumber {
        self.last
    }

    pub(crate) fn has(&self, listener: ClientId) -> bool {
        self.all().any(|(_, of)| *of == listener)
    }

    pub(crate) fn observe(&mut self, listener: ClientId) {
        if self.vouched.len() + self.observed.len() == MISSED_LISTENERS_MAX {
            let _oldest = self.vouched.pop_front().or_else(|| self.observed.pop_front());
        }
        self.last += 1;
        self.observed.push_back((self.last, listener));
    }

    /// Adds one that a producer reports, and returns whether there was room.
    pub(crate) fn vouch_for(&mut self, listener: ClientId) -> bool {
        let has_room = self.vouched.len() + self.observed.len() < MISSED_LISTENERS_MAX;
        if has_room {
            self.last += 1;
            self.vouched.push_back((self.last, listener));
        }
        has_room
    }

    pub(crate) fn remove(&mut self, listener: ClientId) -> bool {
        let before = self.vouched.len() + self.observed.len();
        self.vouched.retain(|(_, of)| *of != listener);
        self.observed.retain(|(_, of)| *of != listener);
        self.vouched.len() + self.observed.len() < before
    }
}
