//! The tables of standard queues, as Cassandra has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use quelea_sqs_protocol::{Fault, QueueRef};
use scylla::response::query_result::QueryRowsResult;
use scylla::value::Row;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::fault::{RequestFailure, unreadable};
use crate::database::queue_table::{QueueTable, Record};
use crate::database::statements::Statements;
use crate::database::{Database, For};
use crate::entry::{CountedEntry, Entry};
use crate::limits::BATCHES_AT_ONCE;
use crate::standard::content::{Attributes, Content, StoredMessage, read_attributes};
use crate::standard::row_write::RowWrite;
use crate::standard::tables::{
    Asked, FoundLeases, FoundMessages, FoundPage, Lease, List, ListedPage, Of, SWEPT_PAGE,
    SweptMessage, Tables, Written,
};

/// For how long a list has a partition, and the low-water mark is stored, in seconds: longer than any message lives.
const LISTED_TTL_S: i32 = 16 * 86_400;

/// Entries of a bucket that are left out at most, since they cannot be read.
const LEFT_OUT_MAX: usize = 1_000;

/// Cassandra's.
pub(crate) struct CassandraTables {
    pub(crate) database: Arc<Database>,
    pub(crate) queues: Arc<QueueTable>,
    pub(crate) statements: Statements,
}

impl CassandraTables {
    /// Rows cannot be read. They stay: what cannot be read is not gone.
    fn leave_out(&self, of: Of, bucket: Bucket, count: usize, first: &str) {
        self.database.count_unreadable_rows(count as u64);
        // Each read of the queue's head finds them again.
        if !self.database.is_time_to_warn_of_unreadable_rows() {
            return;
        }
        let (generation, Bucket { start_s, level }) = (of.generation, bucket);
        tracing::warn!(%generation, start_s, level, count, first, "rows of a queue cannot be read, and are left out");
    }
}

impl Tables for CassandraTables {
    fn record<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>> {
        Box::pin(self.queues.record(&self.database, queue))
    }

    fn record_now<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>> {
        Box::pin(self.queues.record_now(&self.database, queue))
    }

    fn forget(&self, queue: &QueueRef) {
        self.queues.forget(queue);
    }

    fn write(&self, of: Of, writes: Vec<RowWrite>) -> Written<'_> {
        let prepared = (&self.statements, of.consistency);
        let mut statements = Vec::with_capacity(writes.len());
        // Where those of each write end.
        let mut ends = Vec::with_capacity(writes.len());
        for write in writes {
            write.put(of.generation, prepared, &mut statements);
            ends.push(statements.len());
        }
        Box::pin(async move {
            let write =
                |statements| self.database.try_write_all(For::Messages, of.consistency, statements);
            let failure = match write(&statements).await {
                Ok(()) => return vec![Ok(()); ends.len()],
                Err(failure) => failure,
            };
            // A disk that is full, say, has nothing to do with any of them.
            if !failure.is_of_a_size() || ends.len() == 1 {
                return vec![Err(failure.refusal()); ends.len()];
            }
            // What is wrong with one is not to keep the others from being stored.
            let (mut begin, mut each) = (0, Vec::with_capacity(ends.len()));
            for end in ends {
                each.push(write(&statements[begin..end]));
                begin = end;
            }
            let each: Vec<_> = stream::iter(each).buffered(BATCHES_AT_ONCE).collect().await;
            each.into_iter().map(|written| written.map_err(RequestFailure::refusal)).collect()
        })
    }

    fn messages(&self, of: Of, bucket: Bucket, messages: Vec<Uuid>) -> Asked<'_, FoundMessages> {
        Box::pin(async move {
            let values = (of.generation, bucket.start_s, bucket.level, messages);
            let statement = &self.statements.read_messages;
            let rows = self.database.read(For::Messages, statement, of.consistency, values).await?;
            let mut messages = BTreeMap::new();
            for (at, row) in rows.rows::<MessageRow>().map_err(unreadable)?.enumerate() {
                match row.map(message) {
                    Ok((id, message)) => {
                        messages.extend(message.map(|message| (id, Some(message))))
                    }
                    Err(error) => {
                        let id = id_at(&rows, at).ok_or_else(|| unreadable(&error))?;
                        self.leave_out(of, bucket, 1, &format!("the message {id}: {error}"));
                        messages.insert(id, None);
                    }
                }
            }
            Ok(messages)
        })
    }

    fn entries(&self, of: Of, bucket: Bucket, from_us: i64, most: usize) -> Asked<'_, Vec<Entry>> {
        Box::pin(async move {
            let statement = &self.statements.read_entries;
            let mut limit = most;
            loop {
                let values = (of.generation, bucket.start_s, bucket.level, from_us, limit as i32);
                let rows = self.database.read(For::Messages, statement, of.consistency, values);
                let rows = rows.await?;
                let (entries, left_out) = entries_of(bucket, &rows)?;
                let Some((count, first)) = left_out else { return Ok(entries) };
                // Fewer than were asked for would be all that there are.
                if entries.len() >= most || rows.rows_num() < limit {
                    self.leave_out(of, bucket, count, &first);
                    return Ok(entries);
                }
                if count > LEFT_OUT_MAX {
                    return Err(unreadable(first));
                }
                // Twice as many, so that few reads find out how many there are.
                limit = most + 2 * count;
            }
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
            let values = (of.generation, bucket.start_s, bucket.level, from_us, most as i32);
            let statement = &self.statements.count_entries;
            let rows = self.database.read(For::Upkeep, statement, of.consistency, values).await?;
            type Row = (i64, Uuid, Option<i64>, Option<i8>, Option<i32>, Option<i64>, Option<i64>);
            let mut counted = Vec::with_capacity(rows.rows_num());
            for row in rows.rows::<Row>().map_err(unreadable)? {
                let (visible_at_us, message, start_s, level, receive_count, written, group) =
                    row.map_err(unreadable)?;
                counted.push(CountedEntry {
                    bucket,
                    visible_at_us,
                    message,
                    body: stored_bucket(start_s, level),
                    receive_count: receive_count.unwrap_or_default(),
                    written_at_us: written.unwrap_or_default(),
                    group: group.unwrap_or_default(),
                });
            }
            Ok(counted)
        })
    }

    fn leases(
        &self,
        of: Of,
        bucket: Bucket,
        messages: Vec<Uuid>,
        why: For,
    ) -> Asked<'_, FoundLeases> {
        Box::pin(async move {
            let values = (of.generation, bucket.start_s, bucket.level, messages);
            let statement = &self.statements.read_leases;
            let rows = self.database.read(why, statement, of.consistency, values).await?;
            type Row = (Uuid, Option<String>, Option<i64>, Option<i64>, Option<i64>, Option<i8>);
            let mut there = FoundLeases::new();
            for row in rows.rows::<Row>().map_err(unreadable)? {
                let (message, sender, visible_at_us, written_at_us, start_s, level) =
                    row.map_err(unreadable)?;
                // Without a sender it is what a late change of visibility has left of a deleted message.
                if sender.is_some() {
                    let lease = visible_at_us.zip(written_at_us).zip(stored_bucket(start_s, level));
                    let lease = lease.map(|((visible_at_us, written_at_us), bucket)| Lease {
                        visible_at_us,
                        written_at_us,
                        bucket,
                    });
                    there.insert(message, lease);
                }
            }
            Ok(there)
        })
    }

    fn list(&self, of: Of, list: List, buckets: Vec<Bucket>, now_us: i64) -> Asked<'_, ()> {
        let statement = match list {
            List::Entries => &self.statements.list_entries,
            List::Messages => &self.statements.sweep.list_messages,
        };
        let value =
            |bucket: &Bucket| (of.generation, bucket.start_s, bucket.level, now_us, LISTED_TTL_S);
        let values = buckets.iter().map(value).collect();
        Box::pin(self.database.write(For::Upkeep, statement, of.consistency, values))
    }

    fn unlist(&self, of: Of, bucket: Bucket, now_us: i64) -> Asked<'_, ()> {
        let values = vec![(now_us, of.generation, bucket.start_s, bucket.level)];
        Box::pin(self.database.write(
            For::Sweep,
            &self.statements.sweep.unlist_messages,
            of.consistency,
            values,
        ))
    }

    fn unlist_before(&self, of: Of, start_s: i64, at_us: i64) -> Asked<'_, ()> {
        let values = vec![(at_us, of.generation, start_s)];
        Box::pin(self.database.write(
            For::Sweep,
            &self.statements.sweep.unlist_entries,
            of.consistency,
            values,
        ))
    }

    fn listed(
        &self,
        of: Of,
        list: List,
        after: Bucket,
        most: usize,
        why: For,
    ) -> Asked<'_, ListedPage> {
        Box::pin(async move {
            let statement = match list {
                List::Entries => &self.statements.sweep.entry_list,
                List::Messages => &self.statements.sweep.message_list,
            };
            let values = (of.generation, after.start_s, after.level, most as i32);
            let rows = self.database.read(why, statement, of.consistency, values).await?;
            let (mut page, mut last) = (ListedPage::default(), None);
            for row in rows.rows::<(i64, i8)>().map_err(unreadable)? {
                let (start_s, level) = row.map_err(unreadable)?;
                last = Some(Bucket { start_s, level });
                page.buckets.extend(Bucket::stored(start_s, level));
            }
            page.next = last.filter(|_| rows.rows_num() >= most);
            Ok(page)
        })
    }

    fn low_water_mark(&self, of: Of) -> Asked<'_, i64> {
        Box::pin(async move {
            let statement = &self.statements.read_low_water_mark;
            let rows = self.database.read(For::Upkeep, statement, of.consistency, (of.generation,));
            let row = rows.await?.maybe_first_row::<(Option<i64>,)>().map_err(unreadable)?;
            Ok(row.and_then(|(low_us,)| low_us).unwrap_or_default())
        })
    }

    fn write_low_water_mark(&self, of: Of, low_us: i64) -> Asked<'_, ()> {
        let values = vec![(of.generation, low_us, low_us, LISTED_TTL_S)];
        Box::pin(self.database.write(
            For::Upkeep,
            &self.statements.write_low_water_mark,
            of.consistency,
            values,
        ))
    }

    fn swept_messages(&self, of: Of, bucket: Bucket, after: Uuid) -> Asked<'_, FoundPage> {
        Box::pin(async move {
            let values = (of.generation, bucket.start_s, bucket.level, after, SWEPT_PAGE as i32);
            let statement = &self.statements.sweep.messages;
            let rows = self.database.read(For::Sweep, statement, of.consistency, values).await?;
            let (mut found, mut last) = (Vec::with_capacity(rows.rows_num()), None);
            type Row = (Uuid, Option<String>, Option<i64>, Option<i64>);
            for row in rows.rows::<Row>().map_err(unreadable)? {
                let (message, sender, visible_at_us, written_at_us) = row.map_err(unreadable)?;
                last = Some(message);
                // What is left of a message that was deleted is none.
                if sender.is_some() {
                    let lease_visible_at_us = visible_at_us.unwrap_or_default();
                    let lease_written_at_us = written_at_us.unwrap_or_default();
                    let one = SweptMessage { bucket, lease_visible_at_us, lease_written_at_us };
                    found.push((message, one));
                }
            }
            Ok((found, last.filter(|_| rows.rows_num() == SWEPT_PAGE)))
        })
    }

    fn swept_entries(
        &self,
        of: Of,
        bucket: Bucket,
        (visible_at_us, message): (i64, Uuid),
    ) -> Asked<'_, Vec<(i64, Uuid)>> {
        Box::pin(async move {
            let Bucket { start_s, level } = bucket;
            let page = SWEPT_PAGE as i32;
            let values = (of.generation, start_s, level, visible_at_us, message, page);
            let statement = &self.statements.sweep.entries;
            let rows = self.database.read(For::Sweep, statement, of.consistency, values).await?;
            let rows = rows.rows::<(i64, Uuid)>().map_err(unreadable)?;
            rows.map(|row| row.map_err(unreadable)).collect()
        })
    }
}

type MessageRow = (
    Uuid,
    Option<Bytes>,
    Option<Attributes>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<(String, String)>,
    Option<i32>,
    Option<i64>,
);

/// Returns the id of a message whose row cannot be read.
fn id_at(rows: &QueryRowsResult, at: usize) -> Option<Uuid> {
    let row = rows.rows::<Row>().ok()?.nth(at)?.ok()?;
    row.columns.first()?.as_ref()?.as_uuid()
}

/// Returns a message's id and what is there of it.
fn message(row: MessageRow) -> (Uuid, Option<StoredMessage>) {
    let (
        id,
        body,
        attributes,
        sender,
        trace_header,
        group_id,
        deduplication_id,
        source,
        earlier,
        lease,
    ) = row;
    // Without a sender it is what a late change of visibility has left of a deleted message.
    let Some(sender) = sender else { return (id, None) };
    let content = Content {
        body: body.unwrap_or_default(),
        attributes: attributes.map(read_attributes).unwrap_or_default(),
        sender,
        trace_header,
        group_id,
        deduplication_id,
        source: source
            .map(|(account, name)| QueueRef { account: account.into(), name: name.into() }),
        earlier_receives: earlier.unwrap_or_default(),
    };
    (id, Some(StoredMessage { content, lease_written_at_us: lease.unwrap_or_default() }))
}

type EntryRow = (
    i64,
    Uuid,
    Option<i64>,
    Option<i8>,
    Option<i32>,
    Option<i32>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

/// Entries, how many were left out since they cannot be read, and why the first of them.
type PartOfEntries = (Vec<Entry>, Option<(usize, String)>);

fn entries_of(bucket: Bucket, rows: &QueryRowsResult) -> Result<PartOfEntries, Fault> {
    let mut entries = Vec::with_capacity(rows.rows_num());
    let mut left_out: Option<(usize, String)> = None;
    let mut leave_out = |why| left_out.get_or_insert((0, why)).0 += 1;
    for row in rows.rows::<EntryRow>().map_err(unreadable)? {
        match row.map(|row| entry(bucket, row)) {
            Ok(Ok(entry)) => entries.push(entry),
            Ok(Err(why)) => leave_out(why),
            Err(error) => leave_out(error.to_string()),
        }
    }
    Ok((entries, left_out))
}

fn entry(bucket: Bucket, row: EntryRow) -> Result<Entry, String> {
    let (
        visible_at_us,
        message,
        body_start_s,
        body_level,
        bytes,
        receive_count,
        first,
        written,
        group,
    ) = row;
    let (Some(body), Some(written_at_us)) = (stored_bucket(body_start_s, body_level), written)
    else {
        return Err(format!("the entry of {message} at {visible_at_us} is not whole"));
    };
    Ok(Entry {
        visible_at_us,
        message,
        bucket,
        body,
        bytes: bytes.unwrap_or_default(),
        receive_count: receive_count.unwrap_or_default(),
        first_received_at_ms: first.unwrap_or_default(),
        group: group.unwrap_or_default(),
        written_at_us,
    })
}

fn stored_bucket(start_s: Option<i64>, level: Option<i8>) -> Option<Bucket> {
    start_s.zip(level).and_then(|(start_s, level)| Bucket::stored(start_s, level))
}
