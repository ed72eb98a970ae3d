//! The partitions of a queue's messages: which there are, what is left in each, and where the next message goes.

use std::collections::BTreeMap;

use crate::limits::{
    DEDUPLICATION_MS, DEDUPLICATION_SLACK_MS, LOADED_SEGMENTS_MAX, SEGMENT_AGE_MS_MAX,
    SEGMENT_BYTES_MAX, SEGMENT_ROWS_MAX, SEGMENTS_MAX,
};
use crate::message::SegmentKey;

/// Partitions that one look for such as can go looks at.
const LOOKED_AT_MAX: usize = 256;

/// A partition and the numbers of it that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRange {
    /// The partition.
    pub key: SegmentKey,
    /// The last number of it that counts.
    pub last: u64,
    /// When the last message may have come into it, in ms since 1970.
    pub ended_at_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    epoch: u64,
    last: u64,
    ended_at_ms: u64,
    /// Messages of it that are in the window.
    held: usize,
}

/// All of a queue, by their first numbers.
#[derive(Debug)]
pub(crate) struct Segments {
    epoch: u64,
    segments: BTreeMap<u64, Segment>,
    /// The last number that counts of each earlier epoch, and how many partitions it still has.
    seals: BTreeMap<u64, (u64, usize)>,
    /// What is in the partition that messages come into.
    rows: usize,
    bytes: usize,
    /// When that one was begun, in ms since 1970.
    began_at_ms: u64,
    /// The next look for such as can go begins here.
    look_from: u64,
    /// The first number of a partition that may be listed, though the batch that was to begin it was taken back: the next one
    /// begins it anew, so that refused batches do not leave a listing each.
    taken_back: Option<u64>,
}

impl Segments {
    pub(crate) fn new(epoch: u64, sealed: &BTreeMap<u64, u64>, ranges: &[SegmentRange]) -> Self {
        let mut seals: BTreeMap<u64, (u64, usize)> =
            sealed.iter().map(|(epoch, seal)| (*epoch, (*seal, 0))).collect();
        let mut segments = BTreeMap::new();
        for SegmentRange { key, last, ended_at_ms } in ranges {
            if let Some((_, count)) = seals.get_mut(&key.epoch) {
                *count += 1;
            }
            let segment =
                Segment { epoch: key.epoch, last: *last, ended_at_ms: *ended_at_ms, held: 0 };
            segments.insert(key.first, segment);
        }
        Self {
            epoch,
            segments,
            seals,
            rows: SEGMENT_ROWS_MAX,
            bytes: 0,
            began_at_ms: 0,
            look_from: 0,
            taken_back: None,
        }
    }

    /// Returns what the owner's row says of earlier epochs.
    pub(crate) fn sealed(&self) -> BTreeMap<u64, u64> {
        self.seals.iter().map(|(epoch, (seal, _))| (*epoch, *seal)).collect()
    }

    /// Returns the first partition in the list; while there is none, what may come first.
    pub(crate) fn oldest(&self) -> SegmentKey {
        let first = self.segments.first_key_value();
        let key = first.map(|(first, segment)| SegmentKey { epoch: segment.epoch, first: *first });
        key.unwrap_or(SegmentKey { epoch: self.epoch, first: 0 })
    }

    pub(crate) fn seals(&self) -> usize {
        self.seals.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.segments.len() >= SEGMENTS_MAX
    }

    /// Chooses the partition of a batch whose first message has that number. Returns it, and
    /// whether it is a new one. Then [`Segments::room`] returns how many rows and bytes it has room
    /// for.
    pub(crate) fn place(&mut self, first: u64, bytes: usize, now_ms: u64) -> (SegmentKey, bool) {
        let current = self.segments.last_entry().filter(|entry| entry.get().epoch == self.epoch);
        let fits = self.rows < SEGMENT_ROWS_MAX
            && now_ms.abs_diff(self.began_at_ms) < SEGMENT_AGE_MS_MAX
            && (self.rows == 0 || self.bytes.saturating_add(bytes) <= SEGMENT_BYTES_MAX);
        if let Some(current) = current.filter(|_| fits) {
            return (SegmentKey { epoch: self.epoch, first: *current.key() }, false);
        }
        let fresh = Segment { epoch: self.epoch, last: first - 1, ended_at_ms: now_ms, held: 0 };
        let first = self.taken_back.take().unwrap_or(first);
        self.segments.insert(first, fresh);
        (self.rows, self.bytes, self.began_at_ms) = (0, 0, now_ms);
        (SegmentKey { epoch: self.epoch, first }, true)
    }

    /// Returns how many rows and bytes the current partition has room for.
    pub(crate) const fn room(&self) -> (usize, usize) {
        (SEGMENT_ROWS_MAX - self.rows, SEGMENT_BYTES_MAX.saturating_sub(self.bytes))
    }

    /// A batch was put into the current partition.
    pub(crate) fn put(&mut self, rows: usize, bytes: usize) {
        self.rows += rows;
        self.bytes += bytes;
    }

    /// A batch was not put into the current partition after all. One that it was to begin is to be begun by the next batch.
    pub(crate) fn take_back(&mut self, key: SegmentKey, is_new: bool, rows: usize, bytes: usize) {
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
        if is_new {
            self.segments.remove(&key.first);
            self.rows = SEGMENT_ROWS_MAX;
            self.taken_back = Some(key.first);
        }
    }

    /// A batch of the current partition was acknowledged.
    pub(crate) fn acknowledged(&mut self, key: SegmentKey, last: u64, now_ms: u64) {
        if let Some(segment) = self.segments.get_mut(&key.first) {
            segment.last = segment.last.max(last);
            segment.ended_at_ms = now_ms;
        }
    }

    /// Returns the partition of a message that counts.
    pub(crate) fn key_of(&self, number: u64) -> Option<SegmentKey> {
        let (first, segment) = self.segments.range(..=number).next_back()?;
        (number <= segment.last).then_some(SegmentKey { epoch: segment.epoch, first: *first })
    }

    pub(crate) fn hold(&mut self, key: SegmentKey) {
        if let Some(segment) = self.segments.get_mut(&key.first) {
            segment.held += 1;
        }
    }

    pub(crate) fn release(&mut self, key: SegmentKey) {
        if let Some(segment) = self.segments.get_mut(&key.first) {
            segment.held = segment.held.saturating_sub(1);
        }
    }

    /// Returns the next partitions with numbers beyond `after`, up to `to`, each with the numbers
    /// that are wanted of it.
    pub(crate) fn beyond(&self, after: u64, to: u64) -> Vec<(SegmentKey, u64, u64)> {
        // The one that `after` is in, and those behind it.
        let from = self.segments.range(..=after).next_back().map_or(0, |(first, _)| *first);
        let wanted = self.segments.range(from..=to).filter(|(_, segment)| segment.last > after);
        let wanted = wanted.map(|(first, segment)| {
            let key = SegmentKey { epoch: segment.epoch, first: *first };
            (key, after.max(first.saturating_sub(1)), segment.last.min(to))
        });
        wanted.take(LOADED_SEGMENTS_MAX).collect()
    }

    /// Returns the partitions whose deduplication ids may still count.
    pub(crate) fn with_deduplications(&self, now_ms: u64) -> Vec<(SegmentKey, u64)> {
        let counts = |segment: &Segment| {
            segment.ended_at_ms + DEDUPLICATION_MS + DEDUPLICATION_SLACK_MS > now_ms
        };
        let counted = self.segments.iter().filter(|(_, segment)| counts(segment));
        counted
            .map(|(first, segment)| {
                (SegmentKey { epoch: segment.epoch, first: *first }, segment.last)
            })
            .collect()
    }

    /// Forgets partitions of which nothing is left, and returns them. All up to `loaded_to` was looked at. One call looks at
    /// some partitions, the next at those behind them, and so round.
    pub(crate) fn take_empty(&mut self, loaded_to: u64, now_ms: u64) -> Vec<(SegmentKey, u64)> {
        let current = self.segments.last_key_value().map_or(0, |(first, _)| *first);
        let is_empty = |segment: &Segment| {
            segment.held == 0
                && segment.last <= loaded_to
                && segment.ended_at_ms + DEDUPLICATION_MS + DEDUPLICATION_SLACK_MS <= now_ms
        };
        let mut empty: Vec<u64> = Vec::new();
        let (mut looked_at, mut look_from) = (0, 0);
        for (first, segment) in self.segments.range(self.look_from..) {
            if looked_at == LOOKED_AT_MAX {
                look_from = *first;
                break;
            }
            looked_at += 1;
            if *first != current && is_empty(segment) {
                empty.push(*first);
            }
        }
        self.look_from = look_from;
        let mut taken = Vec::with_capacity(empty.len());
        for first in empty {
            let Some(segment) = self.segments.remove(&first) else { continue };
            taken.push((SegmentKey { epoch: segment.epoch, first }, segment.last));
            if let Some((_, count)) = self.seals.get_mut(&segment.epoch) {
                *count -= 1;
                if *count == 0 {
                    self.seals.remove(&segment.epoch);
                }
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_MS: u64 = DEDUPLICATION_MS + DEDUPLICATION_SLACK_MS;

    const fn key(epoch: u64, first: u64) -> SegmentKey {
        SegmentKey { epoch, first }
    }

    fn segments() -> Segments {
        let range = |epoch, first, last| SegmentRange {
            key: SegmentKey { epoch, first },
            last,
            ended_at_ms: 100,
        };
        let ranges = [range(1, 1, 4), range(1, 5, 7), range(2, 9, 12)];
        Segments::new(3, &BTreeMap::from([(1, 7), (2, 12)]), &ranges)
    }

    #[test]
    fn what_is_wanted_of_each_partition_counts() {
        let segments = segments();
        assert_eq!(
            segments.beyond(2, 20),
            [(key(1, 1), 2, 4), (key(1, 5), 4, 7), (key(2, 9), 8, 12)]
        );
        assert_eq!(segments.beyond(7, 10), [(key(2, 9), 8, 10)]);
        assert_eq!(segments.beyond(12, 12), []);
        assert_eq!(segments.key_of(8), None, "between the seal and the next epoch");
        assert_eq!(segments.key_of(7), Some(key(1, 5)));
    }

    #[test]
    fn an_empty_partition_goes_when_no_deduplication_id_of_it_counts() {
        let mut segments = segments();
        segments.hold(SegmentKey { epoch: 1, first: 5 });
        assert_eq!(segments.take_empty(12, 100 + LONG_MS - 1), []);
        let gone = segments.take_empty(12, 100 + LONG_MS);
        assert_eq!(gone, [(SegmentKey { epoch: 1, first: 1 }, 4)], "the last one stays");
        assert_eq!(segments.oldest(), key(1, 5));
        segments.release(SegmentKey { epoch: 1, first: 5 });
        assert_eq!(segments.take_empty(6, 100 + LONG_MS), [], "it was not looked at");
        assert_eq!(segments.take_empty(12, 100 + LONG_MS).len(), 1);
        assert_eq!(segments.sealed(), BTreeMap::from([(2, 12)]));
        assert_eq!(segments.oldest(), key(2, 9));
        assert_eq!(Segments::new(3, &BTreeMap::new(), &[]).oldest(), key(3, 0));
    }

    #[test]
    fn partitions_behind_many_that_stay_go_too() {
        let range = |first| SegmentRange { key: key(1, first), last: first, ended_at_ms: 100 };
        let count = LOOKED_AT_MAX as u64 + 20;
        let ranges: Vec<SegmentRange> = (1..=count).map(range).collect();
        let mut segments = Segments::new(2, &BTreeMap::from([(1, count)]), &ranges);
        for first in 1..=LOOKED_AT_MAX as u64 {
            segments.hold(key(1, first));
        }
        assert_eq!(segments.take_empty(count, 100 + LONG_MS), []);
        assert_eq!(segments.take_empty(count, 100 + LONG_MS).len(), 19, "all but the current one");
        segments.release(key(1, 7));
        assert_eq!(segments.take_empty(count, 100 + LONG_MS), [(key(1, 7), 7)]);
    }

    #[test]
    fn a_partition_takes_messages_for_a_day() {
        let mut segments = segments();
        let (day, _) = segments.place(13, 10, 200);
        segments.put(1, 10);
        assert_eq!(segments.place(14, 10, 200 + SEGMENT_AGE_MS_MAX - 1), (day, false));
        segments.put(1, 10);
        // It is listed for some weeks from its begin only.
        let next = segments.place(15, 10, 200 + SEGMENT_AGE_MS_MAX);
        assert_eq!(next, (key(3, 15), true));
        segments.put(1, 10);
        assert_eq!(segments.place(16, 10, 201 + SEGMENT_AGE_MS_MAX), (key(3, 15), false));
        assert!(segments.place(16, 10, 0).1, "a clock that went back by a day says nothing");
    }

    #[test]
    fn what_was_taken_back_leaves_its_room() {
        let mut segments = segments();
        let (key, is_new) = segments.place(13, 10, 200);
        segments.put(2, 20);
        segments.take_back(key, is_new, 2, 20);
        assert_eq!(segments.place(13, 10, 200), (key, true), "it is begun again");
        segments.put(SEGMENT_ROWS_MAX, 10);
        segments.take_back(key, false, 1, 10);
        assert_eq!(segments.place(600, 10, 200), (key, false));
    }

    #[test]
    fn batches_that_are_taken_back_one_after_the_other_leave_one_listing() {
        let mut segments = segments();
        let (begun, _) = segments.place(13, 10, 200);
        for first in 14..20 {
            segments.take_back(begun, true, 1, 10);
            assert_eq!(segments.place(first, 10, 200), (begun, true), "it is listed as before");
        }
        segments.put(1, 10);
        segments.acknowledged(begun, 19, 200);
        assert_eq!((segments.key_of(19), segments.key_of(12)), (Some(begun), Some(key(2, 9))));
        assert_eq!(segments.place(20, 10, 200), (begun, false));
    }

    #[test]
    fn a_partition_takes_so_many_rows_and_bytes() {
        let mut segments = segments();
        let (key, is_new) = segments.place(13, 10, 200);
        assert_eq!((key, is_new), (SegmentKey { epoch: 3, first: 13 }, true));
        segments.put(SEGMENT_ROWS_MAX - 1, 10);
        assert_eq!(segments.place(600, 10, 200), (key, false));
        assert!(segments.place(600, SEGMENT_BYTES_MAX, 200).1);
        segments.put(SEGMENT_ROWS_MAX, 10);
        assert!(segments.place(1_200, 10, 200).1);
    }
}
