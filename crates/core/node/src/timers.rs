//! Deadlines of connections: one entry a connection, moved lazily. A connection that reads all the
//! time pushes its heartbeat deadline on and on; here that costs one comparison, since an entry that
//! comes due too early is put back at the connection's real deadline.

use std::collections::BTreeSet;

use quelea_model::Timestamp;

/// Deadlines in order, of connections by their slot.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    entries: BTreeSet<(Timestamp, usize)>,
}

/// What a connection remembers of its entry: when it comes due, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Armed(Option<Timestamp>);

impl Timers {
    /// Makes sure that the connection comes due no later than `deadline`.
    pub(crate) fn arm(&mut self, slot: usize, armed: &mut Armed, deadline: Option<Timestamp>) {
        let Some(deadline) = deadline else { return };
        if armed.0.is_some_and(|at| at <= deadline) {
            return;
        }
        self.disarm(slot, armed);
        armed.0 = Some(deadline);
        self.entries.insert((deadline, slot));
    }

    /// Takes the connection's entry out; it is gone, or was found due.
    pub(crate) fn disarm(&mut self, slot: usize, armed: &mut Armed) {
        if let Some(at) = armed.0.take() {
            self.entries.remove(&(at, slot));
        }
    }

    /// Returns a connection whose entry is due. The caller disarms it, looks at its real deadline,
    /// acts if that is due too, and arms it again.
    pub(crate) fn due(&self, now: Timestamp) -> Option<usize> {
        self.entries.first().filter(|(at, _)| *at <= now).map(|(_, slot)| *slot)
    }

    /// Returns when to look again.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.entries.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_deadline_that_moves_on_keeps_its_one_entry() {
        let (mut timers, mut armed) = (Timers::default(), Armed::default());
        for deadline in 100..10_000 {
            timers.arm(3, &mut armed, Some(at(deadline)));
        }
        assert_eq!(timers.due(at(99)), None);
        assert_eq!(timers.due(at(100)), Some(3));
        timers.disarm(3, &mut armed);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_sooner_deadline_takes_the_place_of_a_later_one() {
        let (mut timers, mut armed) = (Timers::default(), Armed::default());
        timers.arm(3, &mut armed, Some(at(500)));
        timers.arm(3, &mut armed, Some(at(100)));
        assert_eq!(timers.next(), Some(at(100)));
        timers.disarm(3, &mut armed);
        assert_eq!(timers.due(at(600)), None);
    }

    #[test]
    fn connections_come_due_in_the_order_of_their_deadlines() {
        let (mut timers, mut armed) = (Timers::default(), [Armed::default(); 3]);
        for (slot, deadline) in [(0, 30), (1, 10), (2, 20)] {
            timers.arm(slot, &mut armed[slot], Some(at(deadline)));
        }
        let mut order = Vec::new();
        while let Some(slot) = timers.due(at(25)) {
            timers.disarm(slot, &mut armed[slot]);
            order.push(slot);
        }
        assert_eq!(order, [1, 2]);
    }
}
