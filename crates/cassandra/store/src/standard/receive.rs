//! ReceiveMessage: BDQS §III-B.2 and 3. A read of the head serves all who wait here; each message gets a new entry at the
//! end of its visibility timeout, and loses the old one: with the same write where both are in one partition, else
//! afterwards. A crash in between duplicates it, and never loses it.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Consistency, Fault, OrderHint, QueueFacts, Receive, Received};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::{
    BATCH_BYTES_MAX, BATCHES_AT_ONCE, READ_ROWS_MAX, RECEIVE_LATE_MS_MAX, TAKEN_ROWS_MAX,
    WAITING_RECEIVES_MAX,
};
use crate::message_id::sent_at_ms;
use crate::peers::name;
use crate::standard::batch::within_bytes;
use crate::standard::choice::{choose, take_leftovers};
use crate::standard::content::{StoredMessage, Timed};
use crate::standard::gather::Size;
use crate::standard::head::{Head, HeadRead};
use crate::standard::jobs::{ReceiveJob, entry_ttl_s};
use crate::standard::order_hint::VisibleEntry;
use crate::standard::queue::Queue;
use crate::standard::receipt::Receipt;
use crate::standard::row_write::RowWrite;
use crate::standard::rows::Rows;
use crate::standard::send::{First, stopped};
use crate::standard::start::{Reach, Start};
use crate::standard::taken::Taken;
use crate::standard::{Standard, id_of};

/// Reads of one round, each of which goes on where the last ended.
pub(super) const READS_AT_ONCE: usize = 64;

/// What a read of the head has chosen to be received.
struct Chosen {
    entries: Vec<Entry>,
    /// What goes since its message has a newer entry.
    leftovers: Vec<Entry>,
    read_at: Instant,
}

/// What came of what was chosen.
#[derive(Default)]
struct Delivered {
    /// What the round came to, if something was delivered, or moved to the dead-letter queue, or new entries were not written.
    served: Option<Served>,
    /// What stays where it is, the oldest first.
    left: Vec<Entry>,
    /// Partitions of messages that were not answered.
    unanswered: Vec<Bucket>,
}

/// A message to be delivered: its entry, the one that replaces it, and whose call it is for.
struct Move {
    old: Entry,
    new: Timed<Entry>,
    message: Box<StoredMessage>,
    job: usize,
}

impl Standard {
    /// Receives messages; waits for the first as long as it is asked to.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        let queue = self.queue(facts).await?;
        self.check_in_flight(facts, &queue).await?;
        let (reply, received) = oneshot::channel();
        let until = Instant::now() + Duration::from_millis(receive.wait_ms);
        let job = ReceiveJob { facts: facts.clone(), receive, until, reply };
        self.await_messages(&queue, job)?;
        received.await.map_err(|_| stopped())?
    }

    /// Lets a call wait for messages of that generation.
    fn await_messages(self: &Arc<Self>, queue: &Arc<Queue>, job: ReceiveJob) -> Result<(), Fault> {
        queue.is_polled_as(&job.facts.queue);
        let limit = Size { rows: WAITING_RECEIVES_MAX, bytes: 0 };
        if queue.receives.push(job, Size { rows: 1, bytes: 0 }, limit)? {
            let (standard, queue) = (self.clone(), queue.clone());
            self.runtime.spawn(async move {
                let serving = queue.receives.serving();
                standard.serve_receives(&queue).await;
                serving.done();
            });
        } else {
            queue.arrived.notify_one();
        }
        Ok(())
    }

    /// The queue may have been purged meanwhile: then those who wait go on with its new generation.
    async fn follow_generation(self: &Arc<Self>, queue: &Queue, waiting: &mut Vec<ReceiveJob>) {
        let Some(facts) = waiting.last().map(|job| job.facts.clone()) else { return };
        match self.queue(&facts).await {
            Ok(current) if current.generation == queue.generation => {}
            // A call that is too much hears that nobody waits for it.
            Ok(current) => {
                for job in waiting.drain(..) {
                    let _ = self.await_messages(&current, job);
                }
            }
            Err(fault) => drop(fail(waiting, &fault)),
        }
    }

    /// Reads the head, again and again, until nobody waits.
    async fn serve_receives(self: &Arc<Self>, queue: &Arc<Queue>) {
        let mut waiting: Vec<ReceiveJob> = Vec::new();
        let mut backoff = Backoff::default();
        loop {
            let room = Size { rows: WAITING_RECEIVES_MAX.saturating_sub(waiting.len()), bytes: 0 };
            if waiting.is_empty() {
                match queue.receives.take(room) {
                    Some(jobs) => waiting = jobs,
                    None => return,
                }
            } else if room.rows > 0 {
                waiting.extend(queue.receives.take_more(room));
            }
            waiting.retain(|job| !job.reply.is_closed());
            self.peers.polls(queue.generation);
            self.follow_generation(queue, &mut waiting).await;
            let round = self.rounds.read().await;
            let served = self.serve_round(queue, &mut waiting).await;
            drop(round);
            let now = Instant::now();
            let is_over = |job: &ReceiveJob| job.until <= now;
            for job in waiting.extract_if(.., |job| is_over(job)) {
                let _ = job.reply.send(Ok(Vec::new()));
            }
            waiting.retain(|job| !job.reply.is_closed());
            if waiting.is_empty() {
                backoff.reset();
                continue;
            }
            match served {
                Served::Some => backoff.reset(),
                Served::None { next_visible_in, is_quiet } => {
                    let mut pause = match is_quiet && self.peers.is_nudged(queue.generation) {
                        true => Duration::from_millis(backoff.next_nudged_ms(fastrand::u32(..))),
                        false => Duration::from_millis(backoff.next_ms(fastrand::u32(..))),
                    };
                    for earlier in waiting.iter().map(|job| job.until - now).chain(next_visible_in)
                    {
                        pause = pause.min(earlier);
                    }
                    let arrived = tokio::time::timeout(pause, queue.arrived.notified());
                    if arrived.await.is_ok() {
                        backoff.reset();
                    }
                }
            }
        }
    }

    /// Carries out reads of the head until one delivers something, and what follows from them.
    async fn serve_round(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        waiting: &mut Vec<ReceiveJob>,
    ) -> Served {
        let Some(facts) = waiting.last().map(|job| job.facts.clone()) else {
            return Served::nothing();
        };
        self.count_groups(&facts, queue).await;
        // Until all is moved: another read would find the same.
        let mut head = queue.head.lock().await;
        head.hear_of(queue.take_heard(), self.clock.now_us());
        head.left_behind.begin(self.clock.now_us());
        let served = self.serve_head(&facts, queue, &mut head, waiting).await;
        if served.is_some() {
            head.left_behind.end(self.clock.now_us());
        }
        // Where it came to no end, there may be more.
        served.unwrap_or(Served::Some)
    }

    /// Reads the head, and what is behind entries that cannot be had now. `None`: it came to no end, and the next round goes on there.
    async fn serve_head(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        head: &mut Head,
        waiting: &mut Vec<ReceiveJob>,
    ) -> Option<Served> {
        let (rows, k) = (self.rows(facts, queue), self.k(facts, queue));
        let wanted = waiting.iter().map(|job| job.receive.max).sum::<usize>().min(TAKEN_ROWS_MAX);
        let more_of_fair = queue.fair().rows_more();
        let (mut left_out, mut of_others) = (0, 0);
        for _ in 0..READS_AT_ONCE {
            let read_at = Instant::now();
            // More and more, so that few reads find out how many there are.
            let more = queue.passed_over() + more_of_fair + left_out + left_out / 2;
            let most = wanted.max(k) + more;
            let (start, mut read) = match self.read_head(&rows, head, most).await {
                Ok(found) => found,
                Err(fault) => return Some(fail(waiting, &fault)),
            };
            left_out = queue.leave_out_unreadable(&mut read.visible);
            self.poll_peers();
            if !head.left_behind.are_before(start) {
                self.observe_head(facts, queue, start, &read);
            }
            let mut candidates = read.visible.clone();
            candidates.retain(|entry| !head.left_behind.has(entry));
            left_out += read.visible.len() - candidates.len();
            let leftovers = take_leftovers(&mut candidates);
            let visible = candidates.len();
            self.peers.retain_free(queue.generation, &mut candidates);
            of_others = of_others.max(visible - candidates.len());
            queue.pass_over(of_others);
            let to_be_passed_us =
                if read.visible.is_empty() { start.place_us() } else { start.from_us };
            let gets_further = read.seen_to_us.is_some_and(|seen_us| seen_us > to_be_passed_us);
            let may_see_more = read.seen_to_us.is_some() && (gets_further || most < READ_ROWS_MAX);
            if candidates.is_empty() && may_see_more {
                // All are consumed, others take them, or they cannot be had: the next read sees those behind them.
                if gets_further {
                    head.on_read(start, &read, None, self.grace_us(&rows));
                    self.store_mark(&rows, head);
                    head.left_behind.pass(read.visible.first());
                    if are_late(waiting) {
                        return None;
                    }
                }
                continue;
            }
            let chosen = choose_entries(queue, candidates, wanted, k);
            // Before they are claimed, since a claim ends by itself.
            let _reading = self.reading(chosen.iter().map(Entry::body_bytes).sum()).await;
            queue.fair().chose(chosen.len());
            self.peers.claim(queue.generation, &chosen);
            queue.auto_hint().chose(chosen.iter().map(name));
            let is_passed = |entry: &&Entry| head.left_behind.has(entry);
            let passed = read.visible.iter().find(is_passed).copied();
            let left = read.visible.iter().find(|one| !is_passed(one) && !chosen.contains(one));
            let left_us = left.map(|entry| entry.visible_at_us);
            head.on_read(start, &read, left_us, self.grace_us(&rows));
            self.store_mark(&rows, head);
            head.left_behind.pass(passed.as_ref());
            let tried: Vec<Uuid> = chosen.iter().map(|entry| entry.message).collect();
            let chosen = Chosen { entries: chosen, leftovers, read_at };
            let Delivered { served, left, unanswered } =
                self.deliver(facts, &rows, queue, chosen, waiting).await;
            head.left_behind.pass(left.first());
            if served.is_some() {
                return served;
            }
            // Their messages are not there yet: those behind them need not wait.
            let is_done = tried.is_empty() || head.left_behind.note_tried(tried, unanswered);
            if is_done || are_late(waiting) {
                return is_done.then(|| self.nothing_of(&rows, start, &read, head));
            }
        }
        None
    }

    /// Returns what a round came to that could deliver nothing, by its last read.
    fn nothing_of(&self, rows: &Rows<'_>, start: Start, read: &HeadRead, head: &Head) -> Served {
        let now_us = self.clock.now_us();
        let until = read.next_visible_at_us.map(|at_us| (at_us - now_us).max(0).unsigned_abs());
        // What others take comes back without a word if they end, and one replica alone may hear of anything late.
        let is_quiet = read.visible.is_empty()
            && head.left_behind.is_empty()
            && start.reach != Reach::Near
            && rows.of.consistency == Consistency::LocalQuorum;
        Served::None { next_visible_in: until.map(Duration::from_micros), is_quiet }
    }

    /// Reads as many visible entries as are wanted. Returns them, and where the read for them
    /// began.
    pub(super) async fn read_head(
        &self,
        rows: &Rows<'_>,
        head: &mut Head,
        wanted: usize,
    ) -> Result<(Start, HeadRead), Fault> {
        let start = self.prepare_head_read(rows, head).await?;
        Ok((start, self.read_visible(rows, head.directory(), start, wanted).await?))
    }

    /// Returns among how many of the oldest entries one is chosen.
    fn k(&self, facts: &QueueFacts, queue: &Queue) -> usize {
        match facts.settings.order_hint {
            OrderHint::Fixed(k) => usize::from(k).max(1),
            OrderHint::Auto if !self.peers.claims_are_heeded => 1,
            OrderHint::Auto => {
                queue.auto_hint().k(self.peers.others(), self.settings.duplicates_max)
            }
        }
    }

    /// What is gone from the head since the last read was taken by others.
    fn observe_head(&self, facts: &QueueFacts, queue: &Queue, start: Start, read: &HeadRead) {
        if facts.settings.order_hint != OrderHint::Auto {
            return;
        }
        let seen =
            |entry: &Entry| VisibleEntry { entry: name(entry), visible_at_us: entry.visible_at_us };
        let seen: Vec<VisibleEntry> = read.visible.iter().map(seen).collect();
        let is_announced = |entry| !self.peers.is_free(queue.generation, entry);
        let is_whole = read.seen_to_us.is_none();
        queue.auto_hint().on_head_read(start.now_us, &seen, is_whole, is_announced);
    }

    /// Reads the messages, moves their entries, answers the calls.
    async fn deliver(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        rows: &Rows<'_>,
        queue: &Arc<Queue>,
        Chosen { entries, leftovers, read_at }: Chosen,
        waiting: &mut Vec<ReceiveJob>,
    ) -> Delivered {
        let (chosen, is_any_moved) = self.without_exhausted(facts, queue, entries).await;
        if chosen.is_empty() {
            let served = is_any_moved.then_some(Served::Some);
            return Delivered { served, ..Delivered::default() };
        }
        let messages = rows.read_messages(&chosen).await;
        let unanswered = chosen.iter().zip(&messages).filter(|(_, message)| message.is_err());
        let unanswered: Vec<Bucket> = unanswered.map(|(entry, _)| entry.body).collect();
        self.poll_peers();
        let now_us = self.clock.now_us();
        let (mut found, mut stale, mut left) = (Vec::new(), leftovers, Vec::new());
        let (mut expired, mut unreadable) = (Vec::new(), Vec::new());
        for (entry, message) in chosen.into_iter().zip(messages) {
            match self.classify(facts, rows, &entry, message, now_us) {
                Taken::Message(message) if self.peers.settle(queue.generation, &entry) => {
                    found.push((entry, message));
                }
                // Another front-end has chosen it too, and delivers it.
                Taken::Message(_) => {}
                Taken::Stale => stale.push(entry),
                Taken::Expired => expired.push(entry),
                Taken::Later => left.push(entry),
                Taken::Unreadable => unreadable.push(entry),
            }
        }
        queue.note_unreadable(&unreadable);
        self.peers.release(rows.of.generation, &unreadable);
        let moves = self.moves(facts, queue, found, waiting, now_us);
        let (moved, unmoved) = self.move_entries(rows, queue, moves, stale, &mut left).await;
        self.peers.release(rows.of.generation, &left);
        queue.auto_hint().delivered(moved.len(), read_at.elapsed());
        queue.in_flight.delivered(moved.len());
        queue.note_fair(moved.iter().map(|one| &one.new.row));
        let is_any = self.answer(facts, rows, queue, waiting, moved, now_us).await;
        self.drop_messages(rows, &expired).await;
        left.sort_unstable_by_key(|entry| entry.visible_at_us);
        let served = match unmoved {
            _ if is_any => Some(Served::Some),
            // Those behind them are not written either: each attempt may hide some, which nobody receives.
            Some(fault) => Some(fail(waiting, &fault)),
            None => None,
        };
        Delivered { served, left, unanswered }
    }

    /// Moves those to the dead-letter queue that were received too often; returns the others, and whether one was moved.
    async fn without_exhausted(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        queue: &Arc<Queue>,
        chosen: Vec<Entry>,
    ) -> (Vec<Entry>, bool) {
        let Some(policy) = &facts.settings.redrive else { return (chosen, false) };
        let is_exhausted =
            |entry: &Entry| i64::from(entry.receive_count) >= i64::from(policy.receive_count_max);
        if !chosen.iter().any(is_exhausted) {
            return (chosen, false);
        }
        let (exhausted, others): (Vec<Entry>, Vec<Entry>) =
            chosen.iter().partition(|entry| is_exhausted(entry));
        match self.dead_letter_queue(facts).await {
            Ok(Some(to)) => {
                let moved = self.dead_letter(facts, queue, exhausted, &to).await;
                (others, moved > 0)
            }
            // There is no such queue any more: they are received as before.
            Ok(None) => (chosen, false),
            Err(_) => (others, false),
        }
    }

    /// Returns which call gets which message: the longest waiting first, each as many as it asked
    /// for.
    fn moves(
        &self,
        facts: &QueueFacts,
        queue: &Queue,
        found: Vec<(Entry, Box<StoredMessage>)>,
        waiting: &[ReceiveJob],
        now_us: i64,
    ) -> Vec<Move> {
        let places = waiting
            .iter()
            .enumerate()
            .flat_map(|(job, one)| std::iter::repeat_n(job, one.receive.max));
        let moved = found.into_iter().zip(places).map(|((old, message), job)| {
            let visible_at_us = self
                .peers
                .own_us(now_us + (waiting[job].receive.visibility_timeout_ms * 1_000) as i64);
            let first_received_at_ms = if old.first_received_at_ms == 0 {
                now_us / 1_000
            } else {
                old.first_received_at_ms
            };
            let new = Entry {
                visible_at_us,
                bucket: queue.place_entry(visible_at_us, now_us, self.peers.writers()),
                receive_count: old.receive_count.saturating_add(1),
                first_received_at_ms,
                written_at_us: old.next_written_at_us(now_us),
                ..old
            };
            let ttl_s = entry_ttl_s(facts, old.message, now_us);
            Move { old, new: Timed { row: new, ttl_s }, message, job }
        });
        moved.collect()
    }

    /// Writes the new entries and removes the old ones, and those that are stale. Returns what may be delivered, and why the first that
    /// may not was not written; adds those to `left`.
    async fn move_entries(
        &self,
        rows: &Rows<'_>,
        queue: &Queue,
        moves: Vec<Move>,
        stale: Vec<Entry>,
        left: &mut Vec<Entry>,
    ) -> (Vec<Move>, Option<Fault>) {
        let old: Vec<Entry> = moves.iter().map(|one| one.old).collect();
        let mut new: Vec<Timed<Entry>> = moves.iter().map(|one| one.new.clone()).collect();
        let others = stale.into_iter().map(RowWrite::DeleteEntry).collect();
        let first = First { replaced: &old, others };
        let (inserted, _) = self.write_entries(rows, queue, &mut new, first, Instant::now()).await;
        let (mut moved, mut gone) = (Vec::with_capacity(moves.len()), Vec::new());
        let mut unmoved = None;
        for ((one, new), inserted) in moves.into_iter().zip(new).zip(inserted) {
            if let Err(fault) = inserted {
                left.push(one.old);
                unmoved.get_or_insert(fault);
                continue;
            }
            if one.old.bucket != one.new.row.bucket {
                gone.push(one.old);
            }
            moved.push(Move { new, ..one });
        }
        // What stays is received once more, or dropped the next time.
        let _ = rows.delete_entries(&gone).await;
        (moved, unmoved)
    }

    async fn answer(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        rows: &Rows<'_>,
        queue: &Arc<Queue>,
        waiting: &mut Vec<ReceiveJob>,
        moved: Vec<Move>,
        now_us: i64,
    ) -> bool {
        let id = id_of(facts);
        let mut of_jobs: Vec<(Vec<Received>, Vec<Entry>)> = Vec::new();
        of_jobs.resize_with(waiting.len(), Default::default);
        for Move { new, message, job, .. } in moved {
            let (received, entries) = &mut of_jobs[job];
            received.push(delivered(id, rows.of.generation, new.row, *message, now_us));
            entries.push(new.row);
        }
        let (mut is_any, mut unheard) = (false, Vec::new());
        let jobs = std::mem::take(waiting);
        for (job, (received, entries)) in jobs.into_iter().zip(of_jobs) {
            if received.is_empty() {
                waiting.push(job);
                continue;
            }
            is_any = true;
            if job.reply.send(Ok(received)).is_err() {
                unheard.extend(entries);
            }
        }
        self.release(facts, queue, unheard).await;
        is_any
    }

    /// Makes messages visible again that nobody waited for any more.
    async fn release(&self, facts: &Arc<QueueFacts>, queue: &Queue, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let rows = self.rows(facts, queue);
        let (now_us, writers) = (self.clock.now_us(), self.peers.writers());
        let back = |old: &Entry| Timed {
            row: old.released(now_us, queue.place_entry(now_us, now_us, writers)),
            ttl_s: entry_ttl_s(facts, old.message, now_us),
        };
        let mut new: Vec<Timed<Entry>> = entries.iter().map(back).collect();
        let inserted = self.insert_entries(&rows, queue, &mut new, Instant::now()).await;
        let moved = entries.iter().zip(inserted).filter(|(_, inserted)| inserted.is_ok());
        let moved: Vec<Entry> = moved.map(|(entry, _)| *entry).collect();
        let _ = rows.delete_entries(&moved).await;
        queue.arrived.notify_one();
        if let Some(first) = new.first() {
            self.peers.stored(queue.generation, &first.row);
        }
    }
}

/// What a round came to.
enum Served {
    /// Somebody got something.
    Some,
    /// Nobody did; when there may be something, as far as is known; and whether the queue has nothing to be received, also of what was
    /// written late.
    None { next_visible_in: Option<Duration>, is_quiet: bool },
}

impl Served {
    /// Returns that nobody got anything, and of the queue nothing is known.
    fn nothing() -> Self {
        Self::None { next_visible_in: None, is_quiet: false }
    }
}

/// Tells all who wait that Cassandra cannot be asked. Returns that nobody got anything.
fn fail(waiting: &mut Vec<ReceiveJob>, fault: &Fault) -> Served {
    for job in waiting.drain(..) {
        let _ = job.reply.send(Err(fault.clone()));
    }
    Served::nothing()
}

/// Returns whether none of them should be kept waiting by further reads of the same round.
fn are_late(waiting: &[ReceiveJob]) -> bool {
    let late = Duration::from_millis(RECEIVE_LATE_MS_MAX);
    waiting.iter().all(|job| job.reply.is_closed() || job.until.elapsed() >= late)
}

/// Chooses among the K oldest of a queue's visible entries as many as are wanted and are not too much for one read; one at least.
fn choose_entries(queue: &Queue, visible: Vec<Entry>, wanted: usize, k: usize) -> Vec<Entry> {
    let (candidates, k) = queue.fair().in_turn(visible, k);
    let places = choose(candidates.len(), wanted, k, |below| fastrand::usize(..below));
    let chosen = places.iter().map(|place| candidates[*place]);
    let sizes = chosen.clone().map(|entry| entry.body_bytes());
    let fitting = within_bytes(sizes, BATCH_BYTES_MAX * BATCHES_AT_ONCE).max(1);
    chosen.take(fitting).collect()
}

fn delivered(
    queue: Uuid,
    generation: Uuid,
    entry: Entry,
    message: StoredMessage,
    now_us: i64,
) -> Received {
    let content = message.content;
    let receipt = Receipt { queue, generation, entry, received_at_ms: now_us / 1_000 };
    let first_received_at_ms = entry.first_received_at_ms.max(0).unsigned_abs();
    Received {
        delivery: receipt.encode(),
        message_id: entry.message.to_string(),
        body: content.body,
        attributes: content.attributes,
        receive_count: entry
            .receive_count
            .saturating_add(content.earlier_receives)
            .max(0)
            .unsigned_abs(),
        sent_at_ms: sent_at_ms(entry.message),
        // Two front-ends' clocks may differ. No message was received before it was sent.
        first_received_at_ms: first_received_at_ms.max(sent_at_ms(entry.message)),
        sender_id: Some(content.sender).filter(|sender| !sender.is_empty()),
        trace_header: content.trace_header,
        group_id: content.group_id,
        deduplication_id: content.deduplication_id,
        sequence_number: None,
        dead_letter_source: content.source,
    }
}
