//! How many messages a queue has, roughly and cheaply: entries are counted bucket by bucket up to a limit, and beyond it
//! the other buckets are taken to be as full. What took long to count is good for a moment; small queues are counted anew
//! each time, so that who has sent through one front-end sees it counted at another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Backlog, Consistency, Fault, QueueFacts};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use crate::bucket::{Bucket, WIDTH_US_MAX};
use crate::database::For;
use crate::entry::{CountedEntry, Entry};
use crate::limits::{
    COUNTED_BUCKETS_MAX, COUNTED_ROWS_MAX, IN_FLIGHT_BUCKETS_MAX, LOOKED_AFTER_ROWS_MAX,
};
use crate::message_id::sent_at_ms;
use crate::standard::Standard;
use crate::standard::head_read::read_directory;
use crate::standard::queue::Queue;
use crate::standard::rows::Rows;
use crate::standard::start::{Reach, Start};
use crate::standard::tables::Lease;

/// Rows of a read: a page of Cassandra's driver.
const PAGE: usize = 5_000;

/// Messages in flight that are counted to see which group is noisy, roughly.
const FAIR_ROWS_MAX: usize = 2_000;

/// For how long a receive waits for that count.
const COUNT_WAITED: Duration = Duration::from_millis(50);

/// A count that read so little, which costs no more than a receive, is not remembered.
const UNREMEMBERED_ROWS_MAX: usize = 1_000;
const UNREMEMBERED_BUCKETS_MAX: usize = 4;

/// Entries by what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    visible: u64,
    in_flight: u64,
    delayed: u64,
}

impl Tally {
    fn of(entries: &[CountedEntry], now_us: i64) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            if entry.visible_at_us <= now_us {
                tally.visible += 1;
            } else if entry.receive_count > 0 {
                tally.in_flight += 1;
            } else {
                tally.delayed += 1;
            }
        }
        tally
    }

    /// Extrapolates the counts to more buckets than were counted.
    fn extrapolated(self, counted: usize, all: usize) -> Self {
        let scale = |count: u64| count.saturating_mul(all as u64) / (counted.max(1) as u64);
        Self {
            visible: scale(self.visible),
            in_flight: scale(self.in_flight),
            delayed: scale(self.delayed),
        }
    }
}

impl Standard {
    /// Checks that not too many messages of a queue are in flight.
    ///
    /// # Errors
    /// [`Fault::OverLimit`] if too many messages are in flight, as far as is known.
    pub(crate) async fn check_in_flight(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Queue,
    ) -> Result<(), Fault> {
        let limit = self.settings.in_flight_max;
        // Nothing is locked or asked for while there are few.
        if !queue.in_flight.may_be_full(self.peers.front_ends(), limit) {
            return Ok(());
        }
        let counted = match queue.in_flight.recall() {
            Some(counted) => counted,
            None => {
                let counted = self.note_in_flight(facts, queue, limit, |_| ()).await? as u64;
                queue.in_flight.remember(counted, self.peers.front_ends());
                counted
            }
        };
        if counted >= limit as u64 { Err(Fault::OverLimit { limit }) } else { Ok(()) }
    }

    /// Counts what groups have in flight, now and then, if there may be a noisy one.
    pub(crate) async fn count_groups(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
    ) {
        let (now_us, front_ends) = (self.clock.now_us(), self.peers.front_ends());
        if !queue.fair().begins_count(now_us, front_ends) {
            return;
        }
        let (standard, facts, queue) = (self.clone(), facts.clone(), queue.clone());
        let counting = self.runtime.spawn(async move {
            // Without a count all groups are alike.
            let mut groups = Vec::new();
            let note = |entry: &CountedEntry| groups.push(entry.group);
            if standard.note_in_flight(&facts, &queue, FAIR_ROWS_MAX, note).await.is_ok() {
                queue.fair().counted(groups.into_iter());
            }
        });
        // A longer one is for those who come later.
        let _ = tokio::time::timeout(COUNT_WAITED, counting).await;
    }

    /// Notes what becomes visible again later and was received, and counts it, as far as the limit. Of very many buckets some are
    /// counted, evenly spread, which stand for those between them; messages that wait or are delayed say nothing of it.
    async fn note_in_flight(
        &self,
        facts: &Arc<QueueFacts>,
        queue: &Queue,
        limit: usize,
        mut note: impl FnMut(&CountedEntry) + Send,
    ) -> Result<usize, Fault> {
        let rows = self.rows(facts, queue);
        let start = {
            let mut head = queue.head.lock().await;
            self.prepare_head_read(&rows, &mut head).await?
        };
        let now_us = start.now_us;
        let start = Start { from_us: now_us, reach: Reach::Full, ..start };
        // As far ahead as messages are hidden mostly, however many buckets that are.
        let directory = read_directory(&rows, start, now_us + WIDTH_US_MAX).await?;
        let buckets = directory.buckets_from(now_us);
        let each_for = buckets.len().div_ceil(IN_FLIGHT_BUCKETS_MAX).max(1);
        let mut in_flight = 0;
        for bucket in buckets.iter().step_by(each_for) {
            let entries = rows.tables.counted(rows.of, *bucket, now_us, PAGE).await?;
            let is_in_flight =
                |entry: &&CountedEntry| entry.receive_count > 0 && entry.visible_at_us > now_us;
            for entry in entries.iter().filter(is_in_flight) {
                note(entry);
                in_flight += 1;
            }
            if in_flight >= limit {
                break;
            }
        }
        Ok(in_flight * each_for)
    }

    /// Counts what waits.
    pub(crate) async fn backlog(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
    ) -> Result<Backlog, Fault> {
        let queue = self.queue(facts).await?;
        if let Some(backlog) = self.counted.recall(queue.generation) {
            return Ok(backlog);
        }
        let rows = self.rows(facts, &queue);
        let (start, low_us) = {
            let mut head = queue.head.lock().await;
            (self.prepare_head_read(&rows, &mut head).await?, head.low_us())
        };
        let now_us = start.now_us;
        // Anew: the head's may be without what others have begun a moment ago.
        let whole = Start { from_us: low_us, ..start };
        let directory = read_directory(&rows, whole, now_us + WIDTH_US_MAX).await?;
        // The first entry alone says how old it is.
        let oldest =
            self.read_visible(&rows, &directory, start, 1).await?.visible.into_iter().next();
        let buckets = present_first(directory.buckets_from(low_us), now_us);
        let mut entries = Vec::new();
        let mut counted = 0;
        for bucket in &buckets {
            if entries.len() >= COUNTED_ROWS_MAX || counted >= COUNTED_BUCKETS_MAX {
                break;
            }
            entries.extend(rows.tables.counted(rows.of, *bucket, low_us, PAGE).await?);
            counted += 1;
        }
        let is_costly = entries.len() > UNREMEMBERED_ROWS_MAX || counted > UNREMEMBERED_BUCKETS_MAX;
        drop_stale(&rows, &mut entries).await?;
        let tally = Tally::of(&entries, now_us).extrapolated(counted, buckets.len());
        let age_ms =
            oldest.map(|entry| self.clock.now_ms().saturating_sub(sent_at_ms(entry.message)));
        let backlog = Backlog {
            visible: tally.visible,
            in_flight: tally.in_flight,
            delayed: tally.delayed,
            oldest_age_s: age_ms.unwrap_or_default() / 1_000,
        };
        if is_costly {
            self.counted.remember(queue.generation, backlog);
        }
        Ok(backlog)
    }
}

/// Returns the buckets in the order in which they are counted: those of the present, then older
/// ones, then those to come.
fn present_first(mut buckets: Vec<Bucket>, now_us: i64) -> Vec<Bucket> {
    buckets.sort_by_key(|bucket| {
        let is_to_come = bucket.start_us() > now_us;
        (is_to_come, (bucket.start_us() - now_us).abs())
    });
    buckets
}

/// Leaves out entries that lead nowhere, and removes them from the index: their message was deleted, or was moved by whoever
/// changed its visibility. Only messages that were received can be so; what was never received may not be stored yet.
async fn drop_stale(rows: &Rows<'_>, entries: &mut Vec<CountedEntry>) -> Result<(), Fault> {
    // A message that one replica has may be read there, and not by those who are asked here.
    if rows.of.consistency == Consistency::One {
        return Ok(());
    }
    let mut received: BTreeMap<Bucket, Vec<Uuid>> = BTreeMap::new();
    let mut count = 0;
    for entry in entries.iter().filter(|entry| entry.receive_count > 0) {
        if let Some(body) = entry.body {
            received.entry(body).or_default().push(entry.message);
            count += 1;
        }
    }
    if count == 0 || count > LOOKED_AFTER_ROWS_MAX {
        return Ok(());
    }
    let mut moved_at_us: FxHashMap<Uuid, i64> = FxHashMap::default();
    // More than half of the replicas are asked: what one does not have may be there.
    let Rows { tables, of } = rows.at(Consistency::LocalQuorum);
    for (body, messages) in received {
        let leases = tables.leases(of, body, messages, For::Upkeep).await?;
        let written = |lease: Option<Lease>| lease.map_or(0, |lease| lease.written_at_us);
        moved_at_us.extend(leases.into_iter().map(|(id, lease)| (id, written(lease))));
    }
    let is_stale = |entry: &CountedEntry| {
        entry.receive_count > 0
            && entry.body.is_some()
            && moved_at_us.get(&entry.message).is_none_or(|moved| *moved > entry.written_at_us)
    };
    let stale: Vec<Entry> =
        entries.extract_if(.., |entry| is_stale(entry)).filter_map(CountedEntry::row).collect();
    if !stale.is_empty() {
        // One that stays is found again.
        let _ = rows.delete_entries(&stale).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    #[test]
    fn entries_are_visible_in_flight_or_delayed() {
        let counted = |(visible_at_us, receive_count)| {
            let Entry { message, bucket, body, written_at_us, .. } =
                entry_for_tests(visible_at_us, 1);
            CountedEntry {
                bucket,
                visible_at_us,
                message,
                body: Some(body),
                receive_count,
                written_at_us,
                group: 0,
            }
        };
        let entries = [(10, 0), (10, 3), (11, 0), (11, 1), (12, 2)].map(counted);
        let tally = Tally::of(&entries, 10);
        assert_eq!(tally, Tally { visible: 2, in_flight: 2, delayed: 1 });
    }

    #[test]
    fn the_present_is_counted_first_and_the_future_last() {
        let at = |second: i64| Bucket::holding(second * 1_000_000, 0);
        let order = present_first(vec![at(1), at(9), at(10), at(11), at(30)], 10_500_000);
        assert_eq!(order, [at(10), at(9), at(1), at(11), at(30)]);
    }

    #[test]
    fn buckets_that_were_not_counted_are_taken_to_be_as_full() {
        let tally = Tally { visible: 20_000, in_flight: 10, delayed: 0 };
        assert_eq!(
            tally.extrapolated(4, 40),
            Tally { visible: 200_000, in_flight: 100, delayed: 0 }
        );
        assert_eq!(tally.extrapolated(4, 4), tally);
        assert_eq!(Tally::default().extrapolated(0, 0), Tally::default());
    }
}
