//! What has to be looked at later. Each kind has one delay, so a line for each is in order of time.

use std::collections::VecDeque;

use crate::Time;
use crate::inbox::flow_ref::FlowRef;

/// Why to come back to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    /// What came may be acknowledged together with what follows it.
    Status = 0,
    /// What is missing may only be late.
    Gap = 1,
    /// What waits for something missing may wait in vain.
    Held = 2,
}

/// A STATUS that need not leave at once leaves after this (CONTRACT: "at most 1 ms later").
pub(super) const STATUS_DELAY_US: u64 = 1_000;

/// What is missing in a flow that repeats nothing counts as lost after once to twice this. Paths
/// that change order change it within a few milliseconds.
pub(super) const GAP_DELAY_US: u64 = 25_000;

/// How often what waits is looked at.
pub(super) const HELD_DELAY_US: u64 = 250_000;

const KINDS: [(Delay, u64); 3] =
    [(Delay::Status, STATUS_DELAY_US), (Delay::Gap, GAP_DELAY_US), (Delay::Held, HELD_DELAY_US)];

/// The lines.
#[derive(Debug, Default)]
pub(super) struct Delays {
    lines: [VecDeque<(Time, FlowRef)>; KINDS.len()],
}

impl Delays {
    /// Comes back to `flow` after the kind's delay. Whoever calls sees to it that a flow is in a line
    /// once at most.
    pub(super) fn arm(&mut self, kind: Delay, flow: FlowRef, now: Time) {
        let line = &mut self.lines[kind as usize];
        // A clock that went back must not hide what is behind.
        let earliest = line.back().map_or(Time::ZERO, |(due, _)| *due);
        line.push_back((now.plus_us(KINDS[kind as usize].1).max(earliest), flow));
    }

    /// Returns when the first is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.lines.iter().filter_map(|line| line.front()).map(|(due, _)| *due).min()
    }

    /// Takes a delay that is due, with its flow.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Delay, FlowRef)> {
        for (kind, _) in KINDS {
            let line = &mut self.lines[kind as usize];
            if line.front().is_some_and(|(due, _)| *due <= now) {
                return line.pop_front().map(|(_, flow)| (kind, flow));
            }
        }
        None
    }

    /// Returns the flow whose turn is next in the line of a kind.
    pub(super) fn first(&self, kind: Delay) -> Option<FlowRef> {
        self.lines[kind as usize].front().map(|(_, flow)| *flow)
    }

    /// Takes that one out of the line.
    pub(super) fn drop_first(&mut self, kind: Delay) {
        self.lines[kind as usize].pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FlowRef = FlowRef { slot: 1, generation: 1 };

    #[test]
    fn each_kind_has_its_own_delay() {
        let mut delays = Delays::default();
        assert_eq!(delays.next(), None);
        delays.arm(Delay::Gap, A, Time::ZERO);
        delays.arm(Delay::Status, A, Time::from_micros(100));
        assert_eq!(delays.next(), Some(Time::from_micros(100 + STATUS_DELAY_US)));
        assert_eq!(delays.pop(Time::from_micros(99 + STATUS_DELAY_US)), None);
        let later = Time::from_micros(GAP_DELAY_US);
        assert_eq!(delays.pop(later), Some((Delay::Status, A)));
        assert_eq!(delays.pop(later), Some((Delay::Gap, A)));
        assert_eq!(delays.pop(later), None);
    }

    #[test]
    fn a_clock_that_goes_back_hides_nothing() {
        let mut delays = Delays::default();
        delays.arm(Delay::Status, A, Time::from_micros(500));
        delays.arm(Delay::Status, FlowRef { slot: 2, generation: 2 }, Time::ZERO);
        let later = Time::from_micros(500 + STATUS_DELAY_US);
        assert!(delays.pop(later).is_some() && delays.pop(later).is_some());
    }
}
