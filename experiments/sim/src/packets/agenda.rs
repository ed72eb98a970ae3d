//! What happens next: events by their time, and those of one time in the order in which they were made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events to come. Time is in microseconds.
#[derive(Debug)]
pub(super) struct Agenda<E> {
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

impl<E> Agenda<E> {
    pub(super) fn new() -> Self {
        Self { now_us: 0, made: 0, heap: BinaryHeap::new() }
    }

    pub(super) const fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(super) fn after(&mut self, us: u64, event: E) {
        self.at(self.now_us.saturating_add(us), event);
    }

    pub(super) fn at(&mut self, at_us: u64, event: E) {
        self.made += 1;
        let at_us = at_us.max(self.now_us);
        self.heap.push(Reverse(Entry { at_us, number: self.made, event }));
    }

    /// The next event that is due by `until_us`; else the time is `until_us` then.
    pub(super) fn next_until(&mut self, until_us: u64) -> Option<E> {
        if self.heap.peek().is_none_or(|Reverse(first)| first.at_us > until_us) {
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
