//! DeleteMessage: the message's row is the truth, so that it is deleted; its entry goes at the same time, with the same
//! request where both are in one partition, and if it stays it leads to nothing and is dropped.

use std::sync::Arc;

use quelea_sqs_protocol::{Delivery, Fault, QueueFacts, ReceiptOutcome};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::entry::Entry;
use crate::limits::{BATCH_ROWS_MAX, BATCHES_AT_ONCE, WAITING_ROWS_MAX};
use crate::standard::gather::Size;
use crate::standard::job_kind::JobKind;
use crate::standard::jobs::{DeleteJob, waited_too_long};
use crate::standard::queue::Queue;
use crate::standard::receipt::Receipt;
use crate::standard::row_write::RowWrite;
use crate::standard::rows::Rows;
use crate::standard::send::stopped;
use crate::standard::visibility::current_entry;
use crate::standard::{Standard, id_of};

const DELETES: JobKind<DeleteJob> = JobKind {
    of: |queue| &queue.deletes,
    waiting: Size { rows: WAITING_ROWS_MAX, bytes: 0 },
    at_once: Size { rows: BATCH_ROWS_MAX * BATCHES_AT_ONCE, bytes: 0 },
};

/// How far in the future the timestamp of a receipt's entry may be, in µs: what deletes it has the next one, and hides all
/// that is written before.
const RECEIPT_AHEAD_US_MAX: i64 = 86_400_000_000;

impl Standard {
    /// Deletes messages; an outcome for each.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let receipts: Vec<Option<Receipt>> =
            deliveries.iter().map(|bytes| self.receipt(facts, bytes)).collect();
        let queue = self.queue_of(facts, receipts.iter().flatten()).await?;
        // What belongs to a generation that was purged is gone.
        let is_here = |receipt: &&Receipt| receipt.generation == queue.generation;
        let entries: Vec<Entry> =
            receipts.iter().flatten().filter(is_here).map(|receipt| receipt.entry).collect();
        if !entries.is_empty() {
            for outcome in self.delete_entries(facts, &queue, entries).await? {
                outcome?;
            }
        }
        let outcome = |receipt: &Option<Receipt>| match receipt {
            Some(_) => ReceiptOutcome::Done,
            None => ReceiptOutcome::Invalid,
        };
        Ok(receipts.iter().map(outcome).collect())
    }

    /// Decodes a receipt, and returns it if it is one of this queue.
    pub(crate) fn receipt(&self, facts: &QueueFacts, bytes: &[u8]) -> Option<Receipt> {
        let latest_us = self.clock.now_us().saturating_add(RECEIPT_AHEAD_US_MAX);
        Receipt::decode(bytes)
            .filter(|receipt| receipt.queue == id_of(facts))
            .filter(|receipt| receipt.entry.written_at_us <= latest_us)
    }

    async fn delete_entries(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        entries: Vec<Entry>,
    ) -> Result<Vec<Result<(), Fault>>, Fault> {
        let size = Size { rows: entries.len(), bytes: 0 };
        let (reply, outcomes) = oneshot::channel();
        let job = DeleteJob { facts: facts.clone(), entries, since: Instant::now(), reply };
        self.gather(queue, DELETES, job, size, Self::delete_jobs)?;
        outcomes.await.map_err(|_| stopped())
    }

    async fn delete_jobs(self: Arc<Self>, queue: Arc<Queue>, gathered: Vec<DeleteJob>) {
        let mut jobs = Vec::with_capacity(gathered.len());
        for job in gathered {
            match waited_too_long(job.since) {
                Some(fault) => {
                    let outcomes = job.entries.iter().map(|_| Err(fault.clone())).collect();
                    let _ = job.reply.send(outcomes);
                }
                None => jobs.push(job),
            }
        }
        let Some(facts) = jobs.last().map(|job| job.facts.clone()) else { return };
        let rows = self.rows(&facts, &queue);
        let entries: Vec<Entry> = jobs.iter().flat_map(|job| job.entries.iter().copied()).collect();
        let now_us = self.clock.now_us();
        let current = current_entries(&rows, &queue, &entries, now_us).await;
        let outcomes = self.remove(&rows, &entries, &current, now_us).await;
        queue.in_flight.deleted(entries.len());
        let deleted = current.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
        deleted.for_each(|(entry, _)| queue.note_changed(entry, None, now_us));
        let mut outcomes = outcomes.into_iter();
        for job in jobs {
            let _ = job.reply.send(outcomes.by_ref().take(job.entries.len()).collect());
        }
    }

    /// Deletes messages with their receipts' entries and those that have taken their places, at the timestamp `at_us` or at the first
    /// that reaches all of their rows.
    async fn remove(
        &self,
        rows: &Rows<'_>,
        entries: &[Entry],
        current: &[Entry],
        at_us: i64,
    ) -> Vec<Result<(), Fault>> {
        let messages = current.iter().map(|entry| delete_message(entry, at_us));
        let moved = entries.iter().zip(current).filter(|(entry, current)| entry != current);
        let gone = entries.iter().chain(moved.map(|(_, current)| current));
        let writes = messages.chain(gone.copied().map(RowWrite::DeleteEntry));
        let mut deleted = rows.write(writes.collect()).await;
        deleted.truncate(entries.len());
        deleted
    }

    /// Deletes messages that are in another queue now, or have expired, at their entries' timestamps: one that comes back is later than
    /// that. Returns how many are gone. Nobody sends what fails once more, as clients do: what stays keeps its entry, by which it is
    /// found again; without it nobody would look for it before the sweep.
    pub(crate) async fn drop_messages(&self, rows: &Rows<'_>, entries: &[Entry]) -> usize {
        let messages = entries.iter().map(|entry| delete_message(entry, 0)).collect();
        let deleted = rows.write(messages).await;
        let gone = entries.iter().zip(&deleted).filter(|(_, deleted)| deleted.is_ok());
        let gone: Vec<Entry> = gone.map(|(entry, _)| *entry).collect();
        let _ = rows.delete_entries(&gone).await;
        gone.len()
    }
}

/// Returns the entries that receipts' messages have now: of each its receipt's, unless its visibility was changed since. That is asked for
/// only where it is likely, since it is a request more: while somebody changes visibility here, and of a receipt whose time is over.
async fn current_entries(
    rows: &Rows<'_>,
    queue: &Queue,
    entries: &[Entry],
    now_us: i64,
) -> Vec<Entry> {
    let mut current = entries.to_vec();
    let may_have_changed = queue.may_have_changed(now_us);
    let asked: Vec<usize> = (0..entries.len())
        .filter(|number| may_have_changed || entries[*number].visible_at_us <= now_us)
        .collect();
    let of: Vec<Entry> = asked.iter().map(|number| entries[*number]).collect();
    for (number, lease) in asked.into_iter().zip(rows.read_leases(&of).await) {
        // An entry that stays leads to nothing.
        if let Ok(Some(lease)) = lease {
            current[number] = current_entry(entries[number], lease);
        }
    }
    current
}

fn delete_message(entry: &Entry, at_us: i64) -> RowWrite {
    RowWrite::DeleteMessage(*entry, at_us.max(entry.deleted_at_us()))
}
