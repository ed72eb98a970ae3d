//! Which message may be received next: only the oldest of a group, and none behind one that is delayed or in flight.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

/// A group's place among the others: the number of its oldest message, or that of the queue's newest when one of its
/// messages came back; of those that came back behind the same one, which was first.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Group {
    ready: BTreeSet<u64>,
    /// Messages whose delay is not over, and those that are on their way elsewhere.
    delayed: BTreeSet<u64>,
    in_flight: BTreeSet<u64>,
    /// Where it stands among the others, if it may be received from.
    head: Option<Place>,
    /// Where it stands since one of its messages came back, until it is received from again.
    came_back: Option<Place>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.delayed.is_empty() && self.in_flight.is_empty()
    }

    /// Returns the message that is next: behind none that is delayed or in flight, but those up to
    /// `received`, which the same receive has.
    fn next(&self, received: Option<u64>) -> Option<u64> {
        let first = *self.ready.first()?;
        let from = received.map_or(0, |number| number + 1);
        let waits = from > first
            || self.in_flight.range(from..first).next().is_some()
            || self.delayed.first().is_some_and(|delayed| *delayed < first);
        (!waits).then_some(first)
    }
}

/// The groups of a queue's messages that are in memory.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: FxHashMap<u64, Group>,
    /// The groups that may be received from, by their places.
    heads: BTreeMap<Place, u64>,
    newest: u64,
    /// Messages that came back so far.
    returns: u64,
}

impl Groups {
    /// Returns the message that is to be received next. `received` is the last one that the same
    /// receive has, with its group: the receive goes on with that group as long as it can.
    pub(crate) fn next(&self, received: Option<(u64, u64)>) -> Option<u64> {
        if let Some((group, number)) = received
            && let Some(next) = self.groups.get(&group).and_then(|state| state.next(Some(number)))
        {
            return Some(next);
        }
        let group = self.heads.first_key_value()?.1;
        self.groups.get(group)?.next(None)
    }

    pub(crate) fn add_ready(&mut self, group: u64, number: u64) {
        self.newest = self.newest.max(number);
        self.change(group, |state| {
            state.delayed.remove(&number);
            state.in_flight.remove(&number);
            state.ready.insert(number);
        });
    }

    pub(crate) fn add_delayed(&mut self, group: u64, number: u64) {
        self.newest = self.newest.max(number);
        self.change(group, |state| {
            state.ready.remove(&number);
            state.in_flight.remove(&number);
            state.delayed.insert(number);
        });
    }

    /// A message was received.
    pub(crate) fn mark_in_flight(&mut self, group: u64, number: u64) {
        self.change(group, |state| {
            state.ready.remove(&number);
            state.in_flight.insert(number);
            state.came_back = None;
        });
    }

    /// A message that was in flight is visible again: its group stands behind all that are there, so that one that fails
    /// time and again is in nobody's way.
    pub(crate) fn mark_returned(&mut self, group: u64, number: u64) {
        self.returns += 1;
        let place = (self.newest, self.returns);
        self.change(group, |state| {
            state.in_flight.remove(&number);
            state.ready.insert(number);
            state.came_back = Some(place);
        });
    }

    pub(crate) fn remove(&mut self, group: u64, number: u64) {
        self.change(group, |state| {
            state.ready.remove(&number);
            state.delayed.remove(&number);
            state.in_flight.remove(&number);
        });
    }

    /// Changes a group and brings its place among the heads up to date.
    fn change(&mut self, group: u64, change: impl FnOnce(&mut Group)) {
        let state = self.groups.entry(group).or_default();
        if let Some(head) = state.head.take() {
            self.heads.remove(&head);
        }
        change(state);
        if state.is_empty() {
            self.groups.remove(&group);
            return;
        }
        let head = state.next(None).map(|number| (number, 0));
        state.head = head.map(|head| state.came_back.map_or(head, |place| place.max(head)));
        if let Some(head) = state.head {
            self.heads.insert(head, group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(messages: &[(u64, u64)]) -> Groups {
        let mut groups = Groups::default();
        messages.iter().for_each(|(number, group)| groups.add_ready(*group, *number));
        groups
    }

    #[test]
    fn a_group_waits_while_one_of_its_messages_is_in_flight() {
        let mut groups = groups(&[(1, 7), (2, 7), (3, 8)]);
        assert_eq!(groups.next(None), Some(1));
        groups.mark_in_flight(7, 1);
        assert_eq!(groups.next(None), Some(3), "the other group's");
        assert_eq!(groups.next(Some((7, 1))), Some(2), "the same receive may take it");
        groups.mark_in_flight(8, 3);
        assert_eq!(groups.next(None), None);
        groups.remove(7, 1);
        assert_eq!(groups.next(None), Some(2));
    }

    #[test]
    fn only_what_stands_behind_a_message_in_flight_waits() {
        let mut groups = groups(&[(1, 7), (2, 7), (3, 7)]);
        groups.mark_in_flight(7, 1);
        groups.mark_in_flight(7, 2);
        groups.mark_returned(7, 1);
        assert_eq!(groups.next(None), Some(1));
        groups.mark_in_flight(7, 1);
        assert_eq!(groups.next(Some((7, 1))), None, "the second is another receive's");
        groups.mark_returned(7, 2);
        assert_eq!(groups.next(Some((7, 1))), Some(2));
        assert_eq!(groups.next(None), None);
    }

    #[test]
    fn a_delayed_message_holds_up_those_behind_it_only() {
        let mut groups = groups(&[(1, 7), (3, 7)]);
        groups.add_delayed(7, 2);
        assert_eq!(groups.next(None), Some(1));
        groups.mark_in_flight(7, 1);
        assert_eq!(groups.next(Some((7, 1))), None, "the third waits for the second");
        groups.remove(7, 1);
        assert_eq!(groups.next(None), None);
        groups.add_ready(7, 2);
        assert_eq!(groups.next(None), Some(2));
    }

    #[test]
    fn a_group_whose_message_came_back_stands_behind_those_that_are_there() {
        let mut groups = groups(&[(1, 7), (2, 7), (3, 8), (4, 9)]);
        groups.mark_in_flight(7, 1);
        groups.mark_in_flight(8, 3);
        groups.mark_returned(8, 3);
        groups.mark_returned(7, 1);
        for (group, number) in [(9, 4), (8, 3), (7, 1)] {
            assert_eq!(groups.next(None), Some(number));
            groups.mark_in_flight(group, number);
        }
        groups.remove(7, 1);
        assert_eq!(groups.next(None), Some(2), "it has its old place again");
    }

    #[test]
    fn groups_without_messages_are_forgotten() {
        let mut groups = groups(&[(1, 7), (2, 8)]);
        groups.mark_in_flight(7, 1);
        groups.remove(7, 1);
        groups.remove(8, 2);
        assert!(groups.groups.is_empty() && groups.heads.is_empty());
    }
}
