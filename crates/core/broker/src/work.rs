//! Work that is counted instead of timed: the broker has no clock. Whoever drives it measures how long
//! so many steps take, and sets how many of them a turn may have.

/// Until whoever drives the broker has measured: about a millisecond's.
const STEPS_PER_TURN: u64 = 50_000;
/// A turn has at least so many, or nothing would come to its end.
const STEPS_PER_TURN_MIN: u64 = 1_000;

/// A binding that is taken away: out of the router, the topology and the log. In steps of some 20 ns.
pub(crate) const STEPS_PER_BINDING: u64 = 100;
/// A name that is looked at for a list, and the permissions on it.
pub(crate) const STEPS_PER_NAME: u64 = 50;
/// A queue that is taken away, without what belongs to it.
pub(crate) const STEPS_PER_QUEUE: u64 = 200;

/// A line of a list for the management API.
pub(crate) const STEPS_PER_REPORT: u64 = 50;
/// A queue's counters for a sample.
pub(crate) const STEPS_PER_SAMPLE: u64 = 25;
/// The counters of an exchange or of a client for a sample.
pub(crate) const STEPS_PER_COUNTERS: u64 = 5;
/// A queue that is added to totals.
pub(crate) const STEPS_PER_TOTAL: u64 = 5;
/// A message that somebody looks at.
pub(crate) const STEPS_PER_BROWSED: u64 = 5;
/// A delivery that goes back to its queue, at its old place.
pub(crate) const STEPS_PER_REQUEUE: u64 = 10;
/// A delivery that is acknowledged together with others.
pub(crate) const STEPS_PER_ACK: u64 = 5;
/// A message that leaves its queue otherwise: it has expired, is rejected, or the queue is too long.
pub(crate) const STEPS_PER_DISCARD: u64 = 10;
/// What a turn has at least for these, though something else has used up its steps: consumers wait behind what has expired.
pub(crate) const DISCARD_STEPS_MIN: u64 = 160;
/// A queue that a message is put into, behind the message's first: that one is a part of what each message costs.
pub(crate) const STEPS_PER_TARGET: u64 = 10;
/// A message that is moved on to a dead-letter exchange, without its way: its properties are written anew.
pub(crate) const STEPS_PER_DEAD_LETTER: u64 = 50;

/// Steps that were done, and how many this turn has left.
#[derive(Debug)]
pub(crate) struct Work {
    done: u64,
    per_turn: u64,
    left: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self { done: 0, per_turn: STEPS_PER_TURN, left: STEPS_PER_TURN }
    }
}

impl Work {
    pub(crate) const fn done(&self) -> u64 {
        self.done
    }

    pub(crate) const fn per_turn(&self) -> u64 {
        self.per_turn
    }

    pub(crate) fn set_per_turn(&mut self, steps: u64) {
        self.per_turn = steps.max(STEPS_PER_TURN_MIN);
    }

    /// Returns what this turn has left for what can go on in a later one.
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// Returns what is to be left for others, if any wait for their share: half of it.
    pub(crate) const fn kept(&self, others_wait: bool) -> u64 {
        if others_wait { self.left / 2 } else { 0 }
    }

    pub(crate) const fn begin_turn(&mut self) {
        self.left = self.per_turn;
    }

    pub(crate) const fn spend(&mut self, steps: u64) {
        self.done += steps;
        self.left = self.left.saturating_sub(steps);
    }
}
