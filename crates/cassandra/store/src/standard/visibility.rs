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

/// An entry, and the one that takes its place.
struct Change {
    current: Entry,
    new: Timed<Entry>,
    /// Whether everybody may receive it at once.
    is_shown: bool,
}

impl Change {
    fn is_of_same_message(&self, other: &Self) -> bool {
        let place = |change: &Self| (change.current.message, change.current.body);
        place(self) == place(other)
    }
}

/// What a receipt leads to.
enum Found {
    Change(Change),
    Nothing(ReceiptOutcome),
}

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
        let (began, now_us) = (Instant::now(), self.clock.now_us());
        let found = receipts.iter().zip(&changes).map(|(receipt, (_, timeout_ms))| {
            self.wanted(facts, &queue, receipt.as_ref(), *timeout_ms, now_us)
        });
        let found = join_all(found).await.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        let (mut outcomes, mut wanted) = (Vec::with_capacity(found.len()), Vec::new());
        for found in found {
            match found {
                Found::Nothing(outcome) => outcomes.push(outcome),
                Found::Change(change) => {
                    outcomes.push(ReceiptOutcome::Done);
                    // Of several changes of one message the last counts: they would have one timestamp.
                    wanted.retain(|other: &Change| !other.is_of_same_message(&change));
                    wanted.push(change);
                }
            }
        }
        self.carry_out(facts, &queue, wanted, began, now_us).await?;
        if changes.iter().any(|(_, timeout_ms)| *timeout_ms == 0) {
            queue.arrived.notify_one();
        }
        Ok(outcomes)
    }

    /// What a receipt's message has now and is to have; or what becomes of a receipt by which nothing is changed.
    async fn wanted(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        receipt: Option<&Receipt>,
        timeout_ms: u64,
        now_us: i64,
    ) -> Result<Found, Fault> {
        let Some(receipt) = receipt else { return Ok(Found::Nothing(ReceiptOutcome::Invalid)) };
        if receipt.generation != queue.generation {
            return Ok(Found::Nothing(ReceiptOutcome::NoSuchMessage));
        }
        let rows = self.rows(facts, queue);
        let Some(current) = read_current(&rows, receipt).await? else {
            return Ok(Found::Nothing(ReceiptOutcome::NoSuchMessage));
        };
        // Its time is over: it is still whoever's had it last, until somebody else receives it.
        if current.visible_at_us <= now_us && !is_in_its_place(&rows, &current).await? {
            return Ok(Found::Nothing(ReceiptOutcome::NotInFlight));
        }
        let visible_at_us = now_us.saturating_add((timeout_ms as i64).saturating_mul(1_000));
        let longest_us =
            receipt.received_at_ms.saturating_add(VISIBILITY_MS_MAX as i64).saturating_mul(1_000);
        if visible_at_us > longest_us {
            return Ok(Found::Nothing(ReceiptOutcome::TooLong));
        }
        let row = Entry {
            visible_at_us,
            bucket: queue.place_entry(visible_at_us, now_us, self.peers.writers()),
            written_at_us: current.next_written_at_us(now_us),
            ..current
        };
        let new = Timed { row, ttl_s: entry_ttl_s(facts, current.message, now_us) };
        Ok(Found::Change(Change { current, new, is_shown: timeout_ms == 0 }))
    }

    /// Carries changes out, those of one partition together.
    ///
    /// # Errors
    /// Of the first that could not be written; the others are.
    async fn carry_out(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        changes: Vec<Change>,
        began: Instant,
        now_us: i64,
    ) -> Result<(), Fault> {
        let rows = self.rows(facts, queue);
        let mut new: Vec<Timed<Entry>> = changes.iter().map(|change| change.new.clone()).collect();
        let inserted = self.insert_entries(&rows, queue, &mut new, began).await;
        let noted = new.iter().zip(inserted).map(|(new, inserted)| {
            let rows = &rows;
            async move {
                inserted?;
                rows.tables.write_lease(rows.of, new.row, new.ttl_s).await
            }
        });
        let noted = join_all(noted).await;
        let (mut gone, mut failed) = (Vec::new(), None);
        for ((change, new), noted) in changes.iter().zip(&new).zip(noted) {
            if let Err(fault) = noted {
                failed.get_or_insert(fault);
                continue;
            }
            let until_us = (!change.is_shown).then_some(new.row.visible_at_us);
            queue.note_changed(&change.current, until_us, now_us);
            gone.push(change.current);
        }
        // One that stays is older than the note.
        let _ = rows.delete_entries(&gone).await;
        let shown = changes.iter().zip(&new).filter(|(change, _)| change.is_shown);
        shown.for_each(|(_, new)| self.peers.stored(queue.generation, &new.row));
        failed.map_or(Ok(()), Err)
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
