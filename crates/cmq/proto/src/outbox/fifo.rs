//! Deadlines where every batch waits equally long: the order of beginning is the order of deadlines,
//! so a line of them does what the paper's priority search queue does.

use std::collections::VecDeque;

use crate::Time;

/// Stale entries that are not worth a sweep.
const STALE_MIN: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: Time,
    slot: u32,
    stamp: u32,
}

/// A line of deadlines, at most one of each slot. What is taken back stays in the line until it
/// reaches the front or half of the line is stale. Invariant: the front is not stale.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    line: VecDeque<Entry>,
    /// The stamp of each slot's entry; zero if it has none.
    stamps: Vec<u32>,
    last_stamp: u32,
    armed: usize,
}

impl Fifo {
    /// The slot's deadline, which must not be armed. A deadline before the last one is taken for the
    /// last one: two readings of a clock by two threads may come in the wrong order.
    pub(crate) fn arm(&mut self, slot: u32, deadline: Time) {
        let index = slot as usize;
        if index >= self.stamps.len() {
            self.stamps.resize(index + 1, 0);
        }
        debug_assert_eq!(self.stamps[index], 0, "slot {slot} is armed");
        self.last_stamp = self.last_stamp.checked_add(1).unwrap_or(1);
        self.stamps[index] = self.last_stamp;
        let deadline = self.line.back().map_or(deadline, |last| last.deadline.max(deadline));
        self.line.push_back(Entry { deadline, slot, stamp: self.last_stamp });
        self.armed += 1;
    }

    /// Takes the slot's deadline back; does nothing if it has none.
    pub(crate) fn disarm(&mut self, slot: u32) {
        let Some(stamp) = self.stamps.get_mut(slot as usize).filter(|stamp| **stamp != 0) else {
            return;
        };
        *stamp = 0;
        self.armed -= 1;
        self.drop_stale_front();
        if self.line.len() > 2 * self.armed + STALE_MIN {
            let stamps = &self.stamps;
            self.line.retain(|entry| stamps[entry.slot as usize] == entry.stamp);
        }
    }

    /// Returns the oldest deadline, with its slot.
    pub(crate) fn oldest(&self) -> Option<(Time, u32)> {
        self.line.front().map(|entry| (entry.deadline, entry.slot))
    }

    /// Returns how many deadlines are armed.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.armed
    }

    fn drop_stale_front(&mut self) {
        while let Some(front) = self.line.front() {
            if self.stamps[front.slot as usize] == front.stamp {
                return;
            }
            self.line.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_does_not_pile_up_behind_one_that_stays() {
        let mut fifo = Fifo::default();
        fifo.arm(0, Time::from_micros(1));
        for time in 2..100_000 {
            fifo.arm(1, Time::from_micros(time));
            fifo.disarm(1);
        }
        assert!(fifo.line.len() <= 2 + STALE_MIN, "{} entries", fifo.line.len());
        assert_eq!(fifo.oldest(), Some((Time::from_micros(1), 0)));
        assert_eq!(fifo.len(), 1);
    }

    #[test]
    fn a_clock_that_goes_backwards_changes_no_order() {
        let mut fifo = Fifo::default();
        fifo.arm(0, Time::from_micros(10));
        fifo.arm(1, Time::from_micros(9));
        fifo.disarm(0);
        assert_eq!(fifo.oldest(), Some((Time::from_micros(10), 1)));
    }
}
