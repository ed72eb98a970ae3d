//! Requests for messages of several partitions, one for each.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream;
use quelea_cassandra_fifo::{Content, RowKey, SegmentKey};
use quelea_sqs_protocol::Fault;
use uuid::Uuid;

use super::part_reads::READS_AT_ONCE;
use crate::shared::Shared;
use crate::standard::send::stopped;

pub(super) fn by_segment(rows: &[RowKey]) -> BTreeMap<SegmentKey, Vec<RowKey>> {
    let mut parts: BTreeMap<SegmentKey, Vec<RowKey>> = BTreeMap::new();
    rows.iter().for_each(|row| parts.entry(row.segment).or_default().push(*row));
    parts
}

/// What was read of messages of several partitions.
#[derive(Debug, Default)]
pub(super) struct ReadContents {
    /// In the order in which they were named; none of one that is gone, or cannot be read.
    pub(super) contents: Vec<Option<Content>>,
    /// Partitions with rows that cannot be read.
    pub(super) unreadable: Vec<SegmentKey>,
}

/// Reads messages, in the order in which they are named.
pub(super) async fn read_contents(
    shared: &Shared,
    generation: Uuid,
    rows: &[RowKey],
) -> Result<ReadContents, Fault> {
    let (mut found, mut unreadable) = (BTreeMap::<RowKey, Content>::new(), Vec::new());
    for (segment, rows) in by_segment(rows) {
        let numbers: Vec<u64> = rows.iter().map(|row| row.number).collect();
        let read =
            shared.fifo.rows.contents(&shared.database, generation, segment, &numbers).await?;
        if read.has_unreadable {
            unreadable.push(segment);
        }
        let keyed = |(number, content)| (RowKey { segment, number }, content);
        found.extend(read.found.into_iter().map(keyed));
    }
    Ok(ReadContents { contents: rows.iter().map(|row| found.remove(row)).collect(), unreadable })
}

/// Deletes messages; an outcome for each.
pub(super) async fn delete(
    shared: &Shared,
    generation: Uuid,
    rows: &[RowKey],
) -> Vec<Result<(), Fault>> {
    let delete = |(segment, rows): (SegmentKey, Vec<RowKey>)| async move {
        (segment, shared.fifo.rows.delete(&shared.database, generation, &rows).await)
    };
    let parts = stream::iter(by_segment(rows)).map(delete).buffer_unordered(READS_AT_ONCE);
    let outcomes: BTreeMap<SegmentKey, Result<(), Fault>> = parts.collect().await;
    let outcome = |row: &RowKey| outcomes.get(&row.segment).cloned();
    rows.iter().map(|row| outcome(row).unwrap_or_else(|| Err(stopped()))).collect()
}
