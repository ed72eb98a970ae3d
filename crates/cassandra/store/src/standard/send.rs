//! SendMessage: the body's row and the index's entry, written at the same time, in one request where they are in one
//! partition. What comes while they are under way goes into the next batches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, NewMessage, QueueFacts, SendOutcome, Sent};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, BATCHES_AT_ONCE, GRACE_MS, WAITING_BYTES_MAX, WAITING_ROWS_MAX,
};
use crate::standard::Standard;
use crate::standard::content::{Content, NewRow, Timed};
use crate::standard::fair::group_of;
use crate::standard::gather::{Size, too_much};
use crate::standard::job_kind::JobKind;
use crate::standard::jobs::{ENTRY_OUTLIVES_S, Outgoing, SendJob, kept_s, waited_too_long};
use crate::standard::queue::Queue;
use crate::standard::row_write::RowWrite;
use crate::standard::rows::Rows;
use crate::standard::tables::{List, Of};

/// How often an entry that came late is written again.
const ATTEMPTS: usize = 5;

const SENDS: JobKind<SendJob> = JobKind {
    of: |queue| &queue.sends,
    waiting: Size { rows: WAITING_ROWS_MAX, bytes: WAITING_BYTES_MAX },
    at_once: Size {
        rows: BATCH_ROWS_MAX * BATCHES_AT_ONCE,
        bytes: BATCH_BYTES_MAX * BATCHES_AT_ONCE,
    },
};

impl Standard {
    /// Sends a call's messages; an outcome for each.
    pub(crate) async fn send(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let queue = self.queue(facts).await?;
        let outgoing = messages.into_iter().map(|new| self.outgoing(facts, new)).collect();
        self.send_outgoing(facts, &queue, outgoing).await
    }

    fn outgoing(&self, facts: &QueueFacts, new: NewMessage) -> Outgoing {
        Outgoing {
            id: self.clock.new_message_id(),
            delay_ms: new.delay_ms.unwrap_or(facts.settings.delay_ms),
            ttl_s: kept_s(facts),
            after_us: 0,
            content: Content {
                body: new.body,
                attributes: new.attributes,
                sender: new.sender_id.to_string(),
                trace_header: new.trace_header,
                group_id: new.group_id,
                deduplication_id: new.deduplication_id,
                source: None,
                earlier_receives: 0,
            },
        }
    }

    /// Puts messages into a queue; an outcome for each.
    pub(crate) async fn send_outgoing(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        messages: Vec<Outgoing>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let bytes = messages.iter().map(|message| message.content.bytes()).sum();
        let size = Size { rows: messages.len(), bytes };
        let permits = u32::try_from(bytes).map_err(|_| too_much())?;
        let room = self.room.clone().try_acquire_many_owned(permits).map_err(|_| too_much())?;
        let (reply, outcomes) = oneshot::channel();
        let job = SendJob { facts: facts.clone(), messages, since: Instant::now(), room, reply };
        self.gather(queue, SENDS, job, size, Self::send_jobs)?;
        outcomes.await.map_err(|_| stopped())
    }

    async fn send_jobs(self: Arc<Self>, queue: Arc<Queue>, jobs: Vec<SendJob>) {
        // What was asked for last knows best how many replicas have to answer.
        let Some(facts) = jobs.last().map(|job| job.facts.clone()) else { return };
        let mut replies = Vec::with_capacity(jobs.len());
        let mut messages = Vec::new();
        for SendJob { messages: of_job, since, room, reply, .. } in jobs {
            if reply.is_closed() {
                // Who has hung up may not know that it was sent, and sends it again.
                continue;
            }
            if let Some(fault) = waited_too_long(since) {
                let _ = reply.send(of_job.iter().map(|_| Err(fault.clone())).collect());
                continue;
            }
            replies.push((of_job.len(), reply, room));
            messages.extend(of_job);
        }
        if messages.is_empty() {
            return;
        }
        let (outcomes, ready) =
            self.write_messages(&self.rows(&facts, &queue), &queue, messages).await;
        if let Some(entry) = ready {
            queue.arrived.notify_one();
            self.peers.stored(queue.generation, &entry);
        }
        let mut outcomes = outcomes.into_iter();
        for (count, reply, _room) in replies {
            // Whoever does not wait any more does not hear of it.
            let _ = reply.send(outcomes.by_ref().take(count).collect());
        }
    }

    /// Returns an outcome for each, and the last entry that may be received at once.
    async fn write_messages(
        self: &Arc<Self>,
        rows: &Rows<'_>,
        queue: &Queue,
        messages: Vec<Outgoing>,
    ) -> (Vec<SendOutcome>, Option<Entry>) {
        let (began, now_us) = (Instant::now(), self.clock.now_us());
        let ready = messages.iter().rposition(|message| message.delay_ms == 0);
        let Prepared { bodies, mut entries, sent_at_us } = self.prepare(queue, messages, now_us);
        let fresh = queue.unlisted_bodies(bodies.iter().map(|body| body.bucket));
        let bodies =
            bodies.into_iter().map(|body| RowWrite::InsertMessage(Box::new(body))).collect();
        let first = First { replaced: &[], others: bodies };
        let ((listed, stored), ()) = futures_util::future::join(
            self.write_entries(rows, queue, &mut entries, first, began),
            self.list_bodies(rows, queue, fresh),
        )
        .await;
        let listed = if is_slow(began) && listed.iter().any(Result::is_ok) {
            // Readers drop an entry whose message does not come, and the messages came late.
            self.insert_again(rows, queue, &mut entries, listed).await
        } else {
            listed
        };
        let left = left_by_halves(&stored, &listed, &entries, &sent_at_us);
        if !left.is_empty() {
            let (standard, of) = (self.clone(), rows.of);
            // Those that were stored do not wait for that.
            self.runtime.spawn(async move {
                let rows = Rows { tables: &*standard.tables, of };
                let _ = rows.write(left).await;
            });
        }
        let written = stored.into_iter().zip(listed).map(|(stored, listed)| stored.and(listed));
        let outcome = |(written, entry): (Result<(), Fault>, &Timed<Entry>)| {
            let sent = Sent { message_id: entry.row.message.to_string(), sequence_number: None };
            written.map(|()| sent)
        };
        let outcomes = written.zip(&entries).map(outcome).collect();
        (outcomes, ready.map(|number| entries[number].row))
    }

    /// Prepares the rows of messages that are sent now.
    fn prepare(&self, queue: &Queue, messages: Vec<Outgoing>, now_us: i64) -> Prepared {
        let mut bodies: Vec<NewRow> = Vec::with_capacity(messages.len());
        let mut entries: Vec<Timed<Entry>> = Vec::with_capacity(messages.len());
        let mut sent_at_us: BTreeMap<Uuid, i64> = BTreeMap::new();
        for message in messages {
            let bytes = message.content.bytes();
            let written_at_us = now_us.max(message.after_us.saturating_add(1));
            let visible_at_us =
                now_us.saturating_add((message.delay_ms as i64).saturating_mul(1_000));
            let entry = Entry {
                visible_at_us,
                message: message.id,
                bucket: queue.place_entry(visible_at_us, now_us, self.peers.writers()),
                body: queue.place_body(bytes, now_us, self.peers.writers()),
                bytes: bytes.min(i32::MAX as usize) as i32,
                receive_count: 0,
                first_received_at_ms: 0,
                group: group_of(message.content.group_id.as_deref()),
                written_at_us,
            };
            entries
                .push(Timed { row: entry, ttl_s: message.ttl_s.saturating_add(ENTRY_OUTLIVES_S) });
            if message.after_us == 0 {
                sent_at_us.insert(message.id, written_at_us);
            }
            bodies.push(NewRow {
                bucket: entry.body,
                id: message.id,
                written_at_us,
                content: message.content,
                ttl_s: message.ttl_s,
            });
        }
        Prepared { bodies, entries, sent_at_us }
    }

    /// Has the sweep know of partitions of bodies. If that fails, what is sent next tries again.
    async fn list_bodies(&self, rows: &Rows<'_>, queue: &Queue, fresh: Vec<Bucket>) {
        if fresh.is_empty() {
            return;
        }
        let Of { generation, .. } = rows.of;
        let now_us = self.clock.now_us();
        match rows.tables.list(rows.of, List::Messages, fresh.clone(), now_us).await {
            Ok(()) => queue.listed_bodies(fresh),
            Err(fault) => {
                tracing::debug!(%generation, %fault, "the sweep does not know of messages")
            }
        }
    }

    /// Writes entries once more, at a time that is not passed, after their messages are there.
    async fn insert_again(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        entries: &mut [Timed<Entry>],
        listed: Vec<Result<(), Fault>>,
    ) -> Vec<Result<(), Fault>> {
        let now_us = self.clock.now_us();
        let superseded: Vec<Entry> = entries.iter().map(|entry| entry.row).collect();
        entries.iter_mut().for_each(|entry| self.replace(queue, entry, now_us));
        let again = self.insert_entries(rows, queue, entries, Instant::now()).await;
        // Those that nothing has replaced stay.
        let replaced = superseded.into_iter().zip(&again).filter(|(_, again)| again.is_ok());
        let replaced: Vec<Entry> = replaced.map(|(entry, _)| entry).collect();
        let _ = rows.delete_entries(&replaced).await;
        listed.into_iter().zip(again).map(|(first, again)| first.and(again)).collect()
    }

    /// Writes entries, and the buckets that they are in; an outcome for each.
    pub(crate) async fn insert_entries(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        entries: &mut [Timed<Entry>],
        began: Instant,
    ) -> Vec<Result<(), Fault>> {
        self.write_entries(rows, queue, entries, First::default(), began).await.0
    }

    /// Writes the same as [`Standard::insert_entries`], with what goes with the first attempt: an
    /// outcome for each of its other writes, too. An entry that took so long that readers may have
    /// passed its place is written again at a later one, and the first goes: else nobody would find
    /// it. One that came late each time, or could not be written again, is not confirmed, and
    /// stays: what it replaces went with it.
    pub(crate) async fn write_entries(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        entries: &mut [Timed<Entry>],
        first: First<'_>,
        mut began: Instant,
    ) -> (Vec<Result<(), Fault>>, Vec<Result<(), Fault>>) {
        let mut outcomes = vec![Ok(()); entries.len()];
        let mut late: Vec<Vec<Entry>> = vec![Vec::new(); entries.len()];
        let mut open: Vec<usize> = (0..entries.len()).collect();
        let First { mut replaced, mut others } = first;
        let mut of_others = Vec::new();
        for attempt in 1..=ATTEMPTS {
            let written =
                open.iter().map(|number| entry_write(&entries[*number], replaced.get(*number)));
            let writes: Vec<RowWrite> = written.chain(others.drain(..)).collect();
            let buckets = open.iter().map(|number| entries[*number].row.bucket);
            let (listed, mut inserted) = futures_util::future::join(
                queue.list_buckets(rows, buckets, &self.clock, &self.peers),
                rows.write(writes),
            )
            .await;
            let more = inserted.split_off(open.len());
            if attempt == 1 {
                (of_others, replaced) = (more, &[]);
            }
            let (was_slow, now_us) = (is_slow(began), self.clock.now_us());
            let stored = open.iter().zip(inserted).map(|(number, inserted)| (*number, inserted));
            let again = stored.filter(|(number, inserted)| {
                let (number, entry) = (*number, &entries[*number].row);
                let is_late = inserted.is_ok() && entry.is_late(now_us, was_slow);
                outcomes[number] = match is_late && attempt == ATTEMPTS {
                    true => Err(too_slow()),
                    false => inserted.clone().and_then(|()| listed.clone()),
                };
                if is_late {
                    late[number].push(*entry);
                }
                is_late || (outcomes[number].is_err() && !late[number].is_empty())
            });
            open = again.map(|(number, _)| number).collect();
            if open.is_empty() || attempt == ATTEMPTS {
                break;
            }
            began = Instant::now();
            for number in &open {
                self.replace(queue, &mut entries[*number], now_us);
            }
        }
        for (late, outcome) in late.iter_mut().zip(&outcomes) {
            if outcome.is_err() {
                // The last that is stored is all that leads to the message.
                late.pop();
            }
        }
        // One that stays is a duplicate.
        let _ = rows.delete_entries(&late.concat()).await;
        (outcomes, of_others)
    }

    /// Gives an entry a place that readers have not passed.
    fn replace(&self, queue: &Queue, entry: &mut Timed<Entry>, now_us: i64) {
        let place = |at_us| queue.place_entry(at_us, now_us, self.peers.writers());
        entry.row = entry.row.replaced(now_us, place);
    }
}

/// Rows that are to be written: for each message a body and an entry.
struct Prepared {
    bodies: Vec<NewRow>,
    entries: Vec<Timed<Entry>>,
    /// Of messages that are new, and not moved from another queue: when they were written.
    sent_at_us: BTreeMap<Uuid, i64>,
}

/// Returns what is to be removed of messages of which only the body was stored, or only the entry.
fn left_by_halves(
    stored: &[Result<(), Fault>],
    listed: &[Result<(), Fault>],
    entries: &[Timed<Entry>],
    sent_at_us: &BTreeMap<Uuid, i64>,
) -> Vec<RowWrite> {
    let halves = stored.iter().zip(listed).zip(entries);
    let halves = halves.filter(|((stored, listed), _)| stored.is_ok() != listed.is_ok());
    let left = halves.flat_map(|((_, listed), entry)| {
        let sent_at_us = sent_at_us.get(&entry.row.message);
        // Many entries without a message would keep those behind them waiting. One that was not confirmed may be there, too.
        let is_left = listed.is_ok() || sent_at_us.is_some();
        let entry_left = is_left.then_some(RowWrite::DeleteEntry(entry.row));
        // Who sent it hears that it was not, and sends it again: else the sweep would deliver this one, too.
        let body_left = sent_at_us.map(|at_us| RowWrite::DeleteMessage(entry.row, *at_us));
        entry_left.into_iter().chain(body_left)
    });
    left.collect()
}

/// What goes with the first attempt to write entries.
#[derive(Default)]
pub(crate) struct First<'a> {
    /// For each entry the one that it replaces, which goes at the same time if it is in the same bucket, and stays if not.
    pub(crate) replaced: &'a [Entry],
    /// Other writes.
    pub(crate) others: Vec<RowWrite>,
}

fn entry_write(new: &Timed<Entry>, replaced: Option<&Entry>) -> RowWrite {
    match replaced {
        Some(old) if old.bucket == new.row.bucket => RowWrite::ReplaceEntry(new.clone(), *old),
        _ => RowWrite::InsertEntry(new.clone()),
    }
}

/// Returns whether what began then took so long that its time has to be looked at again.
fn is_slow(began: Instant) -> bool {
    began.elapsed() >= Duration::from_millis(GRACE_MS / 2)
}

fn too_slow() -> Fault {
    Fault::Unavailable("Cassandra takes too long to store an entry".to_owned())
}

/// Returns the fault that says that this front-end ends.
pub(crate) fn stopped() -> Fault {
    Fault::Unavailable("this front-end stops".to_owned())
}
