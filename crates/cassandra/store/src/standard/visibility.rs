//! ChangeMessageVisibility: a new entry at the new time, then a note of it at the message, then the old entry goes. By the
//! note every front-end knows that an entry that is older than it leads nowhere.

use std::sync::Arc;

use futures_util::future::join_all;
use quelea_sqs_protocol::{Delivery, Fault, QueueFacts, ReceiptOutcome};
use tokio::time::Instant;

use crate::entry::Entry;
use crate::limits::{READ_ROWS_MAX, VISIBILITY_CHANGES_MAX, VISIBILITY_MS_MAX};
use crate::standard::Standard;
use crate::standard::content::Timed;
use crate::standard::queue::Queue;
use crate::standard::receipt::Receipt;
use crate::standard::receive::entry_ttl_s;
use crate::standard::rows::Rows;
use crate::standard::tables::Lease;

impl Standard {
    /// Sets for how long from now the others will not see messages; an outcome for each.
    pub(crate) async fn change_visibility(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let count = changes.len() as u32;
        let _room = self.changes.try_acquire_many(count).map_err(|_| too_many_changes())?;
        let receipts: Vec<Option<Receipt>> =
            changes.iter().map(|(bytes, _)| self.receipt(facts, bytes)).collect();
        let queue = self.queue_of(facts, receipts.iter().flatten()).await?;
        let changed = receipts.iter().zip(&changes).map(|(receipt, (_, timeout_ms))| {
            let queue = &queue;
            async move {
                match receipt {
                    None => Ok(ReceiptOutcome::Invalid),
                    Some(receipt) if receipt.generation != queue.generation => {
                        Ok(ReceiptOutcome::NoSuchMessage)
                    }
                    Some(receipt) => self.change_one(facts, queue, receipt, *timeout_ms).await,
                }
            }
        });
        let outcomes = join_all(changed).await.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        if changes.iter().any(|(_, timeout_ms)| *timeout_ms == 0) {
            queue.arrived.notify_one();
        }
        Ok(outcomes)
    }

    async fn change_one(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        receipt: &Receipt,
        timeout_ms: u64,
    ) -> Result<ReceiptOutcome, Fault> {
        let (began, now_us) = (Instant::now(), self.clock.now_us());
        let rows = self.rows(facts, queue);
        let Some(current) = read_current(&rows, receipt).await? else {
            return Ok(ReceiptOutcome::NoSuchMessage);
        };
        // Its time is over: it is still whoever's had it last, until somebody else receives it.
        if current.visible_at_us <= now_us && !is_in_its_place(&rows, &current).await? {
            return Ok(ReceiptOutcome::NotInFlight);
        }
        let visible_at_us = now_us.saturating_add((timeout_ms as i64).saturating_mul(1_000));
        let longest_us =
            receipt.received_at_ms.saturating_add(VISIBILITY_MS_MAX as i64).saturating_mul(1_000);
        if visible_at_us > longest_us {
            return Ok(ReceiptOutcome::TooLong);
        }
        let new = Entry {
            visible_at_us,
            bucket: queue.place_entry(visible_at_us, now_us, self.peers.front_ends()),
            written_at_us: current.next_written_at_us(now_us),
            ..current
        };
        let ttl_s = entry_ttl_s(facts, current.message, now_us);
        let mut new = [Timed { row: new, ttl_s }];
        for inserted in self.insert_entries(&rows, queue, &mut new, began).await {
            inserted?;
        }
        rows.tables.write_lease(rows.of, new[0].row, ttl_s).await?;
        queue.note_changed(&current, (timeout_ms > 0).then_some(visible_at_us), now_us);
        // One that stays is older than the note.
        let _ = rows.delete_entries(&[current]).await;
        if timeout_ms == 0 {
            self.peers.stored(queue.generation, &new[0].row);
        }
        Ok(ReceiptOutcome::Done)
    }
}

fn too_many_changes() -> Fault {
    Fault::Unavailable(format!("{VISIBILITY_CHANGES_MAX} changes of visibility wait for Cassandra"))
}

/// The entry that this reception's message has now; `None`: the message is gone.
async fn read_current(rows: &Rows<'_>, receipt: &Receipt) -> Result<Option<Entry>, Fault> {
    let entry = receipt.entry;
    let lease = rows.tables.lease(rows.of, entry.body, entry.message).await?;
    Ok(lease.map(|lease| match lease {
        // Changed before, by whoever has this reception or by a later one.
        Some(Lease { visible_at_us, written_at_us, bucket })
            if written_at_us > entry.written_at_us =>
        {
            Entry { visible_at_us, written_at_us, bucket, ..entry }
        }
        _ => entry,
    }))
}

/// Whether nobody has received an entry's message since: then it would have another entry.
async fn is_in_its_place(rows: &Rows<'_>, entry: &Entry) -> Result<bool, Fault> {
    let found = rows.read_entries(entry.bucket, entry.visible_at_us, READ_ROWS_MAX).await?;
    Ok(found.iter().any(|one| {
        one.message == entry.message
            && one.visible_at_us == entry.visible_at_us
            && one.written_at_us == entry.written_at_us
    }))
}
