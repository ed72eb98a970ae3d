//! Messages that go to another queue: those that were received too often, which keep their id and the time at which they were
//! sent, and those that a move task takes, which are new ones. First they are there, then they are gone here: a crash in
//! between leaves them in both.

use std::sync::Arc;

use quelea_sqs_protocol::{Fault, QueueFacts, QueueRef};

use crate::entry::Entry;
use crate::limits::MOVED_BYTES_MAX;
use crate::standard::Standard;
use crate::standard::batch::within_bytes;
use crate::standard::choice::take_leftovers;
use crate::standard::content::StoredMessage;
use crate::standard::head::Head;
use crate::standard::head_read::read_directory;
use crate::standard::jobs::{Outgoing, kept_s, time_left_s};
use crate::standard::queue::Queue;
use crate::standard::receive::READS_AT_ONCE;
use crate::standard::rows::Rows;
use crate::standard::start::{Reach, Start};
use crate::standard::taken::Taken;

/// Where messages go, with what is known of it.
pub(crate) struct Destination {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) queue: Arc<Queue>,
}

/// A message and its place in the queue that it leaves.
pub(crate) struct Leaving {
    pub(crate) entry: Entry,
    pub(crate) message: StoredMessage,
}

/// What became of entries whose messages were read.
#[derive(Default)]
struct Read {
    leaving: Vec<Leaving>,
    /// They lead nowhere.
    stale: Vec<Entry>,
    /// Their messages are older than the queue keeps them.
    expired: Vec<Entry>,
    /// Those whose messages may still come.
    missing: Vec<Entry>,
    /// Why the first of those whose messages were not answered was not.
    failed: Option<Fault>,
}

/// How many messages are in the other queue now, and how many of them gone from their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) arrived: usize,
    pub(crate) gone: usize,
    /// Those that cannot arrive ever, and why the first of them.
    pub(crate) refused: usize,
    pub(crate) why: Option<Fault>,
}

impl Departed {
    pub(crate) fn add(&mut self, more: Self) {
        self.arrived += more.arrived;
        self.gone += more.gone;
        self.refused += more.refused;
        self.why = self.why.take().or(more.why);
    }
}

impl Standard {
    /// Returns the dead-letter queue of a queue that has one, if it is there.
    pub(crate) async fn dead_letter_queue(
        &self,
        facts: &QueueFacts,
    ) -> Result<Option<Destination>, Fault> {
        match &facts.settings.redrive {
            Some(policy) => self.destination(&policy.dead_letter_queue).await,
            None => Ok(None),
        }
    }

    /// Returns a queue that messages go to, if it is there.
    pub(crate) async fn destination(&self, queue: &QueueRef) -> Result<Option<Destination>, Fault> {
        let Some(record) = self.tables.record(queue).await? else { return Ok(None) };
        let facts = record.facts.clone();
        let queue = self.queue(&facts).await?;
        Ok(Some(Destination { facts, queue }))
    }

    /// Moves messages that were received too often. Returns how many are gone from here.
    pub(crate) async fn dead_letter(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        exhausted: Vec<Entry>,
        to: &Destination,
    ) -> usize {
        let rows = self.rows(facts, queue);
        let read = self.read_leaving(facts, &rows, queue, exhausted).await;
        let dropped = self.drop_dead(&rows, &read).await;
        let Read { leaving, failed, .. } = read;
        if let Some(fault) = failed {
            tracing::debug!(%fault, "a message was not moved to its dead-letter queue");
        }
        let source = Some(facts.queue.clone());
        let moved = self.move_messages(facts, queue, leaving, to, source).await;
        let departed = moved.unwrap_or_else(|fault| {
            tracing::warn!(queue = %facts.queue.name, %fault, "messages were not moved to their dead-letter queue");
            Departed::default()
        });
        departed.gone + dropped
    }

    /// Moves messages from one queue to another.
    pub(crate) async fn move_messages(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        leaving: Vec<Leaving>,
        to: &Destination,
        source: Option<QueueRef>,
    ) -> Result<Departed, Fault> {
        if leaving.is_empty() {
            return Ok(Departed::default());
        }
        let now_ms = self.clock.now_ms();
        let entries: Vec<Entry> = leaving.iter().map(|one| one.entry).collect();
        let outgoing = leaving.into_iter().map(|Leaving { entry, message }| {
            let mut content = message.content;
            content.source.clone_from(&source);
            content.earlier_receives = match source {
                Some(_) => content.earlier_receives.saturating_add(entry.receive_count),
                None => 0,
            };
            let (id, ttl_s, after_us) = match source {
                Some(_) => {
                    let left_s = time_left_s(&to.facts, entry.message, now_ms);
                    (entry.message, left_s, entry.deleted_at_us())
                }
                // It may be older than messages get there.
                None => (self.clock.new_message_id(), kept_s(&to.facts), 0),
            };
            Outgoing { id, content, delay_ms: 0, ttl_s, after_us }
        });
        let sent = self.send_outgoing(&to.facts, &to.queue, outgoing.collect()).await;
        let sent = sent.inspect_err(|_| self.peers.release(queue.generation, &entries))?;
        let (mut arrived, mut stays) = (Vec::with_capacity(entries.len()), Vec::new());
        for (entry, sent) in entries.into_iter().zip(&sent) {
            if sent.is_ok() { arrived.push(entry) } else { stays.push(entry) }
        }
        self.peers.release(queue.generation, &stays);
        let gone = self.drop_messages(&self.rows(facts, queue), &arrived).await;
        let is_for_good = |fault: &Fault| matches!(fault, Fault::Invalid(_));
        let mut refused: Vec<Fault> =
            sent.into_iter().filter_map(Result::err).filter(is_for_good).collect();
        let count = refused.len();
        refused.truncate(1);
        Ok(Departed { arrived: arrived.len(), gone, refused: count, why: refused.pop() })
    }

    /// Takes visible messages of the queue's head, the oldest first, up to that time, which no other front-end takes; `None`: there is no
    /// entry any more. Entries that lead nowhere go, and so do messages that have expired: returns how many, too.
    pub(crate) async fn take_leaving(
        self: &Arc<Self>,
        Destination { facts, queue }: &Destination,
        head: &mut Head,
        most: usize,
        until_us: i64,
    ) -> Result<Option<(Vec<Leaving>, usize)>, Fault> {
        let rows = self.rows(facts, queue);
        let more = most + queue.passed_over();
        let mut found = self.entries_at_place(&rows, queue, head, more, until_us).await?;
        if found.is_empty() {
            // Before a task is done, all is looked through.
            found = self.entries_of_all(&rows, queue, head, more, until_us).await?;
        }
        if found.is_empty() {
            return Ok(None);
        }
        // Each would be another message there.
        let leftovers = take_leftovers(&mut found);
        let mut entries = found.clone();
        self.poll_peers();
        self.peers.retain_free(queue.generation, &mut entries);
        queue.pass_over(found.len() - entries.len());
        // What is not too much at once; one at least.
        let fitting = within_bytes(entries.iter().map(Entry::body_bytes), MOVED_BYTES_MAX).max(1);
        entries.truncate(fitting.min(most));
        self.peers.claim(queue.generation, &entries);
        let mut read = self.read_leaving(facts, &rows, queue, entries.clone()).await;
        read.stale.extend(leftovers);
        let dropped = self.drop_dead(&rows, &read).await;
        // Where one cannot be read none of them leaves now.
        let stays = if read.failed.is_some() { &entries } else { &read.missing };
        let first_stays_us = stays.first().map(|entry| entry.visible_at_us);
        for at_us in first_stays_us.into_iter().chain(first_left_us(&found, &entries)) {
            // They are found there by the next step, or by a receive.
            head.return_to(at_us);
        }
        match read.failed {
            Some(fault) => {
                self.peers.release(queue.generation, &entries);
                Err(fault)
            }
            None => Ok(Some((read.leaving, dropped))),
        }
    }

    /// Reads the messages of entries that are to leave, which are claimed: none that another front-end delivers is among them. Those that
    /// cannot be read at all are left out from now on.
    async fn read_leaving(
        &self,
        facts: &QueueFacts,
        rows: &Rows<'_>,
        queue: &Queue,
        entries: Vec<Entry>,
    ) -> Read {
        let messages = rows.read_messages(&entries).await;
        self.poll_peers();
        let now_us = self.clock.now_us();
        let (mut read, mut unreadable) = (Read::default(), Vec::new());
        for (entry, message) in entries.into_iter().zip(messages) {
            if let Err(fault) = &message {
                read.failed.get_or_insert_with(|| fault.clone());
            }
            match self.classify(facts, rows, &entry, message, now_us) {
                Taken::Message(message) if self.peers.settle(queue.generation, &entry) => {
                    read.leaving.push(Leaving { entry, message: *message });
                }
                Taken::Message(_) => {}
                Taken::Stale => read.stale.push(entry),
                Taken::Expired => read.expired.push(entry),
                Taken::Later => read.missing.push(entry),
                Taken::Unreadable => unreadable.push(entry),
            }
        }
        queue.note_unreadable(&unreadable);
        self.peers.release(queue.generation, &unreadable);
        self.peers.release(queue.generation, &read.missing);
        read
    }

    /// Removes what is not to leave ever. Returns how much of it is gone.
    async fn drop_dead(&self, rows: &Rows<'_>, read: &Read) -> usize {
        let deleted = rows.delete_entries(&read.stale).await;
        let gone = deleted.iter().filter(|deleted| deleted.is_ok()).count();
        gone + self.drop_messages(rows, &read.expired).await
    }

    /// Reads entries from the place on that the head was read to, as a receive finds them. What the
    /// last step has moved is behind that place: from the low-water mark on each step would read
    /// what all before it have deleted.
    async fn entries_at_place(
        self: &Arc<Self>,
        rows: &Rows<'_>,
        queue: &Queue,
        head: &mut Head,
        most: usize,
        until_us: i64,
    ) -> Result<Vec<Entry>, Fault> {
        head.hear_of(queue.take_heard(), self.clock.now_us());
        let mut left_out = 0;
        for _ in 0..READS_AT_ONCE {
            let (start, mut read) = self.read_head(rows, head, most + left_out).await?;
            left_out = queue.leave_out_unreadable(&mut read.visible);
            let taken = read.visible.iter().filter(|entry| entry.visible_at_us <= until_us);
            let taken: Vec<Entry> = taken.take(most).copied().collect();
            let first_left_us = first_left_us(&read.visible, &taken);
            head.on_read(start, &read, first_left_us, self.grace_us(rows));
            self.store_mark(rows, head);
            // Buckets whose messages are all consumed: the head is behind them.
            if !read.visible.is_empty() || read.seen_to_us.is_none() {
                return Ok(taken);
            }
        }
        Ok(Vec::new())
    }

    /// Reads entries from the low-water mark on.
    async fn entries_of_all(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        head: &mut Head,
        most: usize,
        until_us: i64,
    ) -> Result<Vec<Entry>, Fault> {
        let start = self.prepare_head_read(rows, head).await?;
        let mut start = Start { from_us: head.low_us(), reach: Reach::Full, ..start };
        let mut directory = read_directory(rows, start, start.from_us).await?;
        let mut left_out = 0;
        let visible: Vec<Entry> = loop {
            if !directory.covers(start) {
                directory = read_directory(rows, start, start.from_us).await?;
            }
            let mut read = self.read_visible(rows, &directory, start, most + left_out).await?;
            left_out = queue.leave_out_unreadable(&mut read.visible);
            match read.seen_to_us {
                // Buckets whose messages are all consumed: the head is behind them.
                Some(seen_to_us) if read.visible.is_empty() && seen_to_us > start.from_us => {
                    start.from_us = seen_to_us;
                }
                _ => break read.visible,
            }
        };
        let taken = visible.into_iter().take(most).filter(|entry| entry.visible_at_us <= until_us);
        Ok(taken.collect())
    }
}

/// Returns when the first visible entry became so that is not taken.
fn first_left_us(visible: &[Entry], taken: &[Entry]) -> Option<i64> {
    let left = visible.iter().find(|entry| !taken.contains(entry));
    left.map(|entry| entry.visible_at_us)
}
