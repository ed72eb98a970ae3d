//! What happens next: events by their virtual time, and those of one time in the order in which they were made.

use std::collections::BTreeMap;

/// Events to come. Time is in microseconds.
#[derive(Debug)]
pub struct Agenda<E> {
    now_us: u64,
    made: u64,
    /// By their time and their number.
    events: BTreeMap<(u64, u64), E>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Agenda<E> {
    /// Returns an agenda without events; it is 0 µs.
    #[must_use]
    pub const fn new() -> Self {
        Self { now_us: 0, made: 0, events: BTreeMap::new() }
    }

    /// Returns the time of the last event that was taken, or to which it was found that there is
    /// none.
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
        self.events.insert((at_us.max(self.now_us), self.made), event);
    }

    /// Returns when the next event is due.
    #[must_use]
    pub fn next_us(&self) -> Option<u64> {
        self.events.first_key_value().map(|((at_us, _), _)| *at_us)
    }

    /// Takes the next event that is due by `until_us`; else the time is `until_us` then.
    pub fn next_until(&mut self, until_us: u64) -> Option<E> {
        let Some(at_us) = self.next_us().filter(|at_us| *at_us <= until_us) else {
            self.now_us = self.now_us.max(until_us);
            return None;
        };
        self.now_us = at_us;
        self.events.pop_first().map(|(_, event)| event)
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
