//! A look into a FIFO queue. Its owner says what it has in memory, wherever that is; where none answers the rows are read as they
//! are. A look takes no queue over, and keeps no owner at it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use quelea_cassandra_fifo::{
    Content, OwnerRow, PeekedRow, PeekedRows, RowKey, SegmentKey, Unowned, listed_from, sent_at_ms,
};
use quelea_sqs_protocol::{
    Fault, PEEKED_BYTES_MAX, Peeked, PeekedMessage, QueueFacts, sequence_number,
};
use uuid::Uuid;

use super::operation::{Answer, FifoQueue, Operation};
use super::part_reads::READS_AT_ONCE;
use crate::limits::{PEEKED_OWNER_MS_MAX, PEEKED_SEGMENTS_MAX};
use crate::shared::Shared;
use crate::standard::batch::{batches, within_bytes};

const PATIENCE: Duration = Duration::from_millis(PEEKED_OWNER_MS_MAX);

impl Shared {
    /// Looks at the oldest messages of a FIFO queue.
    pub(crate) async fn fifo_peek(&self, facts: &QueueFacts, max: usize) -> Result<Peeked, Fault> {
        let queue = self.fifo_queue(facts).await?;
        let PeekedRows { mut messages, mut is_whole } = self.peeked_rows(&queue, max).await?;
        // The first is read whatever its size.
        let fitting = within_bytes(messages.iter().map(|one| one.bytes), PEEKED_BYTES_MAX);
        let wanted = fitting.max(1).min(messages.len());
        is_whole &= wanted == messages.len();
        messages.truncate(wanted);
        let mut contents = self.peeked_contents(queue.generation, &messages).await?;
        // What was deleted meanwhile is not there any more.
        let shown = messages.into_iter().filter_map(|peeked_row| {
            let content = contents.remove(&peeked_row.row)?;
            Some(peeked(peeked_row, content))
        });
        Ok(Peeked { messages: shown.collect(), is_whole })
    }

    async fn peeked_rows(&self, queue: &FifoQueue, max: usize) -> Result<PeekedRows, Fault> {
        let place = self.fifo.place(queue.generation);
        if place.owner().is_some() {
            let called = self.fifo_call_here(&place, queue.clone(), Operation::Peek(max));
            if let Ok(Answer::Peeked(found)) = tokio::time::timeout(PATIENCE, called).await {
                return Ok(found);
            }
        }
        let Some(row) = self.fifo.owners.read_plain(&self.database, queue.generation).await? else {
            // Nobody has sent anything to it yet.
            return Ok(PeekedRows { messages: Vec::new(), is_whole: true });
        };
        if row.held_until_ms != 0 && place.is_elsewhere(&row) {
            let called = self.fifo.peers.call(self.caller(), &row, queue, Operation::Peek(max));
            if let Ok(Answer::Peeked(found)) = tokio::time::timeout(PATIENCE, called).await {
                return Ok(found);
            }
        }
        self.unowned_peeked_rows(queue, &row, max).await
    }

    /// Returns the oldest messages by their rows.
    async fn unowned_peeked_rows(
        &self,
        queue: &FifoQueue,
        row: &OwnerRow,
        max: usize,
    ) -> Result<PeekedRows, Fault> {
        let (rows, database, generation) = (&self.fifo.rows, &*self.database, queue.generation);
        let (from, most) = (listed_from(Some(row)), PEEKED_SEGMENTS_MAX);
        let listed = rows.list_first(database, generation, from, most).await?;
        let (unowned, now_ms) = (Unowned::new(row), database.clock.now_ms());
        let read = |part: (SegmentKey, u64, u64)| async move {
            Ok::<_, Fault>((part.0, rows.load(database, generation, part).await?.found))
        };
        let parts = stream::iter(Unowned::parts(row, &listed)).map(read).buffered(READS_AT_ONCE);
        let mut parts = std::pin::pin!(parts);
        let mut messages = Vec::new();
        while let Some(part) = parts.next().await {
            let (segment, rows) = part?;
            for row in rows {
                if sent_at_ms(row.id).saturating_add(queue.retention_ms) < now_ms {
                    continue;
                }
                if messages.len() == max {
                    return Ok(PeekedRows { messages, is_whole: false });
                }
                messages.push(unowned.peeked_row(segment, &row, now_ms));
            }
        }
        Ok(PeekedRows { messages, is_whole: listed.len() < PEEKED_SEGMENTS_MAX })
    }

    async fn peeked_contents(
        &self,
        generation: Uuid,
        peeked_rows: &[PeekedRow],
    ) -> Result<BTreeMap<RowKey, Content>, Fault> {
        let mut contents = BTreeMap::new();
        let sized = peeked_rows.iter().map(|one| (one.row.segment, one.bytes, one.row.number));
        for batch in batches(sized) {
            let (rows, segment) = (&self.fifo.rows, batch.partition);
            let read = rows.contents(&self.database, generation, segment, &batch.rows).await?;
            let keyed = |(number, content)| (RowKey { segment, number }, content);
            contents.extend(read.found.into_iter().map(keyed));
        }
        Ok(contents)
    }
}

fn peeked(peeked_row: PeekedRow, content: Content) -> PeekedMessage {
    let sent_at_ms = sent_at_ms(peeked_row.id);
    let first_received_at_ms = peeked_row.first_received_at_ms;
    PeekedMessage {
        message_id: peeked_row.id.to_string(),
        body: content.body,
        attributes: content.attributes,
        receive_count: peeked_row
            .receive_count
            .map(|count| count.saturating_add(content.earlier_receives)),
        sent_at_ms,
        // Two front-ends' clocks may differ. No message was received before it was sent.
        first_received_at_ms: (first_received_at_ms > 0)
            .then(|| first_received_at_ms.max(sent_at_ms)),
        sender_id: Some(content.sender).filter(|sender| !sender.is_empty()),
        trace_header: content.trace_header,
        group_id: Some(content.group_id),
        deduplication_id: content.deduplication_id,
        sequence_number: Some(sequence_number(peeked_row.row.number)),
        dead_letter_source: content.source,
        state: peeked_row.state,
    }
}
