//! What an endpoint has counted.

use crate::inbox::Received;
use crate::outbox::Sending;
use crate::wire::Malformed;

/// Counters of an endpoint, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What it sent.
    pub sent: Sending,
    /// What it took.
    pub received: Received,
    /// What it dropped before it was looked at.
    pub dropped: Dropped,
}

/// Datagrams that were dropped whole, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Malformed ones; a cause's place is its number.
    pub malformed: [u64; Malformed::COUNTERS.len()],
    /// Those that are not sealed as they should be.
    pub not_authentic: u64,
    /// Those that are authentic and were here before.
    pub replayed: u64,
}

impl Dropped {
    /// Returns how many datagrams were dropped for this cause.
    #[must_use]
    pub const fn of(&self, cause: Malformed) -> u64 {
        self.malformed[cause as usize]
    }

    /// Returns how many datagrams were dropped, for all causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.malformed.iter().sum::<u64>() + self.not_authentic + self.replayed
    }

    pub(crate) fn count(&mut self, cause: Malformed) {
        self.malformed[cause as usize] += 1;
    }
}
