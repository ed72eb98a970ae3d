//! ChangeMessageVisibility: a new entry at the new time, then a note of it at the message, then the old entry goes. By the
//! note every front-end knows that an entry that is older than it leads nowhere.

use std::sync::Arc;

use futures_util::future::join_all;
use quelea_sqs_protocol::{Delivery, Fault, QueueFacts, ReceiptOutcome};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::entry::Entry;
use crate::limits::{
    BATCH_ROWS_MAX, BATCHES_AT_ONCE, READ_ROWS_MAX, VISIBILITY_CHANGES_MAX, VISIBILITY_MS_MAX,
};
use crate::standard::Standard;
use crate::standard::content::Timed;
use crate::standard::gather::Size;
use crate::standard::job_kind::JobKind;
use crate::standard::jobs::{VisibilityJob, entry_ttl_s, waited_too_long};
use crate::standard::queue::Queue;
use crate::standard::receipt::Receipt;
use crate::standard::row_write::RowWrite;
use crate::standard::rows::Rows;
use crate::standard::send::stopped;
use crate::standard::tables::Lease;

/// Those of all queues are bounded as well.
const VISIBILITY: JobKind<VisibilityJob> = JobKind {
    of: |queue| &queue.visibility,
    waiting: Size { rows: VISIBILITY_CHANGES_MAX, bytes: 0 },
    at_once: Size { rows: BATCH_ROWS_MAX * BATCHES_AT_ONCE, bytes: 0 },
};

/// An entry, and the one that takes its place.
struct Change {
    current: Entry,
    new: Timed<Entry>,
    /// Whether everybody may receive it at once.
    is_shown: bool,
}

impl Change {
    /// Returns this change in place of an earlier one of the same message, whose entry may be a
    /// later one.
    fn instead_of(self, earlier: &Self, now_us: i64) -> Self {
        if earlier.current.written_at_us <= self.current.written_at_us {
            return self;
        }
        let current = earlier.current;
        let written_at_us = current.next_written_at_us(now_us);
        let Entry { visible_at_us, bucket, .. } = self.new.row;
        let row = Entry { visible_at_us, bucket, written_at_us, ..current };
        Self { current, new: Timed { row, ..self.new }, is_shown: self.is_shown }
    }
}

/// What a receipt leads to.
enum Found {
    Change(Change),
    Nothing(ReceiptOutcome),
}

/// What a receipt's call hears.
enum Pending {
    Known(Result<ReceiptOutcome, Fault>),
    /// What comes of the change of that number.
    OfChange(usize),
}

impl Standard {
    /// Sets for how long from now the others will not see messages; an outcome for each.
    pub(crate) async fn change_visibility(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let count = changes.len() as u32;
        let room = self.changes.clone().try_acquire_many_owned(count);
        let room = room.map_err(|_| too_many_changes())?;
        let receipts: Vec<Option<Receipt>> =
            changes.iter().map(|(bytes, _)| self.receipt(facts, bytes)).collect();
        let queue = self.queue_of(facts, receipts.iter().flatten()).await?;
        let timed = receipts.iter().zip(&changes);
        let changes: Vec<(Receipt, u64)> = timed
            .filter_map(|(receipt, (_, timeout_ms))| Some(((*receipt)?, *timeout_ms)))
            .collect();
        if changes.is_empty() {
            return Ok(vec![ReceiptOutcome::Invalid; receipts.len()]);
        }
        let size = Size { rows: changes.len(), bytes: 0 };
        let (reply, outcomes) = oneshot::channel();
        let since = Instant::now();
        let job = VisibilityJob { facts: facts.clone(), changes, since, room, reply };
        self.gather(&queue, VISIBILITY, job, size, Self::visibility_jobs)?;
        let mut outcomes = outcomes.await.map_err(|_| stopped())??.into_iter();
        let outcome = |receipt: Option<Receipt>| receipt.and_then(|_| outcomes.next());
        let outcomes = receipts.into_iter().map(outcome);
        Ok(outcomes.map(|outcome| outcome.unwrap_or(ReceiptOutcome::Invalid)).collect())
    }

    async fn visibility_jobs(self: Arc<Self>, queue: Arc<Queue>, gathered: Vec<VisibilityJob>) {
        let mut jobs = Vec::with_capacity(gathered.len());
        for job in gathered {
            match waited_too_long(job.since) {
                Some(fault) => drop(job.reply.send(Err(fault))),
                None => jobs.push(job),
            }
        }
        let Some(facts) = jobs.last().map(|job| job.facts.clone()) else { return };
        let changes: Vec<(Receipt, u64)> =
            jobs.iter().flat_map(|job| job.changes.iter().copied()).collect();
        let mut outcomes = self.change_together(&facts, &queue, &changes).await.into_iter();
        if changes.iter().any(|(_, timeout_ms)| *timeout_ms == 0) {
            queue.arrived.notify_one();
        }
        for VisibilityJob { changes, room, reply, .. } in jobs {
            let _ = reply.send(outcome_of_call(&mut outcomes, changes.len()));
            drop(room);
        }
    }

    /// Changes the visibility of messages; an outcome for each.
    async fn change_together(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        wanted: &[(Receipt, u64)],
    ) -> Vec<Result<ReceiptOutcome, Fault>> {
        let (began, now_us) = (Instant::now(), self.clock.now_us());
        let rows = self.rows(facts, queue);
        let entries: Vec<Entry> = wanted.iter().map(|(receipt, _)| receipt.entry).collect();
        let leases = rows.read_leases(&entries).await;
        let found = wanted.iter().zip(leases).map(|((receipt, timeout_ms), lease)| async move {
            self.found(facts, queue, receipt, lease?, *timeout_ms, now_us).await
        });
        let (mut pending, mut changes) = (Vec::with_capacity(wanted.len()), Vec::new());
        let mut numbers = FxHashMap::default();
        for found in join_all(found).await {
            pending.push(match found {
                Ok(Found::Change(change)) => {
                    // Of several changes of one message the last counts: they would have one timestamp.
                    let message = (change.current.message, change.current.body);
                    let number = *numbers.entry(message).or_insert(changes.len());
                    match changes.get_mut(number) {
                        Some(earlier) => *earlier = change.instead_of(earlier, now_us),
                        None => changes.push(change),
                    }
                    Pending::OfChange(number)
                }
                Ok(Found::Nothing(outcome)) => Pending::Known(Ok(outcome)),
                Err(fault) => Pending::Known(Err(fault)),
            });
        }
        let changed = self.carry_out(&rows, queue, &changes, began, now_us).await;
        let outcome = |pending| match pending {
            Pending::Known(outcome) => outcome,
            Pending::OfChange(number) => changed[number].clone().map(|()| ReceiptOutcome::Done),
        };
        pending.into_iter().map(outcome).collect()
    }

    /// Returns what a receipt's message is to have, where the last change of its visibility has put
    /// it there; or what becomes of a receipt by which nothing is changed.
    async fn found(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        receipt: &Receipt,
        lease: Option<Option<Lease>>,
        timeout_ms: u64,
        now_us: i64,
    ) -> Result<Found, Fault> {
        if receipt.generation != queue.generation {
            return Ok(Found::Nothing(ReceiptOutcome::NoSuchMessage));
        }
        let Some(lease) = lease else {
            return Ok(Found::Nothing(ReceiptOutcome::NoSuchMessage));
        };
        let current = current_entry(receipt.entry, lease);
        // Its time is over: it still is the last receiver's, until somebody else receives it.
        let rows = self.rows(facts, queue);
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

    /// Carries changes out, those of one partition together; an outcome for each.
    async fn carry_out(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        changes: &[Change],
        began: Instant,
        now_us: i64,
    ) -> Vec<Result<(), Fault>> {
        let mut new: Vec<Timed<Entry>> = changes.iter().map(|change| change.new.clone()).collect();
        // Whatever comes of it.
        new.iter().for_each(|new| queue.note_hidden_until(new.row.visible_at_us));
        let mut outcomes = self.insert_entries(rows, queue, &mut new, began).await;
        let inserted: Vec<usize> =
            (0..changes.len()).filter(|number| outcomes[*number].is_ok()).collect();
        let notes = inserted.iter().map(|number| RowWrite::NoteLease(new[*number].clone()));
        for (number, noted) in inserted.iter().zip(rows.write(notes.collect()).await) {
            outcomes[*number] = noted;
        }
        let mut gone = Vec::new();
        for ((change, new), outcome) in changes.iter().zip(&new).zip(&outcomes) {
            if outcome.is_ok() {
                let until_us = (!change.is_shown).then_some(new.row.visible_at_us);
                queue.note_changed(&change.current, until_us, now_us);
                gone.push(change.current);
            }
        }
        // One that stays is older than the note.
        let _ = rows.delete_entries(&gone).await;
        let shown = changes.iter().zip(&new).filter(|(change, _)| change.is_shown);
        shown.for_each(|(_, new)| self.peers.stored(queue.generation, &new.row));
        outcomes
    }
}

/// Takes so many of the next outcomes, those of a call. Returns what the call hears: the first
/// fault among its own, if there is one.
fn outcome_of_call(
    outcomes: &mut impl Iterator<Item = Result<ReceiptOutcome, Fault>>,
    count: usize,
) -> Result<Vec<ReceiptOutcome>, Fault> {
    // All of them are taken first: what is left would be the next call's.
    let own: Vec<_> = outcomes.take(count).collect();
    own.into_iter().collect()
}

fn too_many_changes() -> Fault {
    Fault::Unavailable(format!("{VISIBILITY_CHANGES_MAX} changes of visibility wait for Cassandra"))
}

/// Returns the entry that a receipt's message has now.
pub(super) fn current_entry(entry: Entry, lease: Option<Lease>) -> Entry {
    match lease {
        // Changed before, by whoever has this reception or by a later one.
        Some(Lease { visible_at_us, written_at_us, bucket })
            if written_at_us > entry.written_at_us =>
        {
            Entry { visible_at_us, written_at_us, bucket, ..entry }
        }
        _ => entry,
    }
}

/// Returns whether nobody has received an entry's message since: then it would have another entry.
async fn is_in_its_place(rows: &Rows<'_>, entry: &Entry) -> Result<bool, Fault> {
    let found = rows.read_entries(entry.bucket, entry.visible_at_us, READ_ROWS_MAX).await?;
    Ok(found.iter().any(|one| {
        one.message == entry.message
            && one.visible_at_us == entry.visible_at_us
            && one.written_at_us == entry.written_at_us
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    #[test]
    fn a_fault_of_one_call_is_none_of_the_next_calls() {
        let (fault, done) = (Fault::Unavailable("x".to_owned()), ReceiptOutcome::Done);
        let outcomes =
            [Ok(done), Err(fault.clone()), Ok(done), Ok(ReceiptOutcome::NotInFlight), Ok(done)];
        let mut outcomes = outcomes.into_iter();
        assert_eq!(outcome_of_call(&mut outcomes, 3), Err(fault));
        let next = vec![ReceiptOutcome::NotInFlight, done];
        assert_eq!(outcome_of_call(&mut outcomes, 2), Ok(next));
    }

    #[test]
    fn of_two_changes_of_a_message_the_last_replaces_the_latest_entry() {
        let change = |written_at_us, visible_at_us| {
            let current = Entry { written_at_us, ..entry_for_tests(7, 1) };
            let written_at_us = current.next_written_at_us(50);
            let row = Entry { visible_at_us, written_at_us, ..current };
            Change { current, new: Timed { row, ttl_s: 9 }, is_shown: false }
        };
        let earlier = change(1_000, 70);
        let last = change(10, 80).instead_of(&earlier, 50);
        assert_eq!((last.current.written_at_us, last.new.row.visible_at_us), (1_000, 80));
        assert!(last.new.row.written_at_us > earlier.current.written_at_us);
        assert_eq!(change(2_000, 90).instead_of(&earlier, 50).current.written_at_us, 2_000);
    }
}
