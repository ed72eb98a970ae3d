//! The directory of a queue's buckets, as it was read: a part of it, when it has more of them than one read asks for.

use crate::bucket::{Bucket, WIDTH_US_MAX};
use crate::standard::start::Start;

/// Buckets that one request for the directory asks for. Those that hold one time are fewer than 600 where no second has several shards,
/// so that one is enough then.
pub(crate) const LISTED_BUCKETS_MAX: usize = 2_000;

/// Buckets that may hold entries from a time on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Sorted.
    buckets: Vec<Bucket>,
    /// Every bucket with entries from here on is listed.
    from_us: i64,
    /// Before here; `None`: there is no other.
    to_us: Option<i64>,
    /// When the reading of it began.
    read_at_us: i64,
}

impl Directory {
    /// Returns the second from which on the directory has to be read, to know the buckets of a
    /// time.
    pub(crate) fn first_s(from_us: i64) -> i64 {
        (from_us.saturating_sub(WIDTH_US_MAX) / 1_000_000).max(0)
    }

    /// Returns a directory of all that was read from [`Directory::first_s`] on.
    pub(crate) fn new(mut buckets: Vec<Bucket>, from_us: i64, read_at_us: i64) -> Self {
        buckets.sort_unstable();
        Self { buckets, from_us, to_us: None, read_at_us }
    }

    /// Returns the directory as one of which there may be more from that time on.
    pub(crate) fn cut_off(self, to_us: i64) -> Self {
        Self { to_us: Some(to_us), ..self }
    }

    /// Adds a bucket that was heard of. Returns whether it was not listed.
    pub(crate) fn add(&mut self, bucket: Bucket) -> bool {
        // What is behind its end is read when a read of the head comes there.
        if self.to_us.is_some_and(|to_us| bucket.start_us() >= to_us) {
            return false;
        }
        let Err(at) = self.buckets.binary_search(&bucket) else { return false };
        self.buckets.insert(at, bucket);
        true
    }

    /// Returns whether it says which buckets a read of the head has to read to get beyond its
    /// place.
    pub(crate) fn covers(&self, start: Start) -> bool {
        let gets_further = self.to_us.is_none_or(|to_us| start.place_us() < to_us);
        self.from_us <= start.from_us && gets_further
    }

    /// Returns whether it is younger than that. A clock that went back says nothing about its age.
    pub(crate) fn is_fresh(&self, now_us: i64, age_us_max: i64) -> bool {
        (0..age_us_max).contains(&now_us.saturating_sub(self.read_at_us))
    }

    /// Returns the buckets that a read of the head from there has to read, in order.
    pub(crate) fn buckets_from(&self, from_us: i64) -> Vec<Bucket> {
        self.buckets.iter().copied().filter(|bucket| bucket.end_us() > from_us).collect()
    }

    /// Returns the buckets of the past or the present that it lists and an earlier reading does
    /// not, which was to know them.
    pub(crate) fn begun_beside(&self, earlier: &Self, now_us: i64) -> Vec<Bucket> {
        let is_new = |bucket: &Bucket| {
            bucket.start_us() <= now_us
                && bucket.end_us() > earlier.from_us
                && earlier.buckets.binary_search(bucket).is_err()
        };
        self.buckets.iter().copied().filter(is_new).collect()
    }

    /// Returns where its knowledge ends; `None`: nowhere.
    pub(crate) fn to_us(&self) -> Option<i64> {
        self.to_us
    }

    /// Returns when the reading of it began.
    pub(crate) fn read_at_us(&self) -> i64 {
        self.read_at_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::start::Reach;

    const SECOND: i64 = 1_000_000;

    fn full(from_us: i64) -> Start {
        Start { from_us, now_us: 0, reach: Reach::Full }
    }

    fn narrow(count: usize) -> Vec<Bucket> {
        (0..count as i64).map(|second| Bucket::holding(second * SECOND, 0)).collect()
    }

    #[test]
    fn a_directory_that_was_cut_off_knows_where() {
        let whole = Directory::new(narrow(5), 0, 0);
        assert_eq!(whole.to_us(), None);
        assert!(whole.covers(full(i64::MAX)));
        let border_us = 4 * SECOND;
        let cut = whole.cut_off(border_us);
        assert_eq!(cut.to_us(), Some(border_us));
        assert!(cut.covers(full(border_us - 1)) && !cut.covers(full(border_us)));
        let near = Start { reach: Reach::Near, ..full(border_us - 1) };
        assert!(!cut.covers(near), "it would come to where the last read has ended");
    }

    #[test]
    fn a_directory_from_a_later_time_does_not_cover_an_earlier_one() {
        let directory = Directory::new(narrow(3), 2 * SECOND, 0);
        assert!(directory.covers(full(2 * SECOND)) && !directory.covers(full(SECOND)));
    }

    #[test]
    fn a_bucket_is_added_once_and_not_behind_the_end() {
        let mut directory = Directory::new(narrow(5), 0, 0).cut_off(4 * SECOND);
        let [inside, behind] = [Bucket::holding(0, 2), Bucket::holding(1 << 50, 2)];
        assert!(directory.add(inside));
        assert!(!directory.add(inside) && !directory.add(behind));
        assert_eq!(directory.buckets_from(0).len(), 6);
    }

    #[test]
    fn a_directory_is_not_fresh_after_the_clock_went_back() {
        let directory = Directory::new(Vec::new(), 0, 100 * SECOND);
        assert!(directory.is_fresh(100 * SECOND, SECOND));
        assert!(!directory.is_fresh(101 * SECOND, SECOND));
        assert!(!directory.is_fresh(99 * SECOND, SECOND));
    }

    #[test]
    fn only_buckets_that_end_behind_the_start_are_read() {
        let now = 1_700_000_000 * SECOND;
        let (old, wide, narrow) = (
            Bucket::holding(now - 600 * SECOND, 0),
            Bucket::holding(now, 3),
            Bucket::holding(now, 0),
        );
        let directory = Directory::new(vec![narrow, old, wide], 0, now);
        assert_eq!(directory.buckets_from(now - SECOND), [wide, narrow]);
        assert_eq!(directory.buckets_from(0), [old, wide, narrow]);
    }
}
