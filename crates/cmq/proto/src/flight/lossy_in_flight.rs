//! What is under way and will not be repeated: only its size and its time are kept.

use std::collections::VecDeque;

use crate::Time;

/// The datagrams from the lowest that was not reported to the highest that was sent, 8 bytes each.
#[derive(Debug, Default)]
pub(super) struct LossyInFlight {
    /// The sequence of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    charges: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    charge: u32,
    /// The low half of the time's microseconds: nothing is under way for an hour.
    sent_us: u32,
}

impl LossyInFlight {
    pub(super) fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// Returns how many bytes are under way, as the kernel counts them.
    pub(super) fn charges(&self) -> u64 {
        self.charges
    }

    /// Returns one past the highest sequence that was sent.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn sent(&mut self, sequence: u64, charge: u32, now: Time) {
        debug_assert_eq!(sequence, self.next(), "sequences have no holes");
        #[allow(clippy::cast_possible_truncation)] // The low half is what is wanted.
        self.entries.push_back(Entry { charge, sent_us: now.as_micros() as u32 });
        self.charges += u64::from(charge);
    }

    /// Takes down that everything below `below` arrived or is lost. Returns the microseconds since
    /// `below - 1` was sent, if this is the first word on it.
    pub(super) fn passed(&mut self, below: u64, now: Time) -> Option<u64> {
        let mut last = None;
        while self.first < below {
            let Some(entry) = self.entries.pop_front() else { break };
            self.first += 1;
            self.charges -= u64::from(entry.charge);
            last = Some(entry);
        }
        #[allow(clippy::cast_possible_truncation)] // The low half is what is wanted.
        let now_us = now.as_micros() as u32;
        last.filter(|_| self.first == below)
            .map(|entry| u64::from(now_us.wrapping_sub(entry.sent_us)))
    }

    /// Forgets everything, as if it had arrived.
    pub(super) fn clear(&mut self) {
        self.first = self.next();
        self.entries.clear();
        self.charges = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_no_longer_counted_and_times_the_path() {
        let mut passing = LossyInFlight::new(7);
        // The clock's low half wraps between the two.
        let start = Time::from_micros(u64::from(u32::MAX) - 5);
        for sequence in 7..10 {
            passing.sent(sequence, 1_000, start.plus_us(sequence));
        }
        assert_eq!((passing.charges(), passing.next()), (3_000, 10));
        assert_eq!(passing.passed(9, start.plus_us(108)), Some(100));
        assert_eq!(passing.charges(), 1_000);
        assert_eq!(passing.passed(9, start.plus_us(200)), None, "it was reported before");
        assert_eq!(passing.passed(10, start.plus_us(209)), Some(200));
        assert!(passing.is_empty());
        assert_eq!(passing.next(), 10);
    }
}
