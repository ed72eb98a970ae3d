//! Rows of messages and of the index as Cassandra has them, written and read in batches of one partition.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use quelea_sqs_protocol::{Consistency, Fault, QueueRef};
use uuid::Uuid;

use crate::batch::{Batch, batches};
use crate::bucket::Bucket;
use crate::content::{Attributes, Content, read_attributes};
use crate::database::{Database, For};
use crate::entry::Entry;
use crate::fault::unreadable;
use crate::limits::{BATCHES_AT_ONCE, READ_ROWS_MAX};
use crate::row_write::RowWrite;

/// Where a queue's rows are, and how many replicas answer for them.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) database: &'a Database,
    pub(crate) generation: Uuid,
    pub(crate) consistency: Consistency,
}

/// A message's row, as it is read.
#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) content: Content,
    /// The timestamp of the last entry that somebody asked for by changing the visibility; 0: nobody did.
    pub(crate) lease_written_at_us: i64,
}

impl Rows<'_> {
    /// Carries out writes, those of one partition together; an outcome for each.
    pub(crate) async fn write(&self, writes: Vec<RowWrite>) -> Vec<Result<(), Fault>> {
        let count = writes.len();
        let sized = writes.into_iter().enumerate();
        let sized = sized.map(|(number, write)| (write.bucket(), write.bytes(), (number, write)));
        let write = |batch: Batch<Bucket, (usize, RowWrite)>| async move {
            let prepared = (&self.database.statements, self.consistency);
            let mut numbers = Vec::with_capacity(batch.rows.len());
            let mut statements = Vec::with_capacity(batch.rows.len());
            for (number, write) in batch.rows {
                numbers.push(number);
                write.put(self.generation, prepared, &mut statements);
            }
            let written = self.database.write_all(For::Messages, self.consistency, statements);
            (numbers, written.await)
        };
        let mut outcomes = vec![Ok(()); count];
        let mut written = stream::iter(batches(sized)).map(write).buffer_unordered(BATCHES_AT_ONCE);
        while let Some((numbers, outcome)) = written.next().await {
            for number in numbers {
                outcomes[number] = outcome.clone();
            }
        }
        outcomes
    }

    /// Removes rows of the index.
    pub(crate) async fn delete_entries(&self, entries: &[Entry]) -> Vec<Result<(), Fault>> {
        self.write(entries.iter().copied().map(RowWrite::DeleteEntry).collect()).await
    }

    /// Reads messages; `Ok(None)`: it is not there. What one replica does not have is asked of more than half of them:
    /// whoever finds no message drops its entry for good.
    pub(crate) async fn read_messages(
        &self,
        entries: &[Entry],
    ) -> Vec<Result<Option<StoredMessage>, Fault>> {
        let mut messages = self.read_messages_once(entries).await;
        if self.consistency == Consistency::LocalQuorum {
            return messages;
        }
        let missing: Vec<usize> =
            (0..entries.len()).filter(|number| matches!(messages[*number], Ok(None))).collect();
        if missing.is_empty() {
            return messages;
        }
        let again: Vec<Entry> = missing.iter().map(|number| entries[*number]).collect();
        let quorum = Self { consistency: Consistency::LocalQuorum, ..*self };
        for (number, message) in missing.into_iter().zip(quorum.read_messages_once(&again).await) {
            messages[number] = message;
        }
        messages
    }

    async fn read_messages_once(
        &self,
        entries: &[Entry],
    ) -> Vec<Result<Option<StoredMessage>, Fault>> {
        let sized = entries.iter().enumerate();
        let sized = sized.map(|(number, entry)| (entry.body, entry.bytes.max(0) as usize, number));
        let read = |batch: Batch<Bucket, usize>| async move {
            let found = self.read_partition(batch.partition, entries, &batch.rows).await;
            (batch.rows, found)
        };
        let mut messages: Vec<Result<Option<StoredMessage>, Fault>> = vec![Ok(None); entries.len()];
        let mut read = stream::iter(batches(sized)).map(read).buffer_unordered(BATCHES_AT_ONCE);
        while let Some((numbers, found)) = read.next().await {
            match found {
                Ok(mut found) => {
                    for number in numbers {
                        messages[number] = Ok(found.remove(&entries[number].message));
                    }
                }
                Err(fault) => {
                    numbers.iter().for_each(|number| messages[*number] = Err(fault.clone()))
                }
            }
        }
        messages
    }

    async fn read_partition(
        &self,
        bucket: Bucket,
        entries: &[Entry],
        numbers: &[usize],
    ) -> Result<BTreeMap<Uuid, StoredMessage>, Fault> {
        let ids: Vec<Uuid> = numbers.iter().map(|number| entries[*number].message).collect();
        let values = (self.generation, bucket.start_s, bucket.level, ids);
        let statement = &self.database.statements.read_messages;
        let rows = self.database.read(For::Messages, statement, self.consistency, values).await?;
        type Row = (
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
        let mut messages = BTreeMap::new();
        for row in rows.rows::<Row>().map_err(unreadable)? {
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
            ) = row.map_err(unreadable)?;
            // Without a sender it is what a late change of visibility has left of a deleted message.
            let Some(sender) = sender else { continue };
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
            messages.insert(
                id,
                StoredMessage { content, lease_written_at_us: lease.unwrap_or_default() },
            );
        }
        Ok(messages)
    }

    /// The entries of a bucket from a time on, the oldest first.
    pub(crate) async fn read_entries(
        &self,
        bucket: Bucket,
        from_us: i64,
        most: usize,
    ) -> Result<Vec<Entry>, Fault> {
        let most = most.min(READ_ROWS_MAX) as i32;
        let values = (self.generation, bucket.start_s, bucket.level, from_us, most);
        let statement = &self.database.statements.read_entries;
        let rows = self.database.read(For::Messages, statement, self.consistency, values).await?;
        type Row = (
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
        let mut entries = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<Row>().map_err(unreadable)? {
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
            ) = row.map_err(unreadable)?;
            let body = body_start_s
                .zip(body_level)
                .and_then(|(start_s, level)| Bucket::stored(start_s, level));
            let (Some(body), Some(written_at_us)) = (body, written) else {
                return Err(unreadable(format!(
                    "the entry of {message} at {visible_at_us} is not whole"
                )));
            };
            entries.push(Entry {
                visible_at_us,
                message,
                bucket,
                body,
                bytes: bytes.unwrap_or_default(),
                receive_count: receive_count.unwrap_or_default(),
                first_received_at_ms: first.unwrap_or_default(),
                group: group.unwrap_or_default(),
                written_at_us,
            });
        }
        Ok(entries)
    }
}
