//! A broker reduced to what the store sees of it, on a disk in memory, in virtual time.

mod restart;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;

use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::fake_disk::{Call, FakeDisk};
use quelea_store::{
    CheckpointCursor, Deduplication, Disk, Drained, Durability, Entry, EntryFlags, Front, JobDone,
    LoadItem, LoadWhat, Loaded, MemStore, NEVER, NewMessage, NextRead, Options, QueueIndex, Store,
    StoreState, Ticket, Visibility,
};

use crate::state::{State, message};

/// Queues numbered from 1, their ready and their delivered messages, and what should survive.
pub(crate) struct StoreHarness<S> {
    pub(crate) disk: FakeDisk,
    pub(crate) options: Options,
    pub(crate) store: S,
    pub(crate) now: Timestamp,
    pub(crate) ready: BTreeMap<QueueId, QueueIndex>,
    pub(crate) unacked: BTreeMap<(QueueId, Seq), (Entry, Option<Timestamp>)>,
    pub(crate) next_seq: Seq,
    /// What the store should hold now, and after each operation before.
    pub(crate) state: State,
    pub(crate) history: Vec<State>,
    /// Tickets with the length of the history when they were taken.
    tickets: Vec<(Ticket, usize)>,
    pub(crate) loaded: Vec<Loaded>,
    token: u64,
    openings: u64,
    pass: Option<Pass>,
    /// From when what is published now may be received.
    delay: Option<Timestamp>,
}

/// How far a checkpoint pass has come.
struct Pass {
    queues: Vec<QueueId>,
    cursor: CheckpointCursor,
}

/// Returns options with small segments, so that little data makes many.
pub(crate) fn small() -> Options {
    Options { segment_bytes: 16 * 1024, ..Options::default() }
}

pub(crate) fn tiny() -> Options {
    Options { segment_bytes: 4 * 1024, ..Options::default() }
}

impl StoreHarness<MemStore> {
    pub(crate) fn in_memory() -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self::with(FakeDisk::new(), small(), MemStore::new(), now)
    }
}

impl<S: Store> StoreHarness<S> {
    fn with(disk: FakeDisk, options: Options, store: S, now: Timestamp) -> Self {
        Self {
            disk,
            options,
            store,
            now,
            ready: BTreeMap::new(),
            unacked: BTreeMap::new(),
            next_seq: Seq(1),
            state: State::default(),
            history: vec![State::default()],
            tickets: Vec::new(),
            loaded: Vec::new(),
            token: 0,
            openings: 1,
            pass: None,
            delay: None,
        }
    }

    pub(crate) fn index(&mut self, queue: QueueId) -> &mut QueueIndex {
        self.ready.entry(queue).or_default()
    }

    /// The operation is complete: a moment that a crash may leave.
    fn moment(&mut self) {
        self.history.push(self.state.clone());
    }

    pub(crate) fn publish(&mut self, queues: &[u32], body_bytes: u32) -> Seq {
        self.publish_with(queues, body_bytes, true, &[], 0)
    }

    /// The same for messages that may be transient.
    pub(crate) fn publish_durably(&mut self, queues: &[u32], body_bytes: u32, durable: bool) {
        self.put(queues, body_bytes, durable, &[], 0);
    }

    /// Takes a ready message out, as when it expires.
    pub(crate) fn remove(&mut self, queue: u32, seq: Seq) {
        let queue = QueueId(queue);
        if let Some(ready) = self.index(queue).remove(seq) {
            self.store.append_acks(queue, &[ready.entry]);
            self.state.remove(queue, seq);
        }
    }

    /// Publishes without keeping the moment, for tests with thousands of messages.
    pub(crate) fn publish_fast(&mut self, queues: &[u32], body_bytes: u32) -> Seq {
        self.put(queues, body_bytes, true, &[], 0)
    }

    pub(crate) fn publish_with(
        &mut self,
        queues: &[u32],
        body_bytes: u32,
        durable: bool,
        expiries: &[Timestamp],
        priority: u8,
    ) -> Seq {
        let seq = self.put(queues, body_bytes, durable, expiries, priority);
        self.moment();
        seq
    }

    fn put(
        &mut self,
        queues: &[u32],
        body_bytes: u32,
        durable: bool,
        expiries: &[Timestamp],
        priority: u8,
    ) -> Seq {
        let seq = self.next_seq;
        self.next_seq = seq.next();
        let message: Arc<Message> = message(seq, body_bytes);
        let queues: Vec<QueueId> = queues.iter().map(|queue| QueueId(*queue)).collect();
        let location = self.store.append_message(NewMessage {
            seq,
            queues: &queues,
            durable,
            enqueued_at: self.now,
            visible_at: self.delay,
            expiries,
            priority,
            message: &message,
        });
        for (at, queue) in queues.iter().enumerate() {
            let expiry = if expiries.len() == 1 { expiries.first() } else { expiries.get(at) };
            let expires_at = expiry.copied().filter(|expiry| *expiry != NEVER);
            let mut flags = EntryFlags::STORED;
            if durable {
                flags = flags.with(EntryFlags::DURABLE);
            }
            if expires_at.is_some() {
                flags = flags.with(EntryFlags::HAS_EXPIRY);
            }
            let entry = Entry { seq, location, body_bytes, delivery_count: 0, priority, flags };
            if durable {
                self.state.put(*queue, &entry, expires_at);
            }
            self.index(*queue).push_back(entry, expires_at, None);
        }
        seq
    }

    /// Gives the first message to a consumer, reading a range back if need be.
    pub(crate) fn deliver(&mut self, queue: u32) -> Option<Seq> {
        let queue = QueueId(queue);
        if let Front::Paged(_) = self.index(queue).front() {
            return None;
        }
        let ready = self.index(queue).pop_front()?;
        let seq = ready.entry.seq;
        self.unacked.insert((queue, seq), (ready.entry, ready.expires_at));
        Some(seq)
    }

    pub(crate) fn ack(&mut self, queue: u32, seq: Seq) {
        self.settle_one(QueueId(queue), seq);
        self.moment();
    }

    fn settle_one(&mut self, queue: QueueId, seq: Seq) {
        if let Some((entry, _)) = self.unacked.remove(&(queue, seq)) {
            self.store.append_acks(queue, &[entry]);
            self.state.remove(queue, seq);
        }
    }

    /// Delivers and acknowledges the first `count` messages.
    pub(crate) fn consume(&mut self, queue: u32, count: usize) {
        for _ in 0..count {
            let Some(seq) = self.deliver(queue) else { break };
            self.ack(queue, seq);
        }
    }

    /// The same for one, without keeping the moment.
    pub(crate) fn consume_fast(&mut self, queue: u32) {
        if let Some(seq) = self.deliver(queue) {
            self.settle_one(QueueId(queue), seq);
        }
    }

    pub(crate) fn requeue(&mut self, queue: u32, seq: Seq) {
        self.requeue_fast(queue, seq);
        self.moment();
    }

    /// The same without keeping the moment.
    pub(crate) fn requeue_fast(&mut self, queue: u32, seq: Seq) {
        let queue = QueueId(queue);
        let Some((mut entry, expires_at)) = self.unacked.remove(&(queue, seq)) else { return };
        entry.delivery_count += 1;
        entry.flags = entry.flags.with(EntryFlags::REDELIVERED);
        self.store.append_requeue(queue, &entry, expires_at);
        if entry.is_durable() {
            self.state.put(queue, &entry, expires_at);
            if let Some(noted) = self.state.visibility.get_mut(&(queue, seq)) {
                noted.receive_count = entry.delivery_count;
            }
        }
        self.index(queue).insert(entry, expires_at, None);
    }

    /// Notes from when a delivered message may be received again, as when it is received.
    pub(crate) fn hide(&mut self, queue: u32, seq: Seq, visible_at: u64, receive_count: u16) {
        let queue = QueueId(queue);
        let is_durable = |(entry, _): &(Entry, Option<Timestamp>)| entry.is_durable();
        if self.unacked.get(&(queue, seq)).is_some_and(is_durable) {
            let visible_at = Timestamp::from_millis(visible_at);
            let first_received_at = Timestamp::from_millis(seq.0);
            let noted = Visibility { seq, visible_at, first_received_at, receive_count };
            self.store.append_visibility(queue, &noted);
            self.state.visibility.insert((queue, seq), noted);
            self.moment();
        }
    }

    /// Appends a message that is delayed, sent with an id, both at once.
    pub(crate) fn send(&mut self, queue: u32, body_bytes: u32, visible_at: u64, key: u64) -> Seq {
        let queue = QueueId(queue);
        let visible_at = Timestamp::from_millis(visible_at);
        self.store.begin_atomic();
        self.delay = Some(visible_at);
        let seq = self.put(&[queue.0], body_bytes, true, &[], 0);
        self.delay = None;
        let noted = Visibility { seq, visible_at, ..Visibility::default() };
        self.state.visibility.insert((queue, seq), noted);
        let sent = Deduplication {
            seq,
            sent_at: self.now,
            key: [key, 1],
            message_id: seq.0.to_le_bytes().repeat(2).try_into().expect("16 bytes"),
        };
        self.store.append_deduplication(queue, &sent);
        self.state.deduplications.insert((queue, sent.key), sent);
        self.store.end_atomic();
        self.moment();
        seq
    }

    pub(crate) fn purge(&mut self, queue: u32) {
        let queue = QueueId(queue);
        self.drain(queue);
        let kept: Vec<Seq> = self.delivered(queue);
        self.store.append_purge(queue, &kept);
        let kept: BTreeSet<Seq> = kept.into_iter().collect();
        self.state.retain(|q, seq| q != queue || kept.contains(&seq));
        self.state.deduplications.retain(|(q, _), _| *q != queue);
        self.moment();
    }

    pub(crate) fn delete_queue(&mut self, queue: u32) {
        let queue = QueueId(queue);
        self.drain(queue);
        for seq in self.delivered(queue) {
            let (entry, _) = self.unacked.remove(&(queue, seq)).expect("it is there");
            self.store.release(&entry);
        }
        self.store.append_queue_deleted(queue);
        self.state.retain(|q, _| q != queue);
        self.state.deduplications.retain(|(q, _), _| *q != queue);
        self.moment();
    }

    fn delivered(&self, queue: QueueId) -> Vec<Seq> {
        self.unacked.keys().filter(|(q, _)| *q == queue).map(|(_, seq)| *seq).collect()
    }

    fn drain(&mut self, queue: QueueId) {
        let mut index = self.ready.remove(&queue).unwrap_or_default();
        let store = &mut self.store;
        index.drain(&mut |removed| match removed {
            Drained::Entry(ready) => store.release(&ready.entry),
            Drained::PagedRange(range) => store.release_paged_range(&range),
        });
        assert!(index.is_empty() && index.index_bytes() == 0 && index.body_bytes() == 0);
    }

    pub(crate) fn put_topology(&mut self, key: &str, value: &str) {
        self.store.put_topology(key.as_bytes(), value.as_bytes());
        self.state.topology.insert(key.as_bytes().to_vec(), value.as_bytes().to_vec());
        self.moment();
    }

    pub(crate) fn delete_topology(&mut self, key: &str) {
        self.store.delete_topology(key.as_bytes());
        self.state.topology.remove(key.as_bytes());
        self.moment();
    }

    /// A transaction: so many publishes to a queue, and the acknowledgement of all that is
    /// delivered from it.
    pub(crate) fn transaction(&mut self, queue: u32, publishes: usize, body_bytes: u32) {
        self.store.begin_atomic();
        for _ in 0..publishes {
            self.put(&[queue], body_bytes, true, &[], 0);
        }
        for seq in self.delivered(QueueId(queue)) {
            self.settle_one(QueueId(queue), seq);
        }
        self.store.end_atomic();
        self.moment();
    }

    pub(crate) fn ticket(&mut self, durability: Durability) -> Ticket {
        let ticket = self.store.ticket(durability);
        self.tickets.push((ticket, self.history.len()));
        ticket
    }

    pub(crate) fn is_reached(&self, ticket: Ticket) -> bool {
        self.store.progress().reached(ticket)
    }

    /// Runs one job; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(job) = self.store.poll_job(self.now) else { return false };
        let done = job.run(&self.disk);
        self.complete(done);
        true
    }

    /// Runs one job and keeps its result, as if the machine stopped before it came back.
    pub(crate) fn run_unfinished(&mut self) -> Option<JobDone> {
        self.store.poll_job(self.now).map(|job| job.run(&self.disk))
    }

    pub(crate) fn complete(&mut self, mut done: JobDone) {
        done.elapsed_us = 7;
        self.store.complete(done);
        self.take_loaded();
    }

    fn take_loaded(&mut self) {
        while let Some(loaded) = self.store.poll_loaded() {
            self.loaded.push(loaded);
        }
    }

    /// Runs jobs until there is none at this moment.
    pub(crate) fn pump(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 100_000, "the store never comes to rest");
        }
    }

    /// Lets time pass until all is written, synced and finished.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000 {
            self.pump();
            if self.store.is_idle() {
                return;
            }
            match self.store.deadline() {
                Some(deadline) => self.now = self.now.max(deadline),
                None => self.now = self.now.plus_ms(1),
            }
        }
        panic!("not idle: {:?} {:?}", self.store.stats(), self.store.state());
    }

    /// Syncs all that was done and waits for it.
    pub(crate) fn sync(&mut self) {
        let ticket = self.ticket(Durability::Fsync);
        self.pump();
        assert!(self.is_reached(ticket), "{:?} {:?}", self.store.state(), self.store.stats());
    }

    pub(crate) fn is_healthy(&self) -> bool {
        *self.store.state() == StoreState::Healthy
    }

    /// Returns whether a broker with this limit takes publishes.
    pub(crate) fn accepts(&self, pending_bytes_max: usize) -> bool {
        self.store.has_room(0) && self.store.pending_bytes() < pending_bytes_max
    }

    /// A whole checkpoint, nothing else happening.
    pub(crate) fn checkpoint(&mut self) {
        self.begin_checkpoint();
        while self.pass.is_some() {
            self.pump();
            self.checkpoint_slice(100);
        }
        self.settle();
    }

    /// A checkpoint up to the moment in which it has its name but not durably.
    pub(crate) fn checkpoint_without_sync_of_its_name(&mut self) {
        self.begin_checkpoint();
        while self.pass.is_some() {
            self.pump();
            self.checkpoint_slice(100);
        }
        self.disk.fail(Call::SyncDir, 0, 1, ErrorKind::Other);
        while !self.has_checkpoint() {
            assert!(self.step(), "the checkpoint gets its name");
        }
        self.disk.heal();
    }

    fn has_checkpoint(&self) -> bool {
        let names = self.disk.list().expect("a list");
        names.iter().any(|name| name.starts_with("checkpoint") && !name.ends_with(".tmp"))
    }

    pub(crate) fn begin_checkpoint(&mut self) {
        self.store.begin_checkpoint();
        if self.store.checkpoint_gathering() {
            let queues = self.ready.keys().copied().rev().collect();
            self.pass = Some(Pass { queues, cursor: CheckpointCursor::default() });
        }
    }

    /// Gives some entries to a checkpoint that is under way: of each queue the ready ones, then
    /// the delivered ones of all queues.
    pub(crate) fn checkpoint_slice(&mut self, max: usize) {
        if !self.store.checkpoint_gathering() {
            self.pass = None;
            return;
        }
        if !self.store.checkpoint_ready() {
            return;
        }
        let Some(pass) = &mut self.pass else { return };
        // What is left of it is taken at the end.
        self.store.checkpoint_topology(max.div_ceil(50));
        if let Some(queue) = pass.queues.last() {
            let index = self.ready.entry(*queue).or_default();
            if index.checkpoint(*queue, &mut pass.cursor, max, &mut self.store) {
                pass.queues.pop();
                pass.cursor = CheckpointCursor::default();
            }
            return;
        }
        for ((queue, _), (entry, expires_at)) in &mut self.unacked {
            let expiries = [expires_at.unwrap_or(NEVER)];
            self.store.checkpoint_entries(*queue, std::slice::from_mut(entry), &expiries);
        }
        // The log before the checkpoint is not read again.
        for ((queue, _), noted) in &self.state.visibility {
            self.store.append_visibility(*queue, noted);
        }
        for ((queue, _), sent) in &self.state.deduplications {
            self.store.repeat_deduplication(*queue, sent);
        }
        self.store.finish_checkpoint();
        self.pass = None;
    }

    /// Lets time pass until there is nothing more to do, and to say.
    pub(crate) fn become_quiet(&mut self) {
        self.settle();
        while let Some(deadline) = self.store.deadline() {
            self.now = self.now.max(deadline);
            self.settle();
        }
    }

    /// Finishes a checkpoint that is under way, and all else.
    pub(crate) fn settle_pass(&mut self) {
        while self.pass.is_some() {
            self.pump();
            self.checkpoint_slice(100);
        }
        self.settle();
    }

    pub(crate) fn is_passing(&self) -> bool {
        self.pass.is_some()
    }
}

/// Returns what reads an entry's body.
pub(crate) fn item(entry: &Entry) -> LoadItem {
    LoadItem { seq: entry.seq, location: entry.location, body_bytes: entry.body_bytes }
}

/// Returns the head of an index as a load request, if something is missing.
pub(crate) fn missing(index: &QueueIndex, bytes: usize) -> Option<LoadWhat> {
    match index.next_read(bytes) {
        NextRead::Nothing => None,
        NextRead::Items(items) => Some(LoadWhat::Items(items)),
        NextRead::PagedRange(range) => Some(LoadWhat::PagedRange(range)),
    }
}
