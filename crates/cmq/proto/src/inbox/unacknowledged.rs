//! What was delivered and not yet acknowledged, in the order of delivery.

use std::collections::{BTreeSet, VecDeque};

use crate::limits::WINDOW_DATAGRAMS_MAX;

/// Deliveries of one flow that an application may leave unacknowledged: its sender keeps each until
/// then, and has no more under way than a window.
pub(super) const UNACKNOWLEDGED_MAX: usize = WINDOW_DATAGRAMS_MAX;

#[derive(Debug)]
struct Entry {
    first: u64,
    /// Whether one with a higher sequence was delivered before it.
    straggler: bool,
    done: bool,
}

/// The deliveries of one reliable flow.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    entries: VecDeque<Entry>,
    stragglers: BTreeSet<u64>,
    highest: u64,
}

impl Unacknowledged {
    /// A message or a datagram's messages were delivered, whose first sequence is `first`.
    pub(super) fn delivered(&mut self, first: u64) {
        let straggler = first < self.highest;
        if straggler {
            self.stragglers.insert(first);
        }
        self.highest = self.highest.max(first);
        self.entries.push_back(Entry { first, straggler, done: false });
    }

    /// Returns how many deliveries are remembered; those that are done with too, behind one that is
    /// not.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The delivery that began at `first` is done with. Deliveries are popped in their order, so that
    /// it is near the front.
    pub(super) fn done(&mut self, first: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.first == first) {
            entry.done = true;
        }
        while self.entries.front().is_some_and(|entry| entry.done) {
            self.forget_front();
        }
    }

    /// The delivery that began at `first`, and all that were delivered before it, are done with.
    pub(super) fn done_through(&mut self, first: u64) {
        let Some(at) = self.entries.iter().position(|entry| entry.first == first) else { return };
        for _ in 0..=at {
            self.forget_front();
        }
    }

    /// Returns the lowest sequence that is not done with.
    pub(super) fn lowest(&self) -> Option<u64> {
        let ascending = self.entries.iter().find(|entry| !entry.straggler).map(|entry| entry.first);
        [ascending, self.stragglers.first().copied()].into_iter().flatten().min()
    }

    fn forget_front(&mut self) {
        if let Some(entry) = self.entries.pop_front()
            && entry.straggler
        {
            self.stragglers.remove(&entry.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(order: &[u64]) -> Unacknowledged {
        let mut found = Unacknowledged::default();
        for &first in order {
            found.delivered(first);
        }
        found
    }

    #[test]
    fn what_is_popped_in_another_order_counts_when_all_before_it_is() {
        let mut found = delivered(&[0, 1, 2]);
        found.done(1);
        assert_eq!(found.lowest(), Some(0));
        found.done(0);
        assert_eq!(found.lowest(), Some(2));
        found.done(2);
        assert_eq!(found.lowest(), None);
    }

    #[test]
    fn an_application_acknowledges_what_it_got_before_and_not_what_came_later() {
        let mut found = delivered(&[0, 3, 1, 4]);
        found.done_through(3);
        assert_eq!(found.lowest(), Some(1), "it was delivered after 3");
        found.done_through(4);
        assert_eq!(found.lowest(), None);
        found.done_through(4);
    }
}
