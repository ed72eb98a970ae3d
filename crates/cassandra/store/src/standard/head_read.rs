//! Reading a queue's head: the directory of buckets, and the entries of as many buckets as it takes.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use quelea_sqs_protocol::{Consistency, Fault};

use crate::bucket::Bucket;
use crate::database::For;
use crate::entry::Entry;
use crate::limits::{
    BUCKETS_AGE_MS_MAX, GRACE_MS, GRACE_OF_ONE_MS, READ_BUCKETS_MAX, READ_ROWS_MAX,
};
use crate::standard::Standard;
use crate::standard::directory::{Directory, LISTED_BUCKETS_MAX};
use crate::standard::head::{Head, HeadRead, merge};
use crate::standard::rows::Rows;
use crate::standard::start::Start;
use crate::standard::tables::List;

/// Rows that are read beyond those that are wanted: so one read often knows when the next message becomes visible.
const ROWS_MORE: usize = 8;

/// Requests for the directory of one queue: those that hold one time are 17,000 where each second has all its shards.
const LISTED_PAGES_MAX: usize = 16;

/// Buckets that ended so long before a read begins are not kept.
const KEPT_US: i64 = 30_000_000;

impl Standard {
    /// Brings the list of buckets up to date; returns where to begin.
    pub(crate) async fn prepare_head_read(
        &self,
        rows: &Rows<'_>,
        head: &mut Head,
    ) -> Result<Start, Fault> {
        // One time for all of a read, from before anything is read: what comes meanwhile may stay unseen.
        let now_us = self.clock.now_us();
        let fully_every_us = self.grace_us(rows);
        if head.wants_mark(now_us, fully_every_us) {
            head.set_stored_low(rows.tables.low_water_mark(rows.of).await?, now_us);
        }
        let mut start = head.start(now_us, fully_every_us);
        let age_us_max = match rows.of.consistency {
            // The one replica that is asked may not have heard yet of what the others say.
            Consistency::One => (BUCKETS_AGE_MS_MAX * 1_000) as i64,
            Consistency::LocalQuorum => self.peers.buckets_age_us_max(rows.of.generation),
        };
        // A new bucket may have the read go back, beyond what was just read.
        for _ in 0..2 {
            if head.wants_directory(start, age_us_max) {
                let directory = read_directory(rows, start, start.place_us()).await?;
                head.set_directory(directory, now_us);
                start = head.start(now_us, fully_every_us);
            }
        }
        Ok(start)
    }

    /// Reads entries until as many are visible as are wanted, or none is left.
    pub(crate) async fn read_visible(
        &self,
        rows: &Rows<'_>,
        directory: &Directory,
        start: Start,
        wanted: usize,
    ) -> Result<HeadRead, Fault> {
        let now_us = start.now_us;
        let most = (wanted + ROWS_MORE).min(READ_ROWS_MAX);
        let mut found = Vec::new();
        // Beyond the end of the directory, or the last row of a bucket that had more, nothing is known.
        let mut seen_to_us: Option<i64> = directory.to_us();
        let mut next_bucket_at_us: Option<i64> = None;
        let buckets = directory.buckets_from(start.from_us);
        let mut buckets_read = 0;
        // Shards of one second are read at once.
        for shards in buckets.chunk_by(|one, next| one.start_s == next.start_s) {
            let start_us = shards[0].start_us();
            if start_us > now_us {
                next_bucket_at_us = Some(start_us);
                break;
            }
            if seen_to_us.is_some_and(|seen_to_us| start_us > seen_to_us) {
                break;
            }
            // All up to the place are read, however many they are.
            if buckets_read >= READ_BUCKETS_MAX && start_us > start.place_us() {
                seen_to_us = Some(seen_to_us.unwrap_or(i64::MAX).min(start_us));
                break;
            }
            buckets_read += shards.len();
            let read = |bucket: Bucket| rows.read_entries(bucket, start.from_us, most);
            let read = stream::iter(shards.iter().copied()).map(read).buffered(READ_BUCKETS_MAX);
            for more in read.try_collect::<Vec<Vec<Entry>>>().await? {
                let last = more.last().filter(|_| more.len() == most);
                let border_us = last.map(|last| last.visible_at_us);
                seen_to_us = [seen_to_us, border_us].into_iter().flatten().min();
                merge(&mut found, more);
            }
        }
        let border_us = seen_to_us.unwrap_or(i64::MAX);
        let is_known = |entry: &Entry| entry.visible_at_us <= border_us;
        let next_visible_at_us = found
            .iter()
            .filter(|entry| is_known(entry))
            .map(|entry| entry.visible_at_us)
            .find(|at_us| *at_us > now_us)
            .into_iter()
            .chain(next_bucket_at_us)
            .min();
        found.retain(|entry| is_known(entry) && entry.visible_at_us <= now_us);
        Ok(HeadRead {
            visible: found,
            next_visible_at_us,
            seen_to_us: seen_to_us.filter(|seen| *seen <= now_us),
        })
    }

    /// Stores the low-water mark, if it has moved far enough. It only moves forward, since its own time is its timestamp.
    pub(crate) fn store_mark(self: &Arc<Self>, rows: &Rows<'_>, head: &mut Head) {
        let is_owner = || self.peers.is_owner(rows.of.generation);
        let Some(low_us) = head.mark_to_store(is_owner) else { return };
        let (standard, of) = (self.clone(), rows.of);
        self.runtime.spawn(async move {
            // The next one says more.
            if let Err(fault) = standard.tables.write_low_water_mark(of, low_us).await {
                tracing::debug!(generation = %of.generation, %fault, "the low-water mark was not stored");
            }
        });
    }

    /// Returns how far behind the present an entry of that queue may be inserted, in µs.
    pub(crate) fn grace_us(&self, rows: &Rows<'_>) -> i64 {
        let grace_ms = match rows.of.consistency {
            Consistency::One => GRACE_OF_ONE_MS,
            Consistency::LocalQuorum => GRACE_MS,
        };
        (grace_ms * 1_000) as i64
    }
}

/// Reads the buckets that a read may need, at least until all that begin at that time or before are known, as far as
/// [`LISTED_PAGES_MAX`] requests come.
pub(crate) async fn read_directory(
    rows: &Rows<'_>,
    start: Start,
    known_to_us: i64,
) -> Result<Directory, Fault> {
    let mut after = Bucket { start_s: Directory::first_s(start.from_us), level: -1 };
    let mut buckets = Vec::new();
    for _ in 0..LISTED_PAGES_MAX {
        let listed =
            rows.tables.listed(rows.of, List::Entries, after, LISTED_BUCKETS_MAX, For::Upkeep);
        let page = listed.await?;
        buckets.extend(page.buckets);
        match page.next {
            None => return Ok(Directory::new(buckets, start.from_us, start.now_us)),
            Some(last) => after = last,
        }
        if after.start_us() > known_to_us {
            break;
        }
        // Wide buckets begin long before what is in them; between them are many narrow ones that are over. Those of the last seconds are
        // kept, since a read goes back.
        buckets.retain(|bucket| bucket.end_us() > start.from_us - KEPT_US);
    }
    Ok(Directory::new(buckets, start.from_us, start.now_us).cut_off(after.start_us()))
}
