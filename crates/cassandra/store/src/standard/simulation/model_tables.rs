//! The tables of standard queues over the model, as one front-end asks for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quelea_sqs_protocol::{Fault, QueueRef};
use tokio::time::sleep;
use uuid::Uuid;

use super::cluster::{Cluster, unavailable};
use super::process::{Gate, lock};
use super::queue_rows::KnownQueues;
use super::replica::{Cell, Cells, Key, Mutation, Part, Partition, Value, needed};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::database::For;
use crate::database::queue_table::Record;
use crate::entry::{CountedEntry, Entry};
use crate::standard::content::StoredMessage;
use crate::standard::row_write::RowWrite;
use crate::standard::tables::{
    Asked, FoundLeases, FoundMessages, FoundPage, Lease, List, ListedPage, Of, SWEPT_PAGE,
    SweptMessage, Tables, Written,
};

pub(super) struct ModelTables {
    pub(super) cluster: Arc<Cluster>,
    /// The nodes' time, by which rows end.
    pub(super) clock: Arc<Clock>,
    pub(super) gate: Gate,
    pub(super) queues: KnownQueues,
}

impl ModelTables {
    fn change(&self, of: Of, partition: Partition, cells: Vec<(Key, Cell)>) -> Asked<'_, ()> {
        Box::pin(async move {
            self.gate.pass().await;
            let written = self.cluster.write(needed(of.consistency), Mutation { partition, cells });
            let written = written.await;
            self.gate.pass().await;
            written
        })
    }

    async fn read(&self, of: Of, partition: Partition, parts: &[Part]) -> Result<Cells, Fault> {
        self.gate.pass().await;
        let known = self.cluster.read(needed(of.consistency), partition, parts).await;
        self.gate.pass().await;
        known
    }

    async fn rows(&self, of: Of, bucket: Bucket, parts: &[Part]) -> Result<Cells, Fault> {
        self.read(of, Partition::Rows(of.generation, bucket), parts).await
    }

    fn ends_at_us(&self, ttl_s: i32) -> i64 {
        self.clock.now_us() + i64::from(ttl_s) * 1_000_000
    }

    fn live<'a>(&self, cells: &'a Cells, key: Key) -> Option<&'a Value> {
        cells.get(&key)?.live(self.clock.now_us())
    }

    fn message(&self, cells: &Cells, message: Uuid) -> Option<StoredMessage> {
        let Some(Value::Message(content)) = self.live(cells, Key::Message(message)) else {
            return None;
        };
        let lease = self.stored_lease(cells, message);
        Some(StoredMessage {
            content: (**content).clone(),
            lease_written_at_us: lease.map_or(0, |lease| lease.written_at_us),
        })
    }

    fn stored_lease(&self, cells: &Cells, message: Uuid) -> Option<Lease> {
        match self.live(cells, Key::Lease(message)) {
            Some(Value::Lease(lease)) => Some(*lease),
            _ => None,
        }
    }

    fn live_entries(&self, cells: &Cells, from: (i64, Uuid)) -> Vec<Entry> {
        let now_us = self.clock.now_us();
        let entry = |(_, cell): (&Key, &Cell)| match cell.live(now_us) {
            Some(Value::Entry(entry)) => Some(*entry),
            _ => None,
        };
        cells.range(entries_from(from)).filter_map(entry).collect()
    }

    async fn all_listed(&self, of: Of, list: List, from: Bucket) -> Result<Vec<Bucket>, Fault> {
        let parts = [Key::Bucket(from)..=Key::Bucket(Bucket { start_s: i64::MAX, level: i8::MAX })];
        let cells = self.read(of, Partition::Listed(of.generation, list), &parts).await?;
        let now_us = self.clock.now_us();
        let listed = |(key, cell): (&Key, &Cell)| match key {
            Key::Bucket(bucket) => cell.live(now_us).map(|_| *bucket),
            _ => None,
        };
        Ok(cells.iter().filter_map(listed).collect())
    }

    /// What a write makes of cells.
    fn cells(&self, write: RowWrite, to: &mut Vec<(Key, Cell)>) {
        let key = |entry: &Entry| Key::Entry(entry.visible_at_us, entry.message);
        match write {
            RowWrite::InsertMessage(row) => {
                let value = Value::Message(Arc::new(row.content));
                let cell = Cell::new(row.written_at_us, self.ends_at_us(row.ttl_s), value);
                to.push((Key::Message(row.id), cell));
            }
            RowWrite::InsertEntry(new) => {
                let (ends_at_us, value) = (self.ends_at_us(new.ttl_s), Value::Entry(new.row));
                to.push((key(&new.row), Cell::new(new.row.written_at_us, ends_at_us, value)));
            }
            RowWrite::ReplaceEntry(new, old) => {
                self.cells(RowWrite::InsertEntry(new), to);
                self.cells(RowWrite::DeleteEntry(old), to);
            }
            RowWrite::DeleteEntry(entry) => {
                to.push((key(&entry), Cell::deleted(entry.deleted_at_us())));
            }
            RowWrite::NoteLease(new) => {
                let Entry { message, visible_at_us, written_at_us, bucket, .. } = new.row;
                let value = Value::Lease(Lease { visible_at_us, written_at_us, bucket });
                let cell = Cell::new(written_at_us, self.ends_at_us(new.ttl_s), value);
                to.push((Key::Lease(message), cell));
            }
            RowWrite::DeleteMessage(entry, at_us) => {
                to.push((Key::Message(entry.message), Cell::deleted(at_us)));
                to.push((Key::Lease(entry.message), Cell::deleted(at_us)));
            }
        }
    }
}

/// Returns all of a message's row.
fn row_of(message: Uuid) -> [Part; 2] {
    [Key::Message(message)..=Key::Message(message), Key::Lease(message)..=Key::Lease(message)]
}

/// Returns a bucket's entries from one on.
fn entries_from((visible_at_us, message): (i64, Uuid)) -> Part {
    Key::Entry(visible_at_us, message)..=Key::Entry(i64::MAX, Uuid::max())
}

impl Tables for ModelTables {
    fn record<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>> {
        Box::pin(async move {
            match self.queues.remembered(queue) {
                Some(remembered) => Ok(remembered),
                None => self.record_now(queue).await,
            }
        })
    }

    fn record_now<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>> {
        Box::pin(async move {
            self.gate.pass().await;
            self.cluster.transact().await?;
            let record = self.queues.read(queue);
            self.gate.pass().await;
            Ok(record)
        })
    }

    fn forget(&self, queue: &QueueRef) {
        self.queues.forget(queue);
    }

    fn write(&self, of: Of, writes: Vec<RowWrite>) -> Written<'_> {
        let buckets: Vec<Bucket> = writes.iter().map(RowWrite::bucket).collect();
        let Some(bucket) = buckets.first().copied() else {
            return Box::pin(async { Vec::new() });
        };
        assert!(buckets.iter().all(|one| *one == bucket), "one partition");
        let mut cells = Vec::new();
        writes.into_iter().for_each(|write| self.cells(write, &mut cells));
        let written = self.change(of, Partition::Rows(of.generation, bucket), cells);
        Box::pin(async move { vec![written.await; buckets.len()] })
    }

    fn messages(&self, of: Of, bucket: Bucket, messages: Vec<Uuid>) -> Asked<'_, FoundMessages> {
        Box::pin(async move {
            let parts: Vec<Part> = messages.iter().flat_map(|id| row_of(*id)).collect();
            let cells = self.rows(of, bucket, &parts).await?;
            if messages.iter().any(|id| lock(&self.cluster.unanswered).contains(id)) {
                let after = *lock(&self.cluster.unanswered_after);
                sleep(after).await;
                return Err(unavailable());
            }
            let unreadable = lock(&self.cluster.unreadable);
            let found = messages.into_iter().filter_map(|id| {
                let message = self.message(&cells, id)?;
                Some((id, (!unreadable.contains(&id)).then_some(message)))
            });
            Ok(found.collect())
        })
    }

    fn entries(&self, of: Of, bucket: Bucket, from_us: i64, most: usize) -> Asked<'_, Vec<Entry>> {
        self.cluster.head_reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let from = (from_us, Uuid::nil());
            let cells = self.rows(of, bucket, &[entries_from(from)]).await?;
            let mut entries = self.live_entries(&cells, from);
            entries.truncate(most);
            Ok(entries)
        })
    }

    fn counted(
        &self,
        of: Of,
        bucket: Bucket,
        from_us: i64,
        most: usize,
    ) -> Asked<'_, Vec<CountedEntry>> {
        Box::pin(async move {
            let counted = |entry: Entry| CountedEntry {
                bucket,
                visible_at_us: entry.visible_at_us,
                message: entry.message,
                body: Some(entry.body),
                receive_count: entry.receive_count,
                written_at_us: entry.written_at_us,
                group: entry.group,
            };
            let entries = self.entries(of, bucket, from_us, most).await?;
            Ok(entries.into_iter().map(counted).collect())
        })
    }

    fn leases(
        &self,
        of: Of,
        bucket: Bucket,
        messages: Vec<Uuid>,
        _: For,
    ) -> Asked<'_, FoundLeases> {
        Box::pin(async move {
            let parts: Vec<_> = messages.iter().flat_map(|message| row_of(*message)).collect();
            let cells = self.rows(of, bucket, &parts).await?;
            let there = |message: &Uuid| self.message(&cells, *message).is_some();
            let found = messages.into_iter().filter(there);
            Ok(found.map(|message| (message, self.stored_lease(&cells, message))).collect())
        })
    }

    fn list(&self, of: Of, list: List, buckets: Vec<Bucket>, now_us: i64) -> Asked<'_, ()> {
        let cell = Cell::new(now_us, i64::MAX, Value::Listed);
        let cells = buckets.into_iter().map(|bucket| (Key::Bucket(bucket), cell.clone()));
        self.change(of, Partition::Listed(of.generation, list), cells.collect())
    }

    fn unlist(&self, of: Of, bucket: Bucket, now_us: i64) -> Asked<'_, ()> {
        let partition = Partition::Listed(of.generation, List::Messages);
        self.change(of, partition, vec![(Key::Bucket(bucket), Cell::deleted(now_us))])
    }

    fn unlist_before(&self, of: Of, start_s: i64, at_us: i64) -> Asked<'_, ()> {
        Box::pin(async move {
            let first = Bucket { start_s: i64::MIN, level: i8::MIN };
            let mut listed = self.all_listed(of, List::Entries, first).await?;
            listed.retain(|bucket| bucket.start_s < start_s);
            let cells = listed.into_iter().map(|one| (Key::Bucket(one), Cell::deleted(at_us)));
            let cells: Vec<_> = cells.collect();
            if cells.is_empty() {
                return Ok(());
            }
            self.change(of, Partition::Listed(of.generation, List::Entries), cells).await
        })
    }

    fn listed(
        &self,
        of: Of,
        list: List,
        after: Bucket,
        most: usize,
        _: For,
    ) -> Asked<'_, ListedPage> {
        Box::pin(async move {
            let mut buckets = self.all_listed(of, list, after).await?;
            buckets.retain(|bucket| *bucket > after);
            buckets.truncate(most);
            let next = buckets.last().copied().filter(|_| buckets.len() == most);
            Ok(ListedPage { buckets, next })
        })
    }

    fn low_water_mark(&self, of: Of) -> Asked<'_, i64> {
        Box::pin(async move {
            let cells =
                self.read(of, Partition::Mark(of.generation), &[Key::Mark..=Key::Mark]).await?;
            match self.live(&cells, Key::Mark) {
                Some(Value::Mark(low_us)) => Ok(*low_us),
                _ => Ok(0),
            }
        })
    }

    fn write_low_water_mark(&self, of: Of, low_us: i64) -> Asked<'_, ()> {
        let cell = Cell::new(low_us, i64::MAX, Value::Mark(low_us));
        self.change(of, Partition::Mark(of.generation), vec![(Key::Mark, cell)])
    }

    fn swept_messages(&self, of: Of, bucket: Bucket, after: Uuid) -> Asked<'_, FoundPage> {
        Box::pin(async move {
            let messages = Key::Message(Uuid::nil())..=Key::Message(Uuid::max());
            let leases = Key::Lease(Uuid::nil())..=Key::Lease(Uuid::max());
            let cells = self.rows(of, bucket, &[messages, leases]).await?;
            let found = |key: &Key| match key {
                Key::Message(id) if *id > after => {
                    self.message(&cells, *id)?;
                    let lease = self.stored_lease(&cells, *id);
                    let found = SweptMessage {
                        bucket,
                        lease_visible_at_us: lease.map_or(0, |lease| lease.visible_at_us),
                        lease_written_at_us: lease.map_or(0, |lease| lease.written_at_us),
                    };
                    Some((*id, found))
                }
                _ => None,
            };
            let found: Vec<_> = cells.keys().filter_map(found).collect();
            self.cluster.swept_rows.fetch_add(found.len() as u64, Ordering::Relaxed);
            Ok((found, None))
        })
    }

    fn swept_entries(
        &self,
        of: Of,
        bucket: Bucket,
        after: (i64, Uuid),
    ) -> Asked<'_, Vec<(i64, Uuid)>> {
        Box::pin(async move {
            let cells = self.rows(of, bucket, &[entries_from(after)]).await?;
            let mut found: Vec<(i64, Uuid)> = self
                .live_entries(&cells, after)
                .into_iter()
                .map(|entry| (entry.visible_at_us, entry.message))
                .filter(|key| *key > after)
                .collect();
            found.truncate(SWEPT_PAGE);
            self.cluster.swept_rows.fetch_add(found.len() as u64, Ordering::Relaxed);
            Ok(found)
        })
    }
}
