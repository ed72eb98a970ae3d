//! The slow sweep: a message that no entry leads to gets one anew. Its entry was lost, or came behind the low-water mark.
//!
//! It goes through the partitions of messages that are older than any delay, gathers what is there, and ticks off what the index
//! has from the low-water mark on. What is left is looked for once more, a little later: an entry that moves forward while the
//! index is read is found at one of its places, and one that moves back is not missed twice. What is missing still gets an
//! entry, and nothing else is written: a message that was deleted meanwhile stays deleted, since an entry without a message
//! leads nowhere.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quelea_sqs_protocol::{Consistency, Fault, QueueFacts, QueueRef};
use tokio::time::Instant;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::{SWEPT_AGE_MS_MIN, SWEPT_AT_ONCE};
use crate::message_id::sent_at_ms;
use crate::standard::Standard;
use crate::standard::content::Timed;
use crate::standard::directory::Directory;
use crate::standard::fair::group_of;
use crate::standard::queue::Queue;
use crate::standard::receive::entry_ttl_s;
use crate::standard::tables::{List, Of, SWEPT_PAGE, SweptMessage};

/// How much later what is missing is looked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Rows that a request counts as beside those that it reads.
const REQUEST_ROWS: usize = 10;

/// Before all buckets.
const BEFORE_ALL: Bucket = Bucket { start_s: i64::MIN, level: -1 };

/// How fast a sweep goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// `None`: as fast as it can.
    rows_per_s: Option<u32>,
    again_after: Duration,
}

impl Pace {
    /// As a front-end does it beside its work.
    pub(crate) fn slow(rows_per_s: u32) -> Self {
        Self { rows_per_s: Some(rows_per_s.max(1)), again_after: AGAIN_AFTER }
    }

    /// As tests do it.
    pub(crate) const AT_ONCE: Self = Self { rows_per_s: None, again_after: Duration::ZERO };

    pub(crate) async fn after(self, rows: usize) {
        if let Some(per_s) = self.rows_per_s {
            let seconds = (rows + REQUEST_ROWS) as f64 / f64::from(per_s);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }
}

type Candidates = BTreeMap<Uuid, SweptMessage>;

/// Messages that get their entries together: their bodies are in memory meanwhile.
const RESTORED_AT_ONCE: usize = 16;
/// What a message is taken to have whose entry is lost.
const LOST_BYTES: i32 = 256 * 1_024;

impl Standard {
    /// Sweeps one queue, if it is this front-end's to sweep. Returns how many messages got an entry anew.
    pub(crate) async fn sweep(&self, name: &QueueRef, pace: Pace) -> Result<usize, Fault> {
        let Some(record) = self.tables.record(name).await? else { return Ok(0) };
        if record.facts.settings.fifo.is_some() || !self.peers.is_owner(record.generation) {
            return Ok(0);
        }
        let (facts, queue) = (&record.facts, self.queue(&record.facts).await?);
        let (mut restored, mut after) = (0, Some(BEFORE_ALL));
        while let Some(from) = after {
            let (candidates, next) = self.gather(queue.generation, from, pace).await?;
            after = next;
            let missing = self.missing(queue.generation, candidates, pace).await?;
            if missing.is_empty() {
                continue;
            }
            tokio::time::sleep(pace.again_after).await;
            let looked_us = self.clock.now_us();
            let missing = self.missing(queue.generation, missing, pace).await?;
            let missing: Vec<_> = missing.into_iter().collect();
            for part in missing.chunks(RESTORED_AT_ONCE) {
                restored += self.restore(facts, &queue, part, looked_us).await;
            }
        }
        if restored > 0 {
            tracing::warn!(queue = %name.name, restored, "messages that nothing led to can be received again");
            self.restored.fetch_add(restored as u64, Ordering::Relaxed);
        }
        Ok(restored)
    }

    /// Messages of the partitions behind one, as many as are swept at once, and the partition that they end with, if
    /// there are more.
    async fn gather(
        &self,
        generation: Uuid,
        mut from: Bucket,
        pace: Pace,
    ) -> Result<(Candidates, Option<Bucket>), Fault> {
        let of = swept(generation);
        let old_us = self.clock.now_us() - (SWEPT_AGE_MS_MIN * 1_000) as i64;
        let mut candidates = Candidates::new();
        loop {
            let listed = self.tables.listed_behind(of, List::Messages, from).await?;
            pace.after(listed.len()).await;
            let Some(last) = listed.last() else { return Ok((candidates, None)) };
            if listed[0].start_us() > old_us {
                return Ok((candidates, None));
            }
            from = *last;
            for bucket in listed.into_iter().filter(|bucket| bucket.end_us() <= old_us) {
                let (mut after, mut is_empty) = (Some(Uuid::nil()), true);
                while let Some(message) = after {
                    let (found, next) = self.tables.swept_messages(of, bucket, message).await?;
                    pace.after(found.len()).await;
                    is_empty &= found.is_empty() && next.is_none();
                    candidates.extend(found);
                    after = next;
                }
                if is_empty {
                    self.tables.unlist(of, bucket, self.clock.now_us()).await?;
                }
                if candidates.len() >= SWEPT_AT_ONCE {
                    return Ok((candidates, Some(bucket)));
                }
            }
        }
    }

    /// Those of the messages that the index does not have.
    async fn missing(
        &self,
        generation: Uuid,
        mut candidates: Candidates,
        pace: Pace,
    ) -> Result<Candidates, Fault> {
        let of = swept(generation);
        let low_us = self.tables.low_water_mark(of).await?;
        // The widest buckets begin this much before what is in them.
        let mut from = Bucket { start_s: Directory::first_s(low_us), level: -1 };
        while !candidates.is_empty() {
            let listed = self.tables.listed_behind(of, List::Entries, from).await?;
            pace.after(listed.len()).await;
            let Some(last) = listed.last() else { break };
            from = *last;
            for bucket in listed.into_iter().filter(|bucket| bucket.end_us() > low_us) {
                let mut after = (low_us.saturating_sub(1), Uuid::max());
                loop {
                    let entries = self.tables.swept_entries(of, bucket, after).await?;
                    pace.after(entries.len()).await;
                    for (_, message) in &entries {
                        candidates.remove(message);
                    }
                    match entries.last() {
                        Some(last) if entries.len() == SWEPT_PAGE => after = *last,
                        _ => break,
                    }
                }
            }
        }
        Ok(candidates)
    }

    /// Gives messages an entry that are there still and that nobody has touched.
    async fn restore(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        missing: &[(Uuid, SweptMessage)],
        looked_us: i64,
    ) -> usize {
        let rows = self.rows(facts, queue).at(Consistency::LocalQuorum);
        let lost: Vec<Entry> =
            missing.iter().map(|(message, found)| lost_entry(*message, found)).collect();
        let (began, mut entries) = (Instant::now(), Vec::new());
        let messages = rows.read_messages(&lost).await;
        let now_us = self.clock.now_us();
        for ((entry, (_, found)), message) in lost.iter().zip(missing).zip(messages) {
            // One that cannot be read now has its turn in the next sweep.
            let Ok(Some(message)) = message else { continue };
            let expires_at_ms =
                sent_at_ms(entry.message).saturating_add(facts.settings.retention_ms);
            let is_expired = expires_at_ms < self.clock.now_ms();
            if is_expired || message.lease_written_at_us != found.lease_written_at_us {
                continue;
            }
            let hidden_us = (facts.settings.visibility_timeout_ms * 1_000) as i64;
            let visible_at_us = restored_at_us(found, looked_us, hidden_us, now_us);
            let row = Entry {
                visible_at_us,
                bucket: queue.place_entry(visible_at_us, now_us, self.peers.front_ends()),
                bytes: message.content.bytes().min(i32::MAX as usize) as i32,
                group: group_of(message.content.group_id.as_deref()),
                written_at_us: now_us.max(found.lease_written_at_us.saturating_add(1)),
                ..*entry
            };
            entries.push(Timed { row, ttl_s: entry_ttl_s(facts, entry.message, now_us) });
        }
        let inserted = self.insert_entries(&rows, queue, &mut entries, began).await;
        let restored = inserted.iter().filter(|inserted| inserted.is_ok()).count();
        if let Some(first) = entries.first() {
            queue.arrived.notify_one();
            self.peers.stored(queue.generation, &first.row);
        }
        restored
    }
}

/// When a message is visible again whose entry was missing at `looked_us`. Somebody may have received it before that, for
/// as long as the queue hides messages: of a reception nothing is left but its entry.
fn restored_at_us(found: &SweptMessage, looked_us: i64, hidden_us: i64, now_us: i64) -> i64 {
    now_us.max(looked_us.saturating_add(hidden_us)).max(found.lease_visible_at_us)
}

/// The sweep asks more than half of the replicas, whatever the queue's own consistency is.
fn swept(generation: Uuid) -> Of {
    Of { generation, consistency: Consistency::LocalQuorum }
}

/// What is known of an entry that is not there.
fn lost_entry(message: Uuid, found: &SweptMessage) -> Entry {
    Entry {
        visible_at_us: 0,
        message,
        bucket: found.bucket,
        body: found.bucket,
        // Not known: taken to be large, so that few are read in a request.
        bytes: LOST_BYTES,
        receive_count: 0,
        first_received_at_ms: 0,
        group: 0,
        written_at_us: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn nothing_is_visible_before_its_time() {
        let mut found = SweptMessage {
            bucket: Bucket::holding(0, 0),
            lease_visible_at_us: 0,
            lease_written_at_us: 0,
        };
        assert_eq!(restored_at_us(&found, 5 * SECOND, 0, 7 * SECOND), 7 * SECOND);
        assert_eq!(restored_at_us(&found, 5 * SECOND, 30 * SECOND, 7 * SECOND), 35 * SECOND);
        found.lease_visible_at_us = 99 * SECOND;
        assert_eq!(restored_at_us(&found, 5 * SECOND, 30 * SECOND, 7 * SECOND), 99 * SECOND);
    }
}
