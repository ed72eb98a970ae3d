//! Rows of messages and of the index as Cassandra has them, written and read in batches of one partition.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use quelea_sqs_protocol::{Consistency, Fault, MessageAttribute, QueueRef};
use scylla::value::MaybeUnset;
use uuid::Uuid;

use crate::batch::{Batch, batches};
use crate::bucket::Bucket;
use crate::database::{Database, For};
use crate::entry::Entry;
use crate::fault::unreadable;
use crate::limits::{BATCHES_AT_ONCE, READ_ROWS_MAX};

/// A row of the index without its message's body, in bytes: what a batch counts.
const ENTRY_BYTES: usize = 128;

/// What keys and columns of a message's row take beside what it carries.
const MESSAGE_BYTES: usize = 128;

/// Where a queue's rows are, and how many replicas answer for them.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) database: &'a Database,
    pub(crate) generation: Uuid,
    pub(crate) consistency: Consistency,
}

/// What is stored of a message beside its places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) body: Bytes,
    pub(crate) attributes: Vec<MessageAttribute>,
    pub(crate) sender: String,
    pub(crate) trace_header: Option<String>,
    pub(crate) group_id: Option<String>,
    pub(crate) deduplication_id: Option<String>,
    pub(crate) source: Option<QueueRef>,
    /// How often it was received in the queue that it came from as a dead letter.
    pub(crate) earlier_receives: i32,
}

/// A message's row, as it is read.
#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) content: Content,
    /// The timestamp of the last entry that somebody asked for by changing the visibility; 0: nobody did.
    pub(crate) lease_written_at_us: i64,
}

/// A row to be written: of which partition, until when.
#[derive(Clone, Debug)]
pub(crate) struct Timed<T> {
    pub(crate) row: T,
    pub(crate) ttl_s: i32,
}

/// A message's row to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewRow {
    pub(crate) bucket: Bucket,
    pub(crate) id: Uuid,
    pub(crate) written_at_us: i64,
    pub(crate) content: Content,
    pub(crate) ttl_s: i32,
}

impl Content {
    /// Its size, as the row counts in a batch.
    pub(crate) fn bytes(&self) -> usize {
        let attributes =
            self.attributes.iter().map(|a| a.name.len() + a.data_type.len() + a.value.len() + 16);
        MESSAGE_BYTES + self.body.len() + attributes.sum::<usize>()
    }
}

type Attributes = BTreeMap<String, (String, Bytes)>;

impl Rows<'_> {
    /// Writes messages' rows, each at its timestamp; an outcome for each.
    pub(crate) async fn insert_messages(&self, messages: Vec<NewRow>) -> Vec<Result<(), Fault>> {
        let count = messages.len();
        let sized = messages.into_iter().enumerate();
        let sized = sized
            .map(|(number, message)| (message.bucket, message.content.bytes(), (number, message)));
        let statement = &self.database.statements.insert_message;
        let write = |batch: Batch<Bucket, (usize, NewRow)>| async move {
            let numbers: Vec<usize> = batch.rows.iter().map(|(number, _)| *number).collect();
            let values = batch.rows.into_iter().map(|(_, message)| {
                let NewRow { bucket, id, written_at_us, content, ttl_s } = message;
                let attributes =
                    (!content.attributes.is_empty()).then(|| stored_attributes(content.attributes));
                (
                    self.generation,
                    bucket.start_s,
                    bucket.level,
                    id,
                    content.body,
                    MaybeUnset::from_option(attributes),
                    content.sender,
                    MaybeUnset::from_option(content.trace_header),
                    MaybeUnset::from_option(content.group_id),
                    MaybeUnset::from_option(content.deduplication_id),
                    MaybeUnset::from_option(
                        content
                            .source
                            .map(|source| (source.account.to_string(), source.name.to_string())),
                    ),
                    MaybeUnset::from_option(
                        Some(content.earlier_receives).filter(|count| *count > 0),
                    ),
                    written_at_us,
                    ttl_s,
                )
            });
            let values = values.collect();
            (numbers, self.database.write(For::Messages, statement, self.consistency, values).await)
        };
        each(count, batches(sized), write).await
    }

    /// Writes rows of the index; an outcome for each.
    pub(crate) async fn insert_entries(&self, entries: &[Timed<Entry>]) -> Vec<Result<(), Fault>> {
        let sized = entries
            .iter()
            .enumerate()
            .map(|(number, timed)| (timed.row.bucket, ENTRY_BYTES, number));
        let statement = &self.database.statements.insert_entry;
        let write = |batch: Batch<Bucket, usize>| async move {
            let values = batch.rows.iter().map(|number| {
                let Timed { row: entry, ttl_s } = &entries[*number];
                (
                    self.generation,
                    entry.bucket.start_s,
                    entry.bucket.level,
                    entry.visible_at_us,
                    entry.message,
                    entry.body.start_s,
                    entry.body.level,
                    entry.bytes,
                    entry.receive_count,
                    entry.first_received_at_ms,
                    entry.written_at_us,
                    entry.written_at_us,
                    *ttl_s,
                )
            });
            let values = values.collect();
            (
                batch.rows,
                self.database.write(For::Messages, statement, self.consistency, values).await,
            )
        };
        each(entries.len(), batches(sized), write).await
    }

    /// Removes rows of the index. One that stays leads to a message that is elsewhere or gone, and is dropped later.
    pub(crate) async fn delete_entries(&self, entries: &[Entry]) -> Vec<Result<(), Fault>> {
        let sized =
            entries.iter().enumerate().map(|(number, entry)| (entry.bucket, ENTRY_BYTES, number));
        let statement = &self.database.statements.delete_entry;
        let write = |batch: Batch<Bucket, usize>| async move {
            let values = batch.rows.iter().map(|number| {
                let entry = &entries[*number];
                let Bucket { start_s, level } = entry.bucket;
                let at_us = entry.deleted_at_us();
                (at_us, self.generation, start_s, level, entry.visible_at_us, entry.message)
            });
            let values = values.collect();
            (
                batch.rows,
                self.database.write(For::Messages, statement, self.consistency, values).await,
            )
        };
        each(entries.len(), batches(sized), write).await
    }

    /// Removes messages; an outcome for each. The timestamp is later than any of theirs.
    pub(crate) async fn delete_messages(
        &self,
        messages: &[(Entry, i64)],
    ) -> Vec<Result<(), Fault>> {
        let sized = messages
            .iter()
            .enumerate()
            .map(|(number, (entry, _))| (entry.body, ENTRY_BYTES, number));
        let statement = &self.database.statements.delete_message;
        let write = |batch: Batch<Bucket, usize>| async move {
            let values = batch.rows.iter().map(|number| {
                let (entry, at_us) = &messages[*number];
                (*at_us, self.generation, entry.body.start_s, entry.body.level, entry.message)
            });
            let values = values.collect();
            (
                batch.rows,
                self.database.write(For::Messages, statement, self.consistency, values).await,
            )
        };
        each(messages.len(), batches(sized), write).await
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
                written_at_us,
            });
        }
        Ok(entries)
    }
}

/// Carries out batches, a few at once; an outcome for each of their rows.
async fn each<R, F: Future<Output = (Vec<usize>, Result<(), Fault>)>>(
    count: usize,
    batches: Vec<Batch<Bucket, R>>,
    write: impl Fn(Batch<Bucket, R>) -> F,
) -> Vec<Result<(), Fault>> {
    let mut outcomes = vec![Ok(()); count];
    let mut written = stream::iter(batches).map(write).buffer_unordered(BATCHES_AT_ONCE);
    while let Some((numbers, outcome)) = written.next().await {
        for number in numbers {
            outcomes[number] = outcome.clone();
        }
    }
    outcomes
}

fn stored_attributes(attributes: Vec<MessageAttribute>) -> Attributes {
    attributes.into_iter().map(|one| (one.name, (one.data_type, one.value))).collect()
}

fn read_attributes(stored: Attributes) -> Vec<MessageAttribute> {
    let one = |(name, (data_type, value))| MessageAttribute { name, data_type, value };
    stored.into_iter().map(one).collect()
}
