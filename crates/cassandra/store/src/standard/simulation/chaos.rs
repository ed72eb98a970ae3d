//! What goes wrong in a run, and what came of it.

use std::time::Duration;

use quelea_sqs_protocol::Consistency;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chaos {
    pub(super) front_ends: usize,
    /// For how long clients come and things go wrong.
    pub(super) active: Duration,
    /// Requests and answers are slow and get lost; replicas are away, and hear late or never of what they missed.
    pub(super) network: bool,
    /// Front-ends end without a word.
    pub(super) crashes: bool,
    /// Front-ends stop for up to a minute, and wake.
    pub(super) pauses: bool,
    /// Clocks differ: nodes' a little, front-ends' by half a second, and one's by a minute.
    pub(super) clocks: bool,
    /// Replicas never hear of some of what they missed while they were away.
    pub(super) forgetting: bool,
    /// Messages of a queue that may be in flight.
    pub(super) in_flight_max: usize,
    /// The queue is purged now and then.
    pub(super) purges: bool,
    /// Tasks move dead letters back to their queue, and consumers forget more, so that there are some.
    pub(super) moves: bool,
    /// When front-ends read again what they know of queues, if nobody tells them to.
    pub(super) reread: Reread,
    /// How many replicas answer for a request, as the queue has it.
    pub(super) consistency: Consistency,
    /// As many do; else one always.
    pub(super) is_quorum: bool,
    /// Of two values that with the later timestamp counts; else the one that comes last.
    pub(super) is_by_timestamp: bool,
}

impl Chaos {
    pub(super) const NONE: Self = Self {
        front_ends: 3,
        active: Duration::from_secs(20),
        network: false,
        crashes: false,
        pauses: false,
        clocks: false,
        forgetting: false,
        in_flight_max: 120_000,
        purges: false,
        moves: false,
        reread: Reread::AsHeard,
        consistency: Consistency::LocalQuorum,
        is_quorum: true,
        is_by_timestamp: true,
    };

    /// Returns whether every call ends, with a known outcome.
    pub(super) const fn is_calm(&self) -> bool {
        !(self.network || self.crashes || self.pauses)
    }

    pub(super) const ALL: Self = Self {
        active: Duration::from_secs(60),
        network: true,
        crashes: true,
        pauses: true,
        clocks: true,
        forgetting: true,
        ..Self::NONE
    };
}

/// When front-ends read again what they know of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reread {
    /// After a moment; later where they hear all others.
    AsHeard,
    /// As late as if they heard all others.
    AsIfHeard,
    Never,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// What a queue cannot do, in words.
    pub(super) faults: Vec<String>,
    pub(super) confirmed: u64,
    pub(super) received: u64,
    /// Messages that somebody received while somebody else had them.
    pub(super) duplicates: u64,
    pub(super) deleted: u64,
    pub(super) dead_letters: u64,
    /// Calls that failed, or were not answered.
    pub(super) refused: u64,
    pub(super) late_writes: u64,
    pub(super) crashes: u64,
    pub(super) pauses: u64,
    pub(super) purges: u64,
    /// Messages that were moved back: they are new ones, of the same body.
    pub(super) copies: u64,
    /// Messages that nothing led to, as the sweep has found them: none of them was confirmed.
    pub(super) restored: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, more: &Self) {
        self.confirmed += more.confirmed;
        self.received += more.received;
        self.duplicates += more.duplicates;
        self.deleted += more.deleted;
        self.dead_letters += more.dead_letters;
        self.refused += more.refused;
        self.late_writes += more.late_writes;
        self.crashes += more.crashes;
        self.pauses += more.pauses;
        self.purges += more.purges;
        self.copies += more.copies;
        self.restored += more.restored;
    }
}
