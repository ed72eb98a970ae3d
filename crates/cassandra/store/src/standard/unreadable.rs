//! Messages whose rows cannot be read, since a later version has written them, say. They stay, and the others are received as if they
//! were not there: the head does not wait for them. When they can be read they are received, or found by the sweep.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::entry::Entry;

/// Of one queue; the longest known are read again first.
const UNREADABLE_MAX: usize = 1_000;

/// After so long one is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Those of a queue.
#[derive(Debug, Default)]
pub(crate) struct UnreadableMessages {
    /// In the order in which they were found.
    found: VecDeque<(Uuid, Instant)>,
}

impl UnreadableMessages {
    /// Its row could not be read now.
    pub(crate) fn add(&mut self, message: Uuid, now: Instant) {
        self.found.retain(|(known, _)| *known != message);
        if self.found.len() == UNREADABLE_MAX {
            self.found.pop_front();
        }
        self.found.push_back((message, now));
    }

    /// Takes the entries of those away that were found a while ago at most. Returns how many.
    pub(crate) fn leave_out(&mut self, entries: &mut Vec<Entry>, now: Instant) -> usize {
        self.found.retain(|(_, at)| now.saturating_duration_since(*at) < READ_AGAIN_AFTER);
        if self.found.is_empty() {
            return 0;
        }
        let before = entries.len();
        entries.retain(|entry| !self.found.iter().any(|(message, _)| *message == entry.message));
        before - entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    fn message(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn they_are_left_out_for_a_minute_and_bounded() {
        let (mut unreadable, began) = (UnreadableMessages::default(), Instant::now());
        for number in 0..=UNREADABLE_MAX {
            unreadable.add(message(number), began);
        }
        let of = |number| Entry { message: message(number), ..entry_for_tests(0, 0) };
        let mut entries = vec![of(0), of(1), of(UNREADABLE_MAX + 1)];
        assert_eq!(unreadable.leave_out(&mut entries, began), 1);
        assert_eq!(entries, [of(0), of(UNREADABLE_MAX + 1)]);
        let mut entries = vec![of(1)];
        assert_eq!(unreadable.leave_out(&mut entries, began + READ_AGAIN_AFTER), 0);
        assert!(unreadable.found.is_empty());
    }
}
