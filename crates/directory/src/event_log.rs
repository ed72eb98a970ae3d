//! The last events of all queues, with the time of day, for the API.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use quelea_elastic::directory::Event;

/// Events that are kept, of all queues together; each queue's own are in the state machine.
const EVENTS_MAX: usize = 4_096;

/// The log.
pub(crate) struct EventLog {
    last: u64,
    kept: VecDeque<Noted>,
}

/// An event with its place and time.
pub(crate) struct Noted {
    /// Counts all of this directory's events from 1.
    pub(crate) number: u64,
    pub(crate) unix_ms: u64,
    pub(crate) event: Event,
}

impl EventLog {
    pub(crate) const fn new() -> Self {
        Self { last: 0, kept: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, event: Event) {
        let Event { queue, generation, kind, subject, reason, .. } = &event;
        tracing::info!(queue, generation, kind, subject, reason, "elastic");
        self.last += 1;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.kept.push_back(Noted { number: self.last, unix_ms, event });
        if self.kept.len() > EVENTS_MAX {
            self.kept.pop_front();
        }
    }

    /// Those with a number above `after`, of one queue or all, oldest first.
    pub(crate) fn after(&self, queue: Option<&str>, after: u64) -> impl Iterator<Item = &Noted> {
        let wanted = move |noted: &&Noted| {
            noted.number > after && queue.is_none_or(|queue| noted.event.queue == queue)
        };
        self.kept.iter().filter(wanted)
    }
}
