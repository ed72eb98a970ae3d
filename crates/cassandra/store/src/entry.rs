//! An entry of a queue's index: BDQS's tuple (T, I), with what its reader needs. Its row is inserted once and deleted once;
//! a message that moves gets a new one.

use uuid::Uuid;

use crate::bucket::Bucket;
use crate::limits::GRACE_MS;

/// A row of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// T: when the message may be received, in µs since 1970.
    pub(crate) visible_at_us: i64,
    /// I.
    pub(crate) message: Uuid,
    /// The partition it is in.
    pub(crate) bucket: Bucket,
    /// The partition that its message's body is in.
    pub(crate) body: Bucket,
    /// The body's size.
    pub(crate) bytes: i32,
    /// How often the message has been received before it becomes visible here.
    pub(crate) receive_count: i32,
    /// When it was first received, in ms since 1970; 0: never.
    pub(crate) first_received_at_ms: i64,
    /// Its message's group, as a number; 0: it has none.
    pub(crate) group: i64,
    /// The timestamp of its row. Each entry of a message has a larger one than those before it, whatever the clocks of
    /// front-ends say, and its row is deleted with the next larger: so a delete reaches what it means, and nothing later.
    pub(crate) written_at_us: i64,
}

impl Entry {
    /// Returns the body's size, as one adds it up.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bytes.max(0).unsigned_abs() as usize
    }

    /// Returns the timestamp that deletes its row.
    pub(crate) fn deleted_at_us(&self) -> i64 {
        self.written_at_us.saturating_add(1)
    }

    /// Returns the entry of a message that was taken and reached nobody: it is visible at once, and
    /// was not received.
    pub(crate) fn released(&self, now_us: i64, bucket: Bucket) -> Self {
        let receive_count = self.receive_count.saturating_sub(1).max(0);
        Self {
            visible_at_us: now_us,
            bucket,
            written_at_us: self.next_written_at_us(now_us),
            receive_count,
            first_received_at_ms: if receive_count == 0 { 0 } else { self.first_received_at_ms },
            ..*self
        }
    }

    /// Returns the entry that replaces one that was written too late: readers may have passed its
    /// place.
    pub(crate) fn replaced(&self, now_us: i64, place: impl FnOnce(i64) -> Bucket) -> Self {
        let visible_at_us = self.visible_at_us.max(now_us);
        Self {
            visible_at_us,
            bucket: place(visible_at_us),
            written_at_us: self.next_written_at_us(now_us),
            ..*self
        }
    }

    /// Returns whether readers may have passed its place before it was written: it took long, or
    /// its time is long ago.
    pub(crate) fn is_late(&self, now_us: i64, was_slow: bool) -> bool {
        let passed_us = now_us.saturating_sub(self.visible_at_us);
        (was_slow && passed_us >= 0) || passed_us > (GRACE_MS * 500) as i64
    }

    /// Returns the newer one of two that lead to one body, with what both know of receptions.
    pub(crate) fn newer_of(&self, other: &Self) -> Self {
        let newer = if other.written_at_us > self.written_at_us { other } else { self };
        let first = [self.first_received_at_ms, other.first_received_at_ms];
        let first = first.into_iter().filter(|at_ms| *at_ms != 0).min();
        Self {
            receive_count: self.receive_count.max(other.receive_count),
            first_received_at_ms: first.unwrap_or_default(),
            ..*newer
        }
    }

    /// Returns the timestamp of the entry that replaces it.
    pub(crate) fn next_written_at_us(&self, now_us: i64) -> i64 {
        now_us.max(self.written_at_us.saturating_add(2))
    }
}

/// An entry, as far as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedEntry {
    pub(crate) bucket: Bucket,
    pub(crate) visible_at_us: i64,
    pub(crate) message: Uuid,
    /// The partition of its message's body.
    pub(crate) body: Option<Bucket>,
    pub(crate) receive_count: i32,
    pub(crate) written_at_us: i64,
    pub(crate) group: i64,
}

impl CountedEntry {
    /// Returns what names its row.
    pub(crate) fn row(self) -> Option<Entry> {
        Some(Entry {
            visible_at_us: self.visible_at_us,
            message: self.message,
            bucket: self.bucket,
            body: self.body?,
            bytes: 0,
            receive_count: self.receive_count,
            first_received_at_ms: 0,
            group: self.group,
            written_at_us: self.written_at_us,
        })
    }
}

#[cfg(test)]
pub(crate) fn entry_for_tests(visible_at_us: i64, number: u128) -> Entry {
    Entry {
        visible_at_us,
        message: Uuid::from_u128(number),
        bucket: Bucket::holding(visible_at_us, 3),
        body: Bucket::holding(visible_at_us, 3),
        bytes: 100,
        receive_count: 0,
        first_received_at_ms: 0,
        group: 0,
        written_at_us: visible_at_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const NOW: i64 = 1_700_000_000 * SECOND;

    #[test]
    fn a_message_that_reached_nobody_was_not_received() {
        let first = Entry { receive_count: 1, first_received_at_ms: 7, ..entry_for_tests(NOW, 1) };
        let bucket = Bucket::holding(NOW, 0);
        let back = first.released(NOW, bucket);
        assert_eq!((back.receive_count, back.first_received_at_ms), (0, 0));
        assert_eq!((back.visible_at_us, back.bucket), (NOW, bucket));
        assert!(back.written_at_us > first.deleted_at_us());
        let third = Entry { receive_count: 3, ..first };
        let back = third.released(NOW, bucket);
        assert_eq!((back.receive_count, back.first_received_at_ms), (2, 7));
    }

    #[test]
    fn only_what_readers_may_have_passed_is_late() {
        let entry = entry_for_tests(NOW, 1);
        assert!(!entry.is_late(NOW + SECOND, false));
        assert!(entry.is_late(NOW + SECOND, true));
        assert!(!entry.is_late(NOW - 1, true), "it is not yet visible");
        assert!(entry.is_late(NOW + 6 * SECOND, false), "the clock has jumped");
    }

    #[test]
    fn what_replaces_an_entry_outlives_its_deletion() {
        let entry = entry_for_tests(NOW, 1);
        let new = entry.replaced(NOW + SECOND, |at_us| Bucket::holding(at_us, 0));
        assert_eq!(new.visible_at_us, NOW + SECOND);
        assert!(new.written_at_us > entry.deleted_at_us());
        let delayed = entry.replaced(NOW - SECOND, |at_us| Bucket::holding(at_us, 0));
        assert_eq!(delayed.visible_at_us, NOW);
        assert!(delayed.written_at_us > entry.deleted_at_us());
    }

    #[test]
    fn a_timestamp_at_its_end_does_not_overflow() {
        let entry = Entry { written_at_us: i64::MAX, ..entry_for_tests(NOW, 1) };
        assert_eq!((entry.deleted_at_us(), entry.next_written_at_us(0)), (i64::MAX, i64::MAX));
    }
}
