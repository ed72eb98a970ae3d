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

/// Messages, in the order in which they are named.
pub(super) async fn read_contents(
    shared: &Shared,
    generation: Uuid,
    rows: &[RowKey],
) -> Result<Vec<Option<Content>>, Fault> {
    let mut found: BTreeMap<RowKey, Content> = BTreeMap::new();
    for (segment, rows) in by_segment(rows) {
        let numbers: Vec<u64> = rows.iter().map(|row| row.number).collect();
        let read =
            shared.fifo.rows.contents(&shared.database, generation, segment, &numbers).await?;
        let keyed = read.into_iter().map(|(number, content)| (RowKey { segment, number }, content));
        found.extend(keyed);
    }
    Ok(rows.iter().map(|row| found.remove(row)).collect())
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
