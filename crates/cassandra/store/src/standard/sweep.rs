//! The slow sweep: a message that no entry leads to gets one anew. Its entry was lost, or came behind the low-water mark.
//!
//! It reads the index from the low-water mark on and remembers which messages it leads to, then goes through the partitions of messages
//! that are older than any delay. If one is missing the index is read once more, a little later: an entry that moves forward while
//! the index is read is found at one of its places, and one that moves back is not missed twice. What is missing in both readings gets an
//! entry, and nothing else is written: a message that was deleted meanwhile stays deleted, since an entry without a message
//! leads nowhere. So each row is read twice at most, and what is kept of them is bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quelea_sqs_protocol::{Consistency, Fault, QueueFacts, QueueRef};
use tokio::time::Instant;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::For;
use crate::database::queue_table::Record;
use crate::entry::Entry;
use crate::limits::{GRACE_MS, SWEPT_AGE_MS_MIN, SWEPT_HASHES_MAX};
use crate::standard::Standard;
use crate::standard::content::Timed;
use crate::standard::directory::Directory;
use crate::standard::fair::group_of;
use crate::standard::indexed_messages::IndexedMessages;
use crate::standard::jobs::entry_ttl_s;
use crate::standard::pace::Pace;
use crate::standard::queue::Queue;
use crate::standard::rows::Found;
use crate::standard::tables::{List, ListedPage, Of, SWEPT_PAGE, SweptMessage};
use crate::standard::taken::is_expired;

/// Before all buckets.
const BEFORE_ALL: Bucket = Bucket { start_s: i64::MIN, level: -1 };

/// Messages that get their entries together: their bodies are in memory meanwhile.
const RESTORED_AT_ONCE: usize = 16;
/// What a message is taken to have whose entry is lost.
const LOST_BYTES: i32 = 256 * 1_024;

impl Standard {
    /// Returns what is to be swept of a queue; `None`: it is not this front-end's to sweep.
    pub(crate) async fn to_sweep(&self, name: &QueueRef) -> Result<Option<Arc<Record>>, Fault> {
        let record = self.tables.record(name).await?;
        Ok(record.filter(|record| {
            !record.facts.settings.is_fifo() && self.peers.is_owner(record.generation)
        }))
    }

    /// Sweeps one queue. Returns how many messages got an entry anew.
    pub(crate) async fn sweep(&self, record: &Record, pace: &Pace) -> Result<usize, Fault> {
        let (facts, queue) = (&record.facts, self.queue(&record.facts).await?);
        self.unlist_consumed(queue.generation, pace).await?;
        let Some(oldest) = MessageWalk::new(self, &queue, BEFORE_ALL, pace).next_page().await?
        else {
            return Ok(0);
        };
        let mut indexed = IndexedMessages::new(SWEPT_HASHES_MAX, fastrand::u64(..));
        let mut messages = MessageWalk::new(self, &queue, before(oldest.bucket), pace);
        self.read_index(queue.generation, &mut indexed, pace).await?;
        let first_missing = loop {
            let Some(page) = messages.next_page().await? else { return Ok(0) };
            if page.messages.iter().any(|(message, _)| !indexed.may_lead_to(*message)) {
                break page.bucket;
            }
        };
        tokio::time::sleep(pace.again_after).await;
        let looked_from_us = self.clock.now_us();
        self.read_index(queue.generation, &mut indexed, pace).await?;
        let looked_us = self.clock.now_us();
        let touched_us = looked_from_us - (GRACE_MS * 1_000) as i64;
        let mut restored = 0;
        messages.return_to(before(first_missing));
        while let Some(mut page) = messages.next_page().await? {
            // One whose visibility was changed meanwhile may have had its entry at a place that was passed.
            page.messages.retain(|(message, found)| {
                found.lease_written_at_us < touched_us && !indexed.may_lead_to(*message)
            });
            for part in page.messages.chunks(RESTORED_AT_ONCE) {
                // Whose it is by now sweeps it, and gives them entries: two would be two deliveries.
                if !self.peers.is_owner(record.generation) {
                    return Ok(self.on_restored(facts, restored));
                }
                restored += self.restore(facts, &queue, part, looked_us).await;
                pace.after(part.len()).await;
            }
        }
        Ok(self.on_restored(facts, restored))
    }

    /// Counts what got an entry anew. Returns how many.
    fn on_restored(&self, facts: &QueueFacts, restored: usize) -> usize {
        if restored > 0 {
            tracing::warn!(queue = %facts.queue.name, restored, "messages that nothing led to can be received again");
            self.restored.fetch_add(restored as u64, Ordering::Relaxed);
        }
        restored
    }

    /// Reads the index from the low-water mark on.
    async fn read_index(
        &self,
        generation: Uuid,
        indexed: &mut IndexedMessages,
        pace: &Pace,
    ) -> Result<(), Fault> {
        let of = swept(generation);
        let low_us = self.tables.low_water_mark(of).await?;
        // The widest buckets begin this much before what is in them.
        let mut from = Bucket { start_s: Directory::first_s(low_us), level: -1 };
        loop {
            let page = self.listed(of, List::Entries, from, pace).await?;
            for bucket in page.buckets.into_iter().filter(|bucket| bucket.end_us() > low_us) {
                let mut after = (low_us.saturating_sub(1), Uuid::max());
                loop {
                    let entries = self.tables.swept_entries(of, bucket, after).await?;
                    pace.after(entries.len()).await;
                    entries.iter().for_each(|(_, message)| indexed.add(*message));
                    match entries.last() {
                        Some(last) if entries.len() == SWEPT_PAGE => after = *last,
                        _ => break,
                    }
                }
            }
            match page.next {
                Some(last) => from = last,
                None => return Ok(()),
            }
        }
    }

    async fn listed(
        &self,
        of: Of,
        list: List,
        after: Bucket,
        pace: &Pace,
    ) -> Result<ListedPage, Fault> {
        let page = self.tables.listed(of, list, after, SWEPT_PAGE, For::Sweep).await?;
        pace.after(page.buckets.len()).await;
        Ok(page)
    }

    /// Takes the partitions of entries off their list that are behind the low-water mark, where nothing lives and nothing is put any
    /// more, if there are many. Those that were listed by a clock that was ahead of the mark stay.
    async fn unlist_consumed(&self, generation: Uuid, pace: &Pace) -> Result<(), Fault> {
        let of = swept(generation);
        if self.listed(of, List::Entries, BEFORE_ALL, pace).await?.next.is_none() {
            return Ok(());
        }
        let low_us = self.tables.low_water_mark(of).await?;
        self.tables.unlist_before(of, Directory::first_s(low_us), low_us).await
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
            let Ok(Found::Message(message)) = message else { continue };
            let is_touched = message.lease_written_at_us != found.lease_written_at_us;
            if is_touched || is_expired(facts, entry.message, now_us) {
                continue;
            }
            let hidden_us = (facts.settings.visibility_timeout_ms * 1_000) as i64;
            let visible_at_us = restored_at_us(found, looked_us, hidden_us, now_us);
            let row = Entry {
                visible_at_us,
                bucket: queue.place_entry(visible_at_us, now_us, self.peers.writers()),
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

/// Some messages of one partition, as the sweep finds them.
struct Page {
    bucket: Bucket,
    messages: Vec<(Uuid, SweptMessage)>,
}

/// Goes through the messages that are old enough to be swept, by the list of their partitions. What it finds empty it takes off the
/// list.
struct MessageWalk<'a> {
    standard: &'a Standard,
    of: Of,
    pace: &'a Pace,
    /// What ends later is not looked at.
    old_us: i64,
    /// The list is read behind it.
    after: Bucket,
    /// Whether all of it is read that is old enough.
    is_listed: bool,
    listed: VecDeque<Bucket>,
    /// The partition that is being read, the last message that was, and whether there was none.
    reading: Option<(Bucket, Uuid, bool)>,
}

impl<'a> MessageWalk<'a> {
    fn new(standard: &'a Standard, queue: &Queue, after: Bucket, pace: &'a Pace) -> Self {
        let old_us = standard.clock.now_us() - (SWEPT_AGE_MS_MIN * 1_000) as i64;
        let (of, listed) = (swept(queue.generation), VecDeque::new());
        Self { standard, of, pace, old_us, after, is_listed: false, listed, reading: None }
    }

    /// Goes on behind that bucket, by the same age: what has become old enough since was not looked for in the index.
    fn return_to(&mut self, after: Bucket) {
        (self.after, self.is_listed, self.reading) = (after, false, None);
        self.listed.clear();
    }

    /// Reads the next messages, one at least; `None`: that was all.
    async fn next_page(&mut self) -> Result<Option<Page>, Fault> {
        let tables = &self.standard.tables;
        loop {
            let Some((bucket, after, was_empty)) = self.reading.take() else {
                let Some(next) = self.next_bucket().await? else { return Ok(None) };
                self.reading = Some((next, Uuid::nil(), true));
                continue;
            };
            let (messages, next) = tables.swept_messages(self.of, bucket, after).await?;
            self.pace.after(messages.len()).await;
            let is_empty = was_empty && messages.is_empty();
            match next {
                Some(after) => self.reading = Some((bucket, after, is_empty)),
                None if is_empty => {
                    tables.unlist(self.of, bucket, self.standard.clock.now_us()).await?;
                }
                None => {}
            }
            if !messages.is_empty() {
                return Ok(Some(Page { bucket, messages }));
            }
        }
    }

    async fn next_bucket(&mut self) -> Result<Option<Bucket>, Fault> {
        loop {
            while let Some(bucket) = self.listed.pop_front() {
                if bucket.end_us() <= self.old_us {
                    return Ok(Some(bucket));
                }
            }
            if self.is_listed {
                return Ok(None);
            }
            let page = self.standard.listed(self.of, List::Messages, self.after, self.pace).await?;
            let are_old = |last: &Bucket| last.start_us() <= self.old_us;
            match page.next.filter(are_old) {
                Some(last) => self.after = last,
                None => self.is_listed = true,
            }
            self.listed.extend(page.buckets);
        }
    }
}

/// Returns what is right before a bucket.
fn before(bucket: Bucket) -> Bucket {
    Bucket { level: bucket.level - 1, ..bucket }
}

/// Returns when a message is visible again whose entry was missing at `looked_us`. Somebody may
/// have received it before that, for as long as the queue hides messages: of a reception nothing is
/// left but its entry.
fn restored_at_us(found: &SweptMessage, looked_us: i64, hidden_us: i64, now_us: i64) -> i64 {
    now_us.max(looked_us.saturating_add(hidden_us)).max(found.lease_visible_at_us)
}

/// Returns the rows of a generation as the sweep asks for them: it asks more than half of the
/// replicas, whatever the queue's own consistency is.
fn swept(generation: Uuid) -> Of {
    Of { generation, consistency: Consistency::LocalQuorum }
}

/// Returns what is known of an entry that is not there.
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
