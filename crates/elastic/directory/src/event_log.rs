//! The last events of all queues, with the time of day, for the API.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use quelea_elastic_core::directory::Event;

/// Events that are kept, of all queues together; each queue's own are in the state machine.
const EVENTS_MAX: usize = 4_096;

/// The log.
pub(crate) struct EventLog {
    last: u64,
    kept: VecDeque<LoggedEvent>,
}

/// An event with its place and time.
pub(crate) struct LoggedEvent {
    /// Above those of all events before, of this directory's earlier lives and other directories too, as far as
    /// their clocks agree: microseconds since 1970 when it happened, or one more than the last one.
    pub(crate) number: u64,
    pub(crate) unix_ms: u64,
    pub(crate) event: Event,
}

impl EventLog {
    pub(crate) const fn new() -> Self {
        Self { last: 0, kept: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, event: Event) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.add_at(u64::try_from(since.as_micros()).unwrap_or(u64::MAX), event);
    }

    fn add_at(&mut self, unix_us: u64, event: Event) {
        let Event { queue, generation, kind, subject, reason, .. } = &event;
        tracing::info!(queue, generation, kind, subject, reason, "elastic");
        self.last = unix_us.max(self.last + 1);
        self.kept.push_back(LoggedEvent { number: self.last, unix_ms: unix_us / 1_000, event });
        if self.kept.len() > EVENTS_MAX {
            self.kept.pop_front();
        }
    }

    /// Returns the events with a number above `after`, of one queue or all, oldest first; of more
    /// than `most` the oldest, so that a reader that goes on after the last of them misses none.
    /// Above 0, which no reader has seen, the newest.
    pub(crate) fn after(&self, queue: Option<&str>, after: u64, most: usize) -> Vec<&LoggedEvent> {
        let wanted = move |noted: &&LoggedEvent| {
            noted.number > after && queue.is_none_or(|queue| noted.event.queue == queue)
        };
        let mut found: Vec<_> = self.kept.iter().filter(wanted).collect();
        if after == 0 {
            found.drain(..found.len().saturating_sub(most));
        }
        found.truncate(most);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(queue: &str) -> Event {
        let (subject, reason) = (String::new(), String::new());
        Event {
            queue: queue.to_owned(),
            generation: 0,
            kind: "start",
            subject,
            reason,
            notice: None,
        }
    }

    fn numbers(log: &EventLog, queue: Option<&str>, after: u64, most: usize) -> Vec<u64> {
        log.after(queue, after, most).iter().map(|noted| noted.number).collect()
    }

    #[test]
    fn numbers_grow_over_lives_and_whatever_the_clock_does() {
        let mut log = EventLog::new();
        // Twice in a microsecond, and set back.
        for unix_us in [5_000_000, 5_000_000, 4_000_000, 6_000_000] {
            log.add_at(unix_us, event("q"));
        }
        assert_eq!(numbers(&log, None, 0, 9), [5_000_000, 5_000_001, 5_000_002, 6_000_000]);
        let mut next_life = EventLog::new();
        next_life.add_at(6_000_500, event("q"));
        assert_eq!(numbers(&next_life, None, 6_000_000, 9), [6_000_500]);
    }

    #[test]
    fn a_reader_of_what_is_new_gets_all_of_it_in_pieces() {
        let mut log = EventLog::new();
        for unix_us in 1..=10 {
            log.add_at(unix_us, event(if unix_us % 2 == 0 { "even" } else { "odd" }));
        }
        assert_eq!(numbers(&log, None, 0, 3), [8, 9, 10], "who knows nothing gets the newest");
        assert_eq!(numbers(&log, None, 2, 3), [3, 4, 5]);
        assert_eq!(numbers(&log, Some("even"), 4, 2), [6, 8]);
        assert_eq!(numbers(&log, Some("even"), 8, 2), [10]);
        assert!(numbers(&log, None, 10, 3).is_empty());
    }

    #[test]
    fn so_many_are_kept() {
        let mut log = EventLog::new();
        (1..=EVENTS_MAX as u64 + 1).for_each(|unix_us| log.add_at(unix_us, event("q")));
        assert_eq!(numbers(&log, None, 1, 1), [2]);
        assert_eq!(log.after(None, 0, usize::MAX).len(), EVENTS_MAX);
    }
}
