//! The rows of FIFO queues' messages: `fifo_segment` lists a queue's partitions, `fifo_message` has in each the messages (kind
//! 0), the deduplication ids (kind 1), and the last number. A row's timestamp is its number, that of its deletion is one more,
//! so that a repetition changes nothing and what comes late does not return what was deleted. All is read and written at
//! LOCAL_QUORUM.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use quelea_cassandra_fifo::limits::{DEDUPLICATION_MS, DEDUPLICATION_SLACK_MS};
use quelea_cassandra_fifo::{
    Arrival, Batch, Content, Noted, Row, RowKey, SegmentKey, SegmentRow, sent_at_ms,
};
use quelea_sqs_protocol::{Consistency, Fault, QueueRef};
use scylla::deserialize::row::ColumnIterator;
use scylla::deserialize::value::DeserializeValue as _;
use scylla::errors::PrepareError;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency as Level;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::MaybeUnset;
use uuid::Uuid;

use super::left_out::{LeftOut, PartialRead};
use crate::database::driver::{self, OwnedValues};
use crate::database::fault::{RequestFailure, unreadable};
use crate::database::preparing::Preparing;
use crate::database::{Database, For};
use crate::limits::BATCH_ROWS_MAX;
use crate::standard::content::{Attributes, read_attributes, stored_attributes};

/// For how long a partition is listed, and its last number is known, in seconds: longer than any message lives.
const LISTED_TTL_S: i32 = 30 * 86_400;

/// For how long a deduplication id is stored, in seconds.
const NOTED_TTL_S: i32 = ((DEDUPLICATION_MS + DEDUPLICATION_SLACK_MS) / 1_000) as i32;

/// Rows of a page of the list of partitions.
const PAGE: i32 = 5_000;

pub(crate) struct MessageRows {
    list: PreparedStatement,
    begin: PreparedStatement,
    insert: PreparedStatement,
    note: PreparedStatement,
    reach: PreparedStatement,
    tail: PreparedStatement,
    load: PreparedStatement,
    noted: PreparedStatement,
    contents: PreparedStatement,
    delete: PreparedStatement,
    delete_note: PreparedStatement,
    drop_messages: PreparedStatement,
    drop_segment: PreparedStatement,
}

/// Where a dead letter comes from: account, queue, and how often it was received there.
type Origin = (String, String, i32);

const INSERT: &str =
    "INSERT INTO @fifo_message (generation, epoch, segment, kind, number, message, bytes, visible_at, body,
        attributes, sender, trace_header, group_id, deduplication_id, origin)
     VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";

const OF_SEGMENT: &str = "generation = ? AND epoch = ? AND segment = ?";

impl MessageRows {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| async move {
            let mut prepared = preparing.prepare(&cql).await?;
            prepared.set_is_idempotent(true);
            prepared.set_consistency(Level::LocalQuorum);
            Ok::<_, PrepareError>(prepared)
        };
        Ok(Self {
            list: prepare(
                "SELECT epoch, first, began_at FROM @fifo_segment
                 WHERE generation = ? AND (epoch, first) > (?, ?) LIMIT ?"
                    .to_owned(),
            )
            .await?,
            begin: prepare(format!(
                "INSERT INTO @fifo_segment (generation, epoch, first, began_at) VALUES (?, ?, ?, ?)
                 USING TIMESTAMP ? AND TTL {LISTED_TTL_S}"
            ))
            .await?,
            insert: prepare(INSERT.to_owned()).await?,
            note: prepare(
                "INSERT INTO @fifo_message (generation, epoch, segment, kind, number, message, deduplication_key)
                 VALUES (?, ?, ?, 1, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            reach: prepare(format!(
                "UPDATE @fifo_message USING TIMESTAMP ? AND TTL ? SET last = ? WHERE {OF_SEGMENT}"
            ))
            .await?,
            // All columns, so that what one replica alone has is repaired at the others.
            tail: prepare(format!(
                "SELECT last, kind, number, message, bytes, visible_at, body, attributes, sender, trace_header, group_id,
                    deduplication_id, origin, deduplication_key FROM @fifo_message WHERE {OF_SEGMENT}"
            ))
            .await?,
            load: prepare(format!(
                "SELECT number, message, group_id, bytes, visible_at FROM @fifo_message
                 WHERE {OF_SEGMENT} AND kind = 0 AND number > ? AND number <= ?"
            ))
            .await?,
            noted: prepare(format!(
                "SELECT number, message, deduplication_key FROM @fifo_message
                 WHERE {OF_SEGMENT} AND kind = 1 AND number <= ?"
            ))
            .await?,
            contents: prepare(format!(
                "SELECT number, body, attributes, sender, trace_header, group_id, deduplication_id, origin
                 FROM @fifo_message WHERE {OF_SEGMENT} AND kind = 0 AND number IN ?"
            ))
            .await?,
            delete: prepare(format!(
                "DELETE FROM @fifo_message USING TIMESTAMP ? WHERE {OF_SEGMENT} AND kind = 0 AND number = ?"
            ))
            .await?,
            delete_note: prepare(format!(
                "DELETE FROM @fifo_message USING TIMESTAMP ? WHERE {OF_SEGMENT} AND kind = 1 AND number = ?"
            ))
            .await?,
            drop_messages: prepare(format!(
                "DELETE FROM @fifo_message USING TIMESTAMP ? WHERE {OF_SEGMENT}"
            ))
            .await?,
            drop_segment: prepare(
                "DELETE FROM @fifo_segment USING TIMESTAMP ?
                 WHERE generation = ? AND epoch = ? AND first = ?"
                    .to_owned(),
            )
            .await?,
        })
    }

    /// Returns all partitions of a queue from that one on, at most so many.
    pub(crate) async fn list(
        &self,
        database: &Database,
        generation: Uuid,
        from: SegmentKey,
        max: usize,
    ) -> Result<Vec<SegmentRow>, Fault> {
        let mut listed: Vec<SegmentRow> = Vec::new();
        loop {
            let after = listed.last().map_or_else(|| before(from), |row| stored_key(row.key));
            let page = self.list_page(database, generation, after, PAGE).await?;
            let count = page.len();
            listed.extend(page);
            if listed.len() > max {
                return Err(Fault::Unavailable("the queue has too many partitions".to_owned()));
            }
            if count < PAGE as usize {
                return Ok(listed);
            }
        }
    }

    /// Returns the first partitions of a queue from that one on, at most so many, which is no more
    /// than a page.
    pub(crate) async fn list_first(
        &self,
        database: &Database,
        generation: Uuid,
        from: SegmentKey,
        most: usize,
    ) -> Result<Vec<SegmentRow>, Fault> {
        let most = i32::try_from(most).unwrap_or(PAGE).min(PAGE);
        self.list_page(database, generation, before(from), most).await
    }

    async fn list_page(
        &self,
        database: &Database,
        generation: Uuid,
        after: (i64, i64),
        most: i32,
    ) -> Result<Vec<SegmentRow>, Fault> {
        let values = (generation, after.0, after.1, most);
        let rows = select(database, For::Upkeep, &self.list, values).await?;
        let mut page = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<(i64, i64, Option<i64>)>().map_err(unreadable)? {
            let (epoch, first, began_at) = row.map_err(unreadable)?;
            let key = SegmentKey { epoch: number(epoch), first: number(first) };
            page.push(SegmentRow { key, began_at_ms: number(began_at.unwrap_or_default()) });
        }
        Ok(page)
    }

    /// Writes a batch: first its partition is listed, if it is the first of it.
    pub(crate) async fn write(
        &self,
        database: &Database,
        generation: Uuid,
        batch: &Batch,
    ) -> Result<(), RequestFailure> {
        let (epoch, first) = stored_key(batch.segment);
        if let Some(began_at_ms) = batch.begins_at_ms {
            let values = (generation, epoch, first, began_at_ms as i64, first);
            database.count(For::Upkeep);
            driver::try_write(&database.session, &self.begin, &values).await?;
        }
        let mut writes: Vec<(&PreparedStatement, OwnedValues)> =
            Vec::with_capacity(2 * batch.messages.len() + 1);
        for (number, arrival) in &batch.messages {
            let stored = *number as i64;
            writes.push((&self.insert, insert_row((generation, epoch, first, stored), arrival)));
            if let Some(key) = arrival.deduplication {
                let key = key.to_vec();
                let values =
                    (generation, epoch, first, stored, arrival.id, key, stored, NOTED_TTL_S);
                writes.push((&self.note, Box::new(values)));
            }
        }
        let last = batch.last() as i64;
        let values = (last, LISTED_TTL_S, last, generation, epoch, first);
        writes.push((&self.reach, Box::new(values)));
        database.try_write_all(For::Messages, Consistency::LocalQuorum, &writes).await
    }

    /// Removes a batch, so that it is not there even where an earlier attempt at it comes late.
    pub(crate) async fn discard(
        &self,
        database: &Database,
        generation: Uuid,
        batch: &Batch,
    ) -> Result<(), RequestFailure> {
        let (epoch, first) = stored_key(batch.segment);
        let mut writes: Vec<(&PreparedStatement, OwnedValues)> = Vec::new();
        for (number, _) in &batch.messages {
            let stored = *number as i64;
            for statement in [&self.delete, &self.delete_note] {
                let values = (stored + 1, generation, epoch, first, stored);
                writes.push((statement, Box::new(values)));
            }
        }
        database.try_write_all(For::Messages, Consistency::LocalQuorum, &writes).await
    }

    /// Reads a partition whole, so that more than half of the replicas have what this says; returns its last number.
    pub(crate) async fn read_tail(
        &self,
        database: &Database,
        generation: Uuid,
        key: SegmentKey,
    ) -> Result<Option<u64>, Fault> {
        let (epoch, first) = stored_key(key);
        let rows = select(database, For::Upkeep, &self.tail, (generation, epoch, first)).await?;
        // The other columns stay as they are: a message that cannot be read does not keep its queue from being taken over.
        let row = rows.maybe_first_row::<ColumnIterator<'_, '_>>().map_err(unreadable)?;
        let Some(last) = row.and_then(|mut columns| columns.next()) else { return Ok(None) };
        let last = last.and_then(|last| Option::<i64>::deserialize(last.spec.typ(), last.slice));
        Ok(last.map_err(unreadable)?.map(number))
    }

    /// Reads messages of a partition beyond a number and up to another, without their bodies.
    pub(crate) async fn load(
        &self,
        database: &Database,
        generation: Uuid,
        (key, after, to): (SegmentKey, u64, u64),
    ) -> Result<PartialRead<Vec<Row>>, RequestFailure> {
        let (epoch, first) = stored_key(key);
        let values = (generation, epoch, first, after as i64, to as i64);
        let rows = try_select(database, For::Upkeep, &self.load, values).await?;
        type Stored = (i64, Option<Uuid>, Option<String>, Option<i32>, Option<i64>);
        let (mut loaded, mut left_out) = (Vec::with_capacity(rows.rows_num()), LeftOut::default());
        for row in rows.rows::<Stored>().map_err(RequestFailure::unreadable)? {
            match row {
                Ok((stored, Some(id), Some(group_id), bytes, visible_at)) => loaded.push(Row {
                    number: number(stored),
                    id,
                    group_id,
                    bytes: bytes.unwrap_or_default().max(0) as usize,
                    visible_at_ms: number(visible_at.unwrap_or_default()),
                }),
                Ok((stored, ..)) => left_out.add(|| not_whole(stored)),
                Err(error) => left_out.add(|| error.to_string()),
            }
        }
        Ok(left_out.report(database, generation, key, loaded))
    }

    /// Reads the deduplication ids of a partition up to a number.
    pub(crate) async fn noted(
        &self,
        database: &Database,
        generation: Uuid,
        (key, to): (SegmentKey, u64),
    ) -> Result<Vec<Noted>, RequestFailure> {
        let (epoch, first) = stored_key(key);
        let values = (generation, epoch, first, to as i64);
        let rows = try_select(database, For::Upkeep, &self.noted, values).await?;
        type Stored = (i64, Option<Uuid>, Option<Vec<u8>>);
        let (mut noted, mut left_out) = (Vec::with_capacity(rows.rows_num()), LeftOut::default());
        for row in rows.rows::<Stored>().map_err(RequestFailure::unreadable)? {
            let (stored, id, key) = match row {
                Ok(row) => row,
                Err(error) => {
                    left_out.add(|| error.to_string());
                    continue;
                }
            };
            match (id, key.and_then(|key| <[u8; 16]>::try_from(key).ok())) {
                (Some(id), Some(key)) => {
                    let (number, sent_at_ms) = (number(stored), sent_at_ms(id));
                    noted.push(Noted { key, number, id, sent_at_ms });
                }
                _ => left_out.add(|| format!("the deduplication id of {}", not_whole(stored))),
            }
        }
        Ok(left_out.report(database, generation, key, noted).found)
    }

    /// Reads messages of one partition.
    pub(crate) async fn contents(
        &self,
        database: &Database,
        generation: Uuid,
        key: SegmentKey,
        numbers: &[u64],
    ) -> Result<PartialRead<BTreeMap<u64, Content>>, Fault> {
        let (epoch, first) = stored_key(key);
        let numbers: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
        let values = (generation, epoch, first, numbers);
        let rows = select(database, For::Messages, &self.contents, values).await?;
        type Stored = (
            i64,
            Option<Bytes>,
            Option<Attributes>,
            Option<String>,
            Option<String>,
            Option<String>,
            Option<String>,
            Option<Origin>,
        );
        let (mut contents, mut left_out) = (BTreeMap::new(), LeftOut::default());
        for row in rows.rows::<Stored>().map_err(unreadable)? {
            let (
                stored,
                body,
                attributes,
                sender,
                trace_header,
                group_id,
                deduplication_id,
                origin,
            ) = match row {
                Ok(row) => row,
                Err(error) => {
                    left_out.add(|| error.to_string());
                    continue;
                }
            };
            let Some(group_id) = group_id else {
                left_out.add(|| not_whole(stored));
                continue;
            };
            let earlier_receives =
                origin.as_ref().map_or(0, |origin| origin.2.max(0).unsigned_abs());
            let source = origin
                .map(|(account, name, _)| QueueRef { account: account.into(), name: name.into() });
            let content = Content {
                body: body.unwrap_or_default(),
                attributes: attributes.map(read_attributes).unwrap_or_default(),
                sender: sender.unwrap_or_default(),
                trace_header,
                group_id,
                deduplication_id,
                source,
                earlier_receives,
            };
            contents.insert(number(stored), content);
        }
        Ok(left_out.report(database, generation, key, contents))
    }

    /// Deletes messages of one partition.
    pub(crate) async fn delete(
        &self,
        database: &Database,
        generation: Uuid,
        rows: &[RowKey],
    ) -> Result<(), Fault> {
        for rows in rows.chunks(BATCH_ROWS_MAX) {
            let delete = |row: &RowKey| {
                let (epoch, first) = stored_key(row.segment);
                let stored = row.number as i64;
                let values = (stored + 1, generation, epoch, first, stored);
                (&self.delete, Box::new(values) as OwnedValues)
            };
            let writes = rows.iter().map(delete).collect();
            database.write_all(For::Messages, Consistency::LocalQuorum, writes).await?;
        }
        Ok(())
    }

    /// Removes a partition of which nothing is left. Until it is not listed any more it is only empty.
    pub(crate) async fn drop_segment(
        &self,
        database: &Database,
        generation: Uuid,
        (key, last): (SegmentKey, u64),
    ) -> Result<(), Fault> {
        let (epoch, first) = stored_key(key);
        let values = (last as i64 + 1, generation, epoch, first);
        execute(database, For::Upkeep, &self.drop_messages, values).await?;
        let values = (first + 1, generation, epoch, first);
        execute(database, For::Upkeep, &self.drop_segment, values).await
    }
}

fn insert_row(
    (generation, epoch, first, stored): (Uuid, i64, i64, i64),
    arrival: &Arrival,
) -> OwnedValues {
    let content: &Arc<Content> = &arrival.content;
    let attributes = (!content.attributes.is_empty())
        .then(|| stored_attributes(content.attributes.iter().cloned()));
    let origin = content.source.as_ref().map(|source| {
        (source.account.to_string(), source.name.to_string(), content.earlier_receives as i32)
    });
    let visible_at = (arrival.visible_at_ms > 0).then_some(arrival.visible_at_ms as i64);
    Box::new((
        generation,
        epoch,
        first,
        stored,
        arrival.id,
        content.bytes().min(i32::MAX as usize) as i32,
        MaybeUnset::from_option(visible_at),
        content.body.clone(),
        MaybeUnset::from_option(attributes),
        content.sender.clone(),
        MaybeUnset::from_option(content.trace_header.clone()),
        content.group_id.clone(),
        MaybeUnset::from_option(content.deduplication_id.clone()),
        MaybeUnset::from_option(origin),
        stored,
        arrival.ttl_s,
    ))
}

fn stored_key(key: SegmentKey) -> (i64, i64) {
    (key.epoch as i64, key.first as i64)
}

/// Returns what the list is to be read beyond, to have that partition in it.
fn before(from: SegmentKey) -> (i64, i64) {
    let (epoch, first) = stored_key(from);
    (epoch, first - 1)
}

fn not_whole(stored: i64) -> String {
    format!("the message {stored} is not whole")
}

fn number(stored: i64) -> u64 {
    stored.max(0).unsigned_abs()
}

async fn execute(
    database: &Database,
    purpose: For,
    statement: &PreparedStatement,
    values: impl SerializeRow + Sync,
) -> Result<(), Fault> {
    database.count(purpose);
    driver::write(&database.session, statement, &values).await
}

async fn select(
    database: &Database,
    purpose: For,
    statement: &PreparedStatement,
    values: impl SerializeRow + Sync,
) -> Result<QueryRowsResult, Fault> {
    try_select(database, purpose, statement, values).await.map_err(Into::into)
}

async fn try_select(
    database: &Database,
    purpose: For,
    statement: &PreparedStatement,
    values: impl SerializeRow + Sync,
) -> Result<QueryRowsResult, RequestFailure> {
    database.count(purpose);
    driver::try_select(&database.session, statement, &values).await
}
