//! Where a queue's head is, as one front-end knows it: how far it has read, and which buckets there are.
//!
//! Consumed messages leave deleted rows behind, and a read that passes thousands of them is slow. So most reads begin a
//! little before the place that the last one came to. Entries of other front-ends may still arrive before that place, since
//! clocks differ and writes take time: every two seconds a read goes some seconds back, and now and then to the
//! low-water mark. Entries that are found and cannot be had now are left behind, and read again a little later. Behind the mark,
//! which is stored and only moves forward, nothing lives: no front-end confirms an entry that it inserts that far in the past.

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::standard::directory::Directory;
use crate::standard::heard_buckets::HeardBuckets;
use crate::standard::left_behind::LeftBehind;
use crate::standard::start::{OVERLAP_US, READ_BACK_US, Reach, Start};

/// How often a read goes some seconds back, in µs.
const READ_BACK_EVERY_US: i64 = 2_000_000;

/// A read after a longer pause goes back, too, in µs: it says of an idle queue that nothing is there, of what was written late either.
const READ_BACK_AFTER_US: i64 = 450_000;

/// By how much the mark has to have moved to be stored again, in µs: by the queue's owner among the front-ends (by rendezvous
/// hashing), and by the others, in case the owner does not poll the queue.
const MARK_STEP_US: i64 = 10_000_000;
const MARK_STEP_OF_OTHERS_US: i64 = 30_000_000;

/// How old the stored mark may be as it was read, in µs. It matters to a front-end only that has not read for a while: each moves
/// one of its own.
const MARK_AGE_US_MAX: i64 = 60_000_000;

/// What is remembered of a queue's head.
#[derive(Debug, Default)]
pub(crate) struct Head {
    directory: Directory,
    expects_more: bool,
    mark_read_at_us: i64,
    /// Nothing lives before it.
    low_us: i64,
    stored_low_us: i64,
    /// So far it was read.
    place_us: i64,
    read_at_us: i64,
    read_back_at_us: i64,
    read_fully_at_us: i64,
    /// A full read that came to no end.
    unended: Option<Unended>,
    /// They keep the mark where it is, and not the place.
    pub(crate) left_behind: LeftBehind,
}

/// A full read that goes on in further steps.
#[derive(Clone, Copy, Debug)]
struct Unended {
    /// How far it came, without an entry.
    place_us: i64,
    /// When it began: what came later into the places that it has passed is not known.
    known_at_us: i64,
}

/// What a read has found.
#[derive(Debug, Default)]
pub(crate) struct HeadRead {
    /// Visible entries, the oldest first.
    pub(crate) visible: Vec<Entry>,
    /// When the next one becomes visible, as far as is known.
    pub(crate) next_visible_at_us: Option<i64>,
    /// Everything up to here was seen; `None`: up to the present.
    pub(crate) seen_to_us: Option<i64>,
}

impl Head {
    /// Returns whether the directory has to be read for that read.
    pub(crate) fn wants_directory(&self, start: Start, age_us_max: i64) -> bool {
        self.expects_more
            || !self.directory.is_fresh(start.now_us, age_us_max)
            || !self.directory.covers(start)
    }

    /// These buckets are in use, too.
    pub(crate) fn hear_of(&mut self, heard: HeardBuckets, now_us: i64) {
        self.expects_more |= heard.are_more;
        for bucket in heard.buckets {
            if self.directory.add(bucket) && bucket.start_us() <= now_us {
                self.go_back(bucket);
            }
        }
    }

    /// A bucket was not known that has begun: what is in it may be older than the place, as far as its beginning, or the time when the
    /// directory was read without it.
    fn go_back(&mut self, bucket: Bucket) {
        let unlisted_at_us = self.directory.read_at_us();
        if bucket.start_us() < unlisted_at_us {
            // What was written late may be older than that.
            self.read_back_at_us = 0;
        }
        let since_us = bucket.start_us().max(unlisted_at_us);
        self.place_us = self.place_us.min(since_us);
        if let Some(unended) = &mut self.unended {
            unended.place_us = unended.place_us.min(since_us);
        }
    }

    /// The directory says so.
    pub(crate) fn set_directory(&mut self, directory: Directory, now_us: i64) {
        for bucket in directory.begun_beside(&self.directory, now_us) {
            self.go_back(bucket);
        }
        self.expects_more = false;
        self.directory = directory;
    }

    /// Returns the buckets that are known.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns whether the stored mark has to be read before a full read, since other front-ends
    /// move it.
    pub(crate) fn wants_mark(&self, now_us: i64, fully_every_us: i64) -> bool {
        let is_read = (0..MARK_AGE_US_MAX).contains(&(now_us - self.mark_read_at_us));
        !is_read && self.unended.is_none() && self.is_full_due(now_us, fully_every_us)
    }

    /// Returns the low-water mark, as it is known here.
    pub(crate) fn low_us(&self) -> i64 {
        self.low_us
    }

    /// The mark, as it was stored at that time.
    pub(crate) fn set_stored_low(&mut self, low_us: i64, now_us: i64) {
        self.mark_read_at_us = now_us;
        self.stored_low_us = self.stored_low_us.max(low_us);
        self.low_us = self.low_us.max(low_us);
        // No read begins before the mark: what was left behind there would be looked for again and again.
        self.left_behind.on_mark(self.low_us);
    }

    /// Returns where a read begins that is made now.
    pub(crate) fn start(&self, now_us: i64, fully_every_us: i64) -> Start {
        if let Some(unended) = self.unended {
            let from_us = unended.place_us.max(self.low_us);
            return Start { from_us, now_us, reach: Reach::Full };
        }
        if self.is_full_due(now_us, fully_every_us) {
            return Start { from_us: self.low_us, now_us, reach: Reach::Full };
        }
        let place_us = self.place_us.min(self.left_behind.due_us(now_us).unwrap_or(now_us));
        if self.left_behind.goes_on() {
            return Start { from_us: place_us.max(self.low_us), now_us, reach: Reach::On };
        }
        let is_back_due = now_us - self.read_back_at_us >= READ_BACK_EVERY_US
            || now_us - self.read_at_us >= READ_BACK_AFTER_US;
        let (back_us, reach) =
            if is_back_due { (READ_BACK_US, Reach::Back) } else { (OVERLAP_US, Reach::Near) };
        let from_us = (place_us.min(now_us) - back_us).max(self.low_us);
        Start { from_us, now_us, reach }
    }

    fn is_full_due(&self, now_us: i64, fully_every_us: i64) -> bool {
        !(0..fully_every_us).contains(&(now_us - self.read_fully_at_us))
    }

    /// A read was made, and so many of its visible entries stay: the first of those has this time.
    ///
    /// All is judged by the time at which the read began: an entry that came while it read may be behind it.
    pub(crate) fn on_read(
        &mut self,
        start: Start,
        read: &HeadRead,
        first_left_us: Option<i64>,
        grace_us: i64,
    ) {
        let now_us = start.now_us;
        let seen_to_us = read.seen_to_us.unwrap_or(now_us);
        self.place_us = first_left_us.unwrap_or(seen_to_us).min(seen_to_us);
        self.read_at_us = now_us;
        self.left_behind.on_read(start);
        if matches!(start.reach, Reach::Back | Reach::Full) {
            self.read_back_at_us = now_us;
        }
        if start.reach == Reach::Full {
            self.on_full_read(now_us, seen_to_us, read, grace_us);
        }
    }

    /// What was found at that time, and was to go, is there still.
    pub(crate) fn return_to(&mut self, at_us: i64) {
        self.place_us = self.place_us.min(at_us);
    }

    fn on_full_read(&mut self, now_us: i64, seen_to_us: i64, read: &HeadRead, grace_us: i64) {
        let read_at_us = now_us.min(self.directory.read_at_us());
        let known_at_us =
            self.unended.map_or(read_at_us, |unended| unended.known_at_us.min(read_at_us));
        // Those that were taken are not yet deleted: the mark stays before them until the next time.
        let first_us = read.visible.first().map_or(seen_to_us, |entry| entry.visible_at_us);
        self.low_us = self.low_us.max(first_us.min(seen_to_us).min(known_at_us - grace_us));
        // One that came to no end goes on at once.
        self.unended = (read.seen_to_us.is_some() && read.visible.is_empty())
            .then_some(Unended { place_us: seen_to_us, known_at_us });
        if self.unended.is_none() {
            self.read_fully_at_us = now_us;
        }
    }

    /// Returns the mark, if it is time to store it; it counts as stored then.
    pub(crate) fn mark_to_store(&mut self, is_owner: impl FnOnce() -> bool) -> Option<i64> {
        let moved_us = self.low_us - self.stored_low_us;
        let is_due = moved_us >= MARK_STEP_OF_OTHERS_US || (moved_us >= MARK_STEP_US && is_owner());
        is_due.then(|| {
            self.stored_low_us = self.low_us;
            self.low_us
        })
    }
}

/// Entries of several buckets as one sequence, the oldest first, without what was found twice.
pub(crate) fn merge(found: &mut Vec<Entry>, more: Vec<Entry>) {
    found.extend(more);
    found.sort_by_key(|entry| {
        (entry.visible_at_us, entry.message, std::cmp::Reverse(entry.written_at_us))
    });
    found.dedup_by_key(|entry| (entry.visible_at_us, entry.message, entry.bucket));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    const SECOND: i64 = 1_000_000;
    const NOW: i64 = 1_700_000_000 * SECOND;
    const FULLY: i64 = 10 * SECOND;
    const GRACE: i64 = 10 * SECOND;

    fn read(
        head: &mut Head,
        now_us: i64,
        visible: Vec<Entry>,
        first_left_us: Option<i64>,
    ) -> Start {
        let start = start(head, now_us);
        head.on_read(start, &HeadRead { visible, ..HeadRead::default() }, first_left_us, GRACE);
        start
    }

    /// Begins a read, as one is prepared: the directory is read when it has to be.
    fn start(head: &mut Head, now_us: i64) -> Start {
        let start = head.start(now_us, FULLY);
        if head.wants_directory(start, SECOND) {
            head.set_directory(Directory::new(Vec::new(), start.from_us, now_us), now_us);
        }
        start
    }

    fn start_at(from_us: i64, now_us: i64, reach: Reach) -> Start {
        Start { from_us, now_us, reach }
    }

    #[test]
    fn the_first_read_is_full_and_the_next_begins_where_it_ended() {
        let mut head = Head::default();
        head.set_stored_low(NOW - 3_600 * SECOND, NOW);
        assert_eq!(read(&mut head, NOW, vec![], None).from_us, NOW - 3_600 * SECOND);
        let soon = NOW + READ_BACK_AFTER_US - 1;
        assert_eq!(head.start(soon, FULLY), start_at(NOW - OVERLAP_US, soon, Reach::Near));
        let later = soon + 1;
        assert_eq!(head.start(later, FULLY), start_at(NOW - READ_BACK_US, later, Reach::Back));
    }

    #[test]
    fn the_mark_stays_behind_the_oldest_entry_and_the_grace() {
        let mut head = Head::default();
        let oldest = entry_for_tests(NOW - 60 * SECOND, 1);
        read(&mut head, NOW, vec![oldest], None);
        assert_eq!(head.mark_to_store(|| false), Some(NOW - 60 * SECOND));
        assert_eq!(head.mark_to_store(|| true), None);
        read(&mut head, NOW + 11 * SECOND, vec![], None);
        assert_eq!(head.mark_to_store(|| true), Some(NOW + SECOND));
    }

    #[test]
    fn the_owner_stores_the_mark_more_often_than_the_others() {
        let mut head = Head::default();
        head.set_stored_low(NOW - 29 * SECOND - GRACE, NOW);
        read(&mut head, NOW, vec![], None);
        assert_eq!(head.mark_to_store(|| false), None);
        read(&mut head, NOW + 10 * SECOND, vec![], None);
        assert_eq!(head.mark_to_store(|| false), Some(NOW));
        read(&mut head, NOW + 21 * SECOND, vec![], None);
        assert_eq!(head.mark_to_store(|| true), Some(NOW + 11 * SECOND));
    }

    #[test]
    fn a_read_goes_back_every_two_seconds() {
        let mut head = Head::default();
        for at in [0, 1, 2, 3, 4].map(|number| NOW + number * READ_BACK_EVERY_US / 5) {
            read(&mut head, at, vec![], None);
        }
        assert_eq!(head.start(NOW + READ_BACK_EVERY_US - 1, FULLY).reach, Reach::Near);
        let back = read(&mut head, NOW + READ_BACK_EVERY_US, vec![], None);
        assert_eq!(
            back,
            start_at(
                NOW + READ_BACK_EVERY_US / 5 * 4 - READ_BACK_US,
                NOW + READ_BACK_EVERY_US,
                Reach::Back
            )
        );
        assert_eq!(head.start(NOW + READ_BACK_EVERY_US + 1, FULLY).reach, Reach::Near);
    }

    #[test]
    fn a_bucket_that_was_not_known_has_the_next_read_go_back() {
        let (mut head, soon) = (Head::default(), NOW + SECOND / 5);
        let (known, new) = (Bucket::holding(NOW, 3), Bucket::holding(NOW, 0));
        head.set_directory(Directory::new(vec![known], 0, NOW), NOW);
        read(&mut head, NOW, vec![], None);
        head.set_directory(Directory::new(vec![known], 0, soon), soon);
        assert_eq!(head.start(soon, FULLY).reach, Reach::Near);
        head.set_directory(Directory::new(vec![known, new], 0, soon), soon);
        assert_eq!(head.start(soon, FULLY).reach, Reach::Back);
        head.hear_of(HeardBuckets { buckets: Vec::new(), are_more: true }, soon);
        assert!(head.wants_directory(head.start(soon, FULLY), SECOND));
    }

    #[test]
    fn a_bucket_that_is_heard_of_needs_no_reading_of_the_directory() {
        let mut head = Head::default();
        let [known, new, later] = [(NOW, 3), (NOW, 0), (NOW + 600 * SECOND, 0)]
            .map(|(at_us, level)| Bucket::holding(at_us, level));
        head.set_directory(Directory::new(vec![known], 0, NOW), NOW);
        read(&mut head, NOW, vec![], None);
        head.place_us = NOW + 1;
        for (bucket, place_us) in [(known, NOW + 1), (later, NOW + 1), (new, NOW)] {
            head.hear_of(HeardBuckets { buckets: vec![bucket], are_more: false }, NOW + 1);
            let start = head.start(NOW + 1, FULLY);
            assert_eq!(start, start_at(place_us - OVERLAP_US, NOW + 1, Reach::Near), "{bucket:?}");
            assert!(!head.wants_directory(start, SECOND));
        }
        assert_eq!(head.directory().buckets_from(NOW), [known, new, later]);
    }

    #[test]
    fn a_bucket_heard_of_late_is_read_from_when_it_was_missing() {
        let later = NOW + 9 * SECOND;
        for is_told in [false, true] {
            let mut head = Head::default();
            let new = Bucket::holding(NOW, 0);
            head.set_directory(Directory::new(Vec::new(), 0, NOW), NOW);
            read(&mut head, NOW, vec![], None);
            // It has known none for longer than a read goes back.
            let start = head.start(later, FULLY);
            head.on_read(start, &HeadRead::default(), None, GRACE);
            if is_told {
                head.hear_of(HeardBuckets { buckets: vec![new], are_more: false }, later);
            }
            head.set_directory(Directory::new(vec![new], 0, later), later);
            let back = head.start(later, FULLY);
            assert_eq!(back, start_at(NOW - OVERLAP_US, later, Reach::Near));
        }
    }

    #[test]
    fn a_bucket_that_began_before_it_was_missing_is_read_from_some_seconds_earlier() {
        let (mut head, later) = (Head::default(), NOW + 9 * SECOND);
        head.set_directory(Directory::new(Vec::new(), 0, NOW), NOW);
        let start = head.start(later, FULLY);
        head.on_read(start, &HeadRead::default(), None, GRACE);
        let wide = Bucket::holding(NOW - SECOND, 3);
        assert!(wide.start_us() < NOW);
        head.hear_of(HeardBuckets { buckets: vec![wide], are_more: false }, later);
        assert_eq!(head.start(later, FULLY), start_at(NOW - READ_BACK_US, later, Reach::Back));
    }

    #[test]
    fn an_entry_that_was_left_is_where_the_next_read_begins() {
        let mut head = Head::default();
        let (taken, left) =
            (entry_for_tests(NOW - 9 * SECOND, 1), entry_for_tests(NOW - 8 * SECOND, 2));
        read(&mut head, NOW, vec![taken, left], Some(left.visible_at_us));
        assert_eq!(head.start(NOW, FULLY).from_us, left.visible_at_us - OVERLAP_US);
    }

    #[test]
    fn reads_go_on_behind_what_is_left_behind_and_begin_there_again() {
        let mut head = Head::default();
        let left = entry_for_tests(NOW - 60 * SECOND, 1);
        // The mark is at one that was taken.
        read(&mut head, NOW, vec![entry_for_tests(NOW - 61 * SECOND, 2), left], None);
        head.left_behind.begin(NOW);
        head.left_behind.pass(Some(&left));
        let [soon, over, again] = [1, 2, 4].map(|tenths| NOW + tenths * SECOND / 10);
        assert_eq!(head.start(soon, FULLY), start_at(NOW, soon, Reach::On));
        head.left_behind.end(over);
        let before = head.start(again - 1, FULLY);
        assert_eq!(before, start_at(NOW - OVERLAP_US, again - 1, Reach::Near));
        let from_us = left.visible_at_us - OVERLAP_US;
        assert_eq!(head.start(again, FULLY), start_at(from_us, again, Reach::Near));
        read(&mut head, again, vec![], None);
        assert_eq!(head.start(again, FULLY).from_us, again - OVERLAP_US, "it is gone");
    }

    #[test]
    fn what_is_left_behind_the_stored_mark_is_not_looked_for_again() {
        let mut head = Head::default();
        let (left, later) = (entry_for_tests(NOW - 60 * SECOND, 1), NOW + MARK_AGE_US_MAX);
        head.set_stored_low(left.visible_at_us - SECOND, NOW);
        read(&mut head, NOW, vec![left], None);
        head.left_behind.begin(NOW);
        head.left_behind.pass(Some(&left));
        head.left_behind.end(NOW);
        // Others have received it meanwhile, and the mark has passed it.
        head.set_stored_low(left.visible_at_us + SECOND, later);
        let full = read(&mut head, later, vec![], None);
        assert_eq!(full, start_at(left.visible_at_us + SECOND, later, Reach::Full));
        assert!(head.left_behind.is_empty());
        assert_eq!(head.start(later, FULLY), start_at(later - OVERLAP_US, later, Reach::Near));
    }

    #[test]
    fn what_is_left_behind_on_both_sides_of_the_mark_is_found_again() {
        let mut head = Head::default();
        let (left, mark_us) = (entry_for_tests(NOW - 60 * SECOND, 1), NOW - 50 * SECOND);
        head.left_behind.begin(NOW);
        head.left_behind.pass(Some(&left));
        head.left_behind.end(NOW);
        head.set_stored_low(mark_us, NOW);
        assert_eq!(head.left_behind.due_us(NOW), Some(mark_us));
    }

    #[test]
    fn a_read_that_ended_early_is_gone_on_with() {
        let mut head = Head::default();
        let first = start(&mut head, NOW);
        let read = HeadRead { seen_to_us: Some(NOW - 500 * SECOND), ..HeadRead::default() };
        head.on_read(first, &read, None, GRACE);
        assert_eq!(head.start(NOW, FULLY), start_at(NOW - 500 * SECOND, NOW, Reach::Full));
    }

    #[test]
    fn a_full_read_goes_on_though_the_mark_cannot_move() {
        let mut head = Head::default();
        head.set_stored_low(NOW - GRACE, NOW);
        let first = start(&mut head, NOW);
        let read = HeadRead { seen_to_us: Some(NOW - 2 * SECOND), ..HeadRead::default() };
        head.on_read(first, &read, None, GRACE);
        assert_eq!(head.low_us(), NOW - GRACE);
        let next = start(&mut head, NOW + SECOND);
        assert_eq!(next, start_at(NOW - 2 * SECOND, NOW + SECOND, Reach::Full));
        // What came into the places that the first step has passed is not known.
        head.on_read(next, &HeadRead::default(), None, GRACE);
        assert_eq!(head.low_us(), NOW - GRACE);
    }

    #[test]
    fn the_mark_goes_by_the_time_at_which_a_read_began() {
        let mut head = Head::default();
        let slow = start(&mut head, NOW);
        // It took 20 s, in which another front-end has confirmed an entry at NOW + 2 s.
        head.on_read(slow, &HeadRead::default(), None, GRACE);
        assert_eq!(head.low_us(), NOW - GRACE);
        assert!(head.start(NOW + 20 * SECOND, FULLY).from_us <= NOW + 2 * SECOND);
    }

    #[test]
    fn the_mark_goes_by_the_age_of_the_directory() {
        let mut head = Head::default();
        let first = head.start(NOW, FULLY);
        head.set_directory(Directory::new(Vec::new(), 0, NOW - SECOND / 2), NOW);
        head.on_read(first, &HeadRead::default(), None, GRACE);
        assert_eq!(head.low_us(), NOW - SECOND / 2 - GRACE);
    }

    #[test]
    fn the_stored_mark_is_read_with_a_full_read_once_a_minute() {
        let mut head = Head::default();
        assert!(head.wants_mark(NOW, FULLY));
        head.set_stored_low(NOW - 60 * SECOND, NOW);
        read(&mut head, NOW, vec![], None);
        let later = NOW + MARK_AGE_US_MAX;
        assert!(!head.wants_mark(later - 1, FULLY));
        assert!(head.wants_mark(later, FULLY));
        head.set_stored_low(later - 5 * SECOND, later);
        assert_eq!(head.start(later, FULLY).from_us, later - 5 * SECOND);
    }

    #[test]
    fn entries_of_two_buckets_are_one_sequence() {
        let entry = |at, number| entry_for_tests(at, number);
        let mut found = vec![entry(NOW, 1), entry(NOW + 5, 2)];
        merge(&mut found, vec![entry(NOW, 1), entry(NOW + 3, 3)]);
        let order: Vec<u128> = found.iter().map(|entry| entry.message.as_u128()).collect();
        assert_eq!(order, [1, 3, 2]);
    }
}
