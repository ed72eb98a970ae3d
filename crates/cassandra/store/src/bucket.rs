//! Which partition of the index an entry belongs to. Partitions are buckets of visible-at time, of a few widths: wide ones
//! for quiet queues, whose head is then in one partition for minutes; narrow ones for busy queues, since a partition
//! with thousands of deleted rows is slow to read. A second that is too busy for one partition has several, its shards.
//!
//! Buckets may overlap in time. A reader merges them.

use std::cmp::Ordering;

use crate::limits::{FRONT_ENDS_MAX, SHARDS_MAX};

/// The widths in seconds, by their level, which is stored. Further levels are further shards of a second.
const WIDTHS_S: [i64; 4] = [1, 8, 64, 512];

/// The widest bucket, in microseconds.
pub(crate) const WIDTH_US_MAX: i64 = WIDTHS_S[WIDTHS_S.len() - 1] * 1_000_000;

/// How many levels there are.
const LEVELS: i8 = (WIDTHS_S.len() + SHARDS_MAX) as i8 - 1;

/// Returns the buckets of a second, in the order in which they are filled.
fn shards(visible_at_us: i64) -> impl Iterator<Item = Bucket> {
    let levels = std::iter::once(0).chain(WIDTHS_S.len() as i8..LEVELS);
    levels.map(move |level| Bucket::holding(visible_at_us, level))
}

/// A bucket. They are sorted by their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Bucket {
    /// Its first second since 1970, a multiple of its width.
    pub(crate) start_s: i64,
    /// The number of its width, or of a further shard of a second.
    pub(crate) level: i8,
}

/// Returns how wide buckets of that level are, in seconds.
fn width_s(level: i8) -> i64 {
    WIDTHS_S.get(usize::from(level.unsigned_abs())).copied().unwrap_or(WIDTHS_S[0])
}

impl Bucket {
    /// Returns the bucket of that level that holds a time.
    pub(crate) fn holding(visible_at_us: i64, level: i8) -> Self {
        let width = width_s(level);
        let second = visible_at_us.div_euclid(1_000_000);
        Self { start_s: second.div_euclid(width) * width, level }
    }

    /// Returns the bucket that is stored so; `None` if no such level is known here.
    pub(crate) fn stored(start_s: i64, level: i8) -> Option<Self> {
        (0..LEVELS).contains(&level).then_some(Self { start_s, level })
    }

    /// Returns when it begins.
    pub(crate) fn start_us(self) -> i64 {
        self.start_s.saturating_mul(1_000_000)
    }

    /// Returns when the next one of its width begins.
    pub(crate) fn end_us(self) -> i64 {
        self.start_us().saturating_add(width_s(self.level) * 1_000_000)
    }
}

/// How many rows this front-end has put into a few buckets, and so which level is next.
///
/// A queue stays at the level that its rate asks for: the widest whose buckets it would fill to half at most. A burst
/// that fills a bucket sooner goes on in narrower ones, and in the shards of a second at last, so that they grow with the
/// rate. No front-end counts what the others put into the same buckets: each takes them to be as busy as itself, so that all
/// together keep the bound. It does not hold where all shards of a second are full, where more than
/// [`FRONT_ENDS_OF_SHARD`] front-ends are that busy, and for buckets that were filled before so many others that their rows are not
/// counted any more.
#[derive(Debug)]
pub(crate) struct Filling {
    rows_max: u32,
    /// Buckets with the rows in them, the newest last.
    counted: Vec<(Bucket, u32)>,
    rate: Rate,
}

/// Who puts rows into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writers {
    /// The front-ends that are alive, this one included.
    pub(crate) front_ends: usize,
    /// Whether all of them read further shards of a second.
    pub(crate) know_shards: bool,
}

/// With more front-ends than this a shard is not divided further: it would hold so few rows that readers find many shards that are
/// nearly empty.
const FRONT_ENDS_OF_SHARD: u32 = 8;

/// Buckets that are counted at once: in-flight, delayed and ready entries lie in different ones, each in some shards.
const COUNTED_MAX: usize = 4 * SHARDS_MAX;

impl Filling {
    /// Returns a filling of buckets that take so many rows.
    pub(crate) fn new(rows_max: u32) -> Self {
        Self { rows_max, counted: Vec::new(), rate: Rate::default() }
    }

    /// Chooses the bucket for a row that is inserted now by one of these front-ends, and counts the
    /// row there. A row that weighs more than 1 counts as so many.
    pub(crate) fn place(
        &mut self,
        visible_at_us: i64,
        now_us: i64,
        weight: u32,
        writers: Writers,
    ) -> Bucket {
        let front_ends = writers.front_ends.clamp(1, FRONT_ENDS_MAX) as u32;
        let of_all = weight.saturating_mul(front_ends);
        let widest = self.rate.level(now_us, of_all, self.rows_max);
        let mut wide = (1..=widest).rev().map(|level| Bucket::holding(visible_at_us, level));
        let has_room = |bucket: &Bucket| self.rows(*bucket).saturating_add(of_all) <= self.rows_max;
        if let Some(bucket) = wide.find(has_room) {
            self.count(bucket, of_all, now_us);
            return bucket;
        }
        let weight = weight.saturating_mul(front_ends.min(FRONT_ENDS_OF_SHARD));
        let bucket = match writers.know_shards {
            true => self.shard(visible_at_us, weight),
            false => Bucket::holding(visible_at_us, 0),
        };
        self.count(bucket, weight, now_us);
        bucket
    }

    /// Returns the first shard of a second that has room for such a row, or is empty; the least
    /// full where none is.
    fn shard(&self, visible_at_us: i64, weight: u32) -> Bucket {
        let mut least = (Bucket::holding(visible_at_us, 0), u32::MAX);
        for shard in shards(visible_at_us) {
            let rows = self.rows(shard);
            if rows == 0 || rows.saturating_add(weight) <= self.rows_max {
                return shard;
            }
            if rows < least.1 {
                least = (shard, rows);
            }
        }
        least.0
    }

    fn rows(&self, bucket: Bucket) -> u32 {
        let counted = self.counted.iter().rev().find(|(counted, _)| *counted == bucket);
        counted.map_or(0, |(_, rows)| *rows)
    }

    fn count(&mut self, bucket: Bucket, weight: u32, now_us: i64) {
        match self.counted.iter().rposition(|(counted, _)| *counted == bucket) {
            Some(at) => self.counted[at].1 = self.counted[at].1.saturating_add(weight),
            None => {
                if self.counted.len() == COUNTED_MAX {
                    // One that is over is hardly filled any more; a wide one that is not may be an old one.
                    let over = self.counted.iter().position(|(one, _)| one.end_us() <= now_us);
                    self.counted.remove(over.unwrap_or(0));
                }
                self.counted.push((bucket, weight));
            }
        }
    }
}

/// Entries a second, over the last whole stretch of ten seconds.
#[derive(Debug, Default)]
struct Rate {
    began_us: i64,
    rows: u32,
    level: Option<i8>,
}

const STRETCH_US: i64 = 10_000_000;

impl Rate {
    /// Counts a row; returns the level that the rate asks for, where a bucket takes so many rows.
    fn level(&mut self, now_us: i64, weight: u32, rows_max: u32) -> i8 {
        let widest = WIDTHS_S.len() as i8 - 1;
        self.rows = self.rows.saturating_add(weight);
        let passed_us = now_us - self.began_us;
        if !(0..STRETCH_US).contains(&passed_us) {
            // After a pause the stretch is longer than its rows say, and the rate as low as it looks.
            let seconds = (passed_us / 1_000_000).max(1);
            let now = Self::level_of(i64::from(self.rows) / seconds, rows_max);
            self.level = Some(match self.level {
                // Up only when the narrower bucket would stay nearly empty, so that a rate at a border stays put.
                Some(before) if now.cmp(&before) == Ordering::Greater => {
                    Self::level_of(2 * i64::from(self.rows) / seconds, rows_max).max(before)
                }
                _ => now,
            });
            (self.began_us, self.rows) = (now_us, 0);
        }
        self.level.unwrap_or(widest)
    }

    fn level_of(rows_per_s: i64, rows_max: u32) -> i8 {
        let fits = |width: i64| rows_per_s * width <= i64::from(rows_max) / 2;
        (0..WIDTHS_S.len()).rev().find(|level| fits(WIDTHS_S[*level])).unwrap_or(0) as i8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::BUCKET_ROWS_MAX;

    const SECOND: i64 = 1_000_000;
    const ALONE: Writers = Writers { front_ends: 1, know_shards: true };
    const MOST: Writers = Writers { front_ends: FRONT_ENDS_MAX, ..ALONE };

    proptest! {
        #[test]
        fn a_bucket_holds_its_time(at in 0i64..1 << 52, level in 0..LEVELS) {
            let bucket = Bucket::holding(at, level);
            prop_assert!(bucket.start_us() <= at && at < bucket.end_us());
            prop_assert_eq!(Bucket::holding(bucket.start_us(), level), bucket);
            prop_assert_eq!(Bucket::holding(bucket.end_us() - 1, level), bucket);
            prop_assert_eq!(Bucket::stored(bucket.start_s, level), Some(bucket));
        }

        #[test]
        fn no_bucket_is_overfilled_however_many_front_ends_fill_it(
            rows_per_s in 1i64..12_000,
            seconds in 1i64..13,
            front_ends in 1usize..9,
            of_the_first in 0i64..8,
        ) {
            let writers = Writers { front_ends, know_shards: true };
            let mut fillings: Vec<Filling> = (0..front_ends).map(|_| Filling::new(BUCKET_ROWS_MAX)).collect();
            let mut rows = std::collections::HashMap::new();
            for row in 0..rows_per_s * seconds {
                let now = 1_000_000 * SECOND + row * SECOND / rows_per_s;
                // The first has its part of every eight rows, and its turn at the others.
                let place = if row % 8 < of_the_first { 0 } else { row as usize / 8 % front_ends };
                *rows.entry(fillings[place].place(now, now, 1, writers)).or_insert(0) += 1;
            }
            for (bucket, count) in rows {
                prop_assert!(count <= i64::from(BUCKET_ROWS_MAX), "{bucket:?} has {count}");
            }
        }
    }

    #[test]
    fn a_level_from_a_later_version_is_no_bucket() {
        assert_eq!(Bucket::stored(0, LEVELS), None);
        assert_eq!(Bucket::stored(0, -1), None);
    }

    #[test]
    fn a_quiet_queue_stays_in_one_wide_bucket() {
        let mut filling = Filling::new(BUCKET_ROWS_MAX);
        let start = 512 * 1_000 * SECOND;
        let buckets: Vec<Bucket> = (0..500)
            .map(|s| filling.place(start + s * SECOND, start + s * SECOND, 1, ALONE))
            .collect();
        assert!(buckets.iter().all(|bucket| *bucket == Bucket::holding(start, 3)));
    }

    #[test]
    fn a_row_that_weighs_more_than_a_wide_bucket_goes_into_a_second() {
        let mut filling = Filling::new(BUCKET_ROWS_MAX);
        let at = 512 * 1_000 * SECOND;
        let shards = [0, 1, 2].map(|_| filling.place(at, at, 501, MOST).level);
        assert_eq!(shards, [0, 4, 5], "each in a shard of its own");
        assert_eq!(filling.place(at, at, 1, MOST).level, 3, "it has counted elsewhere");
    }

    #[test]
    fn a_second_is_one_bucket_while_a_front_end_reads_no_further_shard() {
        let mut filling = Filling::new(BUCKET_ROWS_MAX);
        let writers = Writers { know_shards: false, ..ALONE };
        let at = 512 * 1_000 * SECOND;
        let levels = (0..10 * BUCKET_ROWS_MAX).map(|_| filling.place(at, at, 1, writers).level);
        assert_eq!(levels.filter(|level| width_s(*level) == 1 && *level != 0).count(), 0);
    }

    #[test]
    fn where_all_shards_of_a_second_are_full_they_are_filled_alike() {
        let (mut filling, at) = (Filling::new(10), 512 * 1_000 * SECOND);
        let mut rows = std::collections::HashMap::new();
        // The wide buckets take ten rows each.
        for _ in 0..30 + 31 * SHARDS_MAX {
            *rows.entry(filling.place(at, at, 1, ALONE)).or_insert(0) += 1;
        }
        let shards = rows.iter().filter(|(bucket, _)| width_s(bucket.level) == 1);
        let counts: Vec<i32> = shards.map(|(_, count)| *count).collect();
        assert_eq!(counts.len(), SHARDS_MAX);
        assert!(counts.iter().all(|count| *count == 31), "{counts:?}");
    }

    #[test]
    fn a_busy_queue_settles_at_one_narrow_width() {
        let mut filling = Filling::new(BUCKET_ROWS_MAX);
        let start = 512 * 1_000 * SECOND;
        let at = |row: i64| start + row * SECOND / 1_000;
        for row in 0..30_000 {
            filling.place(at(row), at(row), 1, ALONE);
        }
        let levels: Vec<i8> =
            (30_000..60_000).map(|row| filling.place(at(row), at(row), 1, ALONE).level).collect();
        assert!(
            levels.iter().all(|level| *level == 0),
            "1,000 rows a second need no further shard"
        );
    }
}
