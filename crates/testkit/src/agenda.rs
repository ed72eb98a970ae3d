//! What happens next: events by their virtual time, and those of one time in the order in which they were made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events to come. Time is in microseconds.
#[derive(Debug)]
pub struct Agenda<E> {
    now_us: u64,
    made: u64,
    heap: BinaryHeap<Reverse<Entry<E>>>,
}

#[derive(Debug)]
struct Entry<E> {
    at_us: u64,
    number: u64,
    event: E,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Agenda<E> {
    /// No events; it is 0 µs.
    #[must_use]
    pub const fn new() -> Self {
        Self { now_us: 0, made: 0, heap: BinaryHeap::new() }
    }

    /// The time of the last event that was taken, or to which it was found that there is none.
    #[must_use]
    pub const fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Makes an event so much later than now.
    pub fn after(&mut self, us: u64, event: E) {
        self.at(self.now_us.saturating_add(us), event);
    }

    /// Makes an event at a time, or now if that is over.
    pub fn at(&mut self, at_us: u64, event: E) {
        self.made += 1;
        let at_us = at_us.max(self.now_us);
        self.heap.push(Reverse(Entry { at_us, number: self.made, event }));
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_us(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(first)| first.at_us)
    }

    /// The next event that is due by `until_us`; else the time is `until_us` then.
    pub fn next_until(&mut self, until_us: u64) -> Option<E> {
        if self.next_us().is_none_or(|at_us| at_us > until_us) {
            self.now_us = self.now_us.max(until_us);
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        self.now_us = entry.at_us;
        Some(entry.event)
    }
}

impl<E> Entry<E> {
    const fn key(&self) -> (u64, u64) {
        (self.at_us, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_they_were_made() {
        let mut agenda = Agenda::new();
        agenda.at(20, 'c');
        agenda.at(10, 'a');
        agenda.at(10, 'b');
        assert_eq!((agenda.next_us(), agenda.next_until(9), agenda.now_us()), (Some(10), None, 9));
        assert_eq!((agenda.next_until(10), agenda.next_until(10)), (Some('a'), Some('b')));
        agenda.at(3, 'n'); // It is 10 already.
        agenda.after(10, 'd');
        let rest: String = std::iter::from_fn(|| agenda.next_until(100)).collect();
        assert_eq!((rest.as_str(), agenda.now_us()), ("ncd", 100));
    }
}
