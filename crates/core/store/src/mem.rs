//! A store in memory: the model that the log is tested against, and the store of tests.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use quelea_model::{Message, QueueId, Seq, Timestamp, limits};

use crate::{
    Deduplication, Durability, Entry, EntryFlags, Job, LoadError, LoadFault, LoadItem, LoadRequest,
    LoadWhat, Loaded, LoadedRange, Location, Missed, NEVER, NewMessage, PagedRange, Progress,
    Recovered, Store, StoreState, StoreStats, Ticket, Visibility,
};

/// Offsets in a made-up segment stay below this, so that ranges work as with a log.
const SEGMENT_BYTES: u32 = 1 << 20;

/// Keeps everything in memory, does everything at once. It is "durable" as far as
/// [`MemStore::recover`] goes.
#[derive(Debug, Default)]
pub struct MemStore {
    records: BTreeMap<Location, Record>,
    queues: BTreeMap<QueueId, BTreeMap<Seq, (Entry, Option<Timestamp>)>>,
    topology: BTreeMap<Vec<u8>, Vec<u8>>,
    visibility: BTreeMap<QueueId, BTreeMap<Seq, Visibility>>,
    deduplications: BTreeMap<QueueId, Vec<Deduplication>>,
    next: Location,
    next_seq: u64,
    next_queue: u32,
    loaded: VecDeque<Loaded>,
    batch: u64,
    progress: Progress,
    pumped: bool,
    state: StoreState,
    stats: StoreStats,
    checkpoint: bool,
}

#[derive(Debug)]
struct Record {
    seq: Seq,
    queues: Vec<QueueId>,
    expiries: Vec<Timestamp>,
    priority: u8,
    durable: bool,
    live: usize,
    message: Arc<Message>,
}

impl MemStore {
    /// Returns an empty store whose tickets are reached at once.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next: Location { segment: 1, offset: 0 },
            next_seq: 1,
            next_queue: 1,
            ..Self::default()
        }
    }

    /// Returns an empty store whose tickets are reached by the next [`Store::poll_job`], as if a
    /// write had come back; it has no jobs.
    #[must_use]
    pub fn pumped() -> Self {
        Self { pumped: true, ..Self::new() }
    }

    /// Sets the state, to see what a full or failed disk does.
    pub fn set_state(&mut self, state: StoreState) {
        self.state = state;
    }

    /// Returns what a restart would find.
    #[must_use]
    pub fn recover(&self) -> Recovered {
        let mut recovered = Recovered {
            topology: self.topology.clone(),
            next_seq: Seq(self.next_seq),
            next_queue: QueueId(self.next_queue),
            ..Recovered::default()
        };
        for (queue, entries) in &self.queues {
            for (entry, expires_at) in entries.values() {
                recovered.queues.entry(*queue).or_default().push_back(*entry, *expires_at, None);
                recovered.report.entries += 1;
            }
        }
        for (queue, noted) in &self.visibility {
            let entries = self.queues.get(queue);
            let mut noted = noted.clone();
            noted.retain(|seq, _| entries.is_some_and(|entries| entries.contains_key(seq)));
            recovered.visibility.insert(*queue, noted);
        }
        recovered.deduplications =
            self.deduplications.iter().map(|(queue, sent)| (*queue, sent.clone())).collect();
        recovered
    }

    fn place(&mut self, bytes: usize) -> Location {
        if self.next.offset >= SEGMENT_BYTES {
            self.next = Location { segment: self.next.segment + 1, offset: 0 };
        }
        let place = self.next;
        self.next.offset = self.next.offset.saturating_add(bytes as u32 + 64);
        place
    }

    fn appended(&mut self, bytes: usize) {
        self.stats.appended_bytes += bytes as u64;
        self.batch += 1;
        if !self.pumped {
            self.progress = Progress { written: self.batch, synced: self.batch };
        }
    }

    fn load_items(&self, items: &[LoadItem], loaded: &mut Loaded) {
        for item in items {
            match self.records.get(&item.location).filter(|record| record.seq == item.seq) {
                Some(record) => loaded.messages.push((item.seq, Arc::clone(&record.message))),
                None => loaded.errors.push(LoadError {
                    missed: Missed::Message(item.seq),
                    fault: LoadFault::Damage,
                    file: "memory".to_owned(),
                    location: item.location,
                    problem: "no such record".to_owned(),
                }),
            }
        }
    }

    fn load_paged_range(&self, queue: QueueId, range: &PagedRange, loaded: &mut Loaded) {
        let mut entries = Vec::new();
        let mut expiries = Vec::new();
        let mut bytes = 0;
        let span = range.first_location()..=range.last_location();
        for (location, record) in self.records.range(span) {
            let Some(at) = record.queues.iter().position(|q| *q == queue) else { continue };
            if !range.covers(record.seq, record.priority, record.durable) {
                continue;
            }
            let expires_at = expiry_of(&record.expiries, at);
            entries.push(record.entry(*location, expires_at));
            expiries.push(expires_at.unwrap_or(NEVER));
            bytes += record.message.body().len();
            if bytes <= limits::READ_AHEAD_BYTES_MAX {
                loaded.messages.push((record.seq, Arc::clone(&record.message)));
            }
        }
        if entries.len() == range.count as usize {
            loaded.range = Some(LoadedRange { range: *range, entries, expiries });
            return;
        }
        loaded.messages.clear();
        loaded.errors.push(LoadError {
            missed: Missed::PagedRange(*range),
            fault: LoadFault::Damage,
            file: "memory".to_owned(),
            location: range.first_location(),
            problem: format!("{} entries instead of {}", entries.len(), range.count),
        });
    }
}

impl Record {
    fn entry(&self, location: Location, expires_at: Option<Timestamp>) -> Entry {
        let mut flags = EntryFlags::STORED;
        if self.durable {
            flags = flags.with(EntryFlags::DURABLE);
        }
        if expires_at.is_some() {
            flags = flags.with(EntryFlags::HAS_EXPIRY);
        }
        Entry {
            seq: self.seq,
            location,
            body_bytes: self.message.body().len() as u32,
            delivery_count: 0,
            priority: self.priority,
            flags,
        }
    }
}

/// Returns the expiry for the queue at index `at` of a record's list.
fn expiry_of(expiries: &[Timestamp], at: usize) -> Option<Timestamp> {
    let expiry = if expiries.len() == 1 { expiries.first() } else { expiries.get(at) };
    expiry.copied().filter(|e| *e != NEVER)
}

impl Store for MemStore {
    fn append_message(&mut self, new: NewMessage<'_>) -> Location {
        let body = new.message.body().len();
        let location = self.place(body);
        let record = Record {
            seq: new.seq,
            queues: new.queues.to_vec(),
            expiries: new.expiries.to_vec(),
            priority: new.priority,
            durable: new.durable,
            live: new.queues.len(),
            message: Arc::new(new.message.clone()),
        };
        self.next_seq = self.next_seq.max(new.seq.0 + 1);
        for (at, queue) in new.queues.iter().enumerate() {
            self.next_queue = self.next_queue.max(queue.0 + 1);
            if new.durable {
                let expires_at = expiry_of(new.expiries, at);
                let entry = record.entry(location, expires_at);
                self.queues.entry(*queue).or_default().insert(new.seq, (entry, expires_at));
                if let Some(visible_at) = new.visible_at {
                    let noted = self.visibility.entry(*queue).or_default();
                    let seq = new.seq;
                    noted.insert(seq, Visibility { seq, visible_at, ..Visibility::default() });
                }
            }
        }
        self.records.insert(location, record);
        self.stats.messages += 1;
        self.stats.live += new.queues.len() as u64;
        self.appended(body);
        location
    }

    fn append_acks(&mut self, queue: QueueId, entries: &[Entry]) {
        for entry in entries.iter().filter(|entry| entry.is_stored()) {
            if let Some(queue) = self.queues.get_mut(&queue) {
                queue.remove(&entry.seq);
            }
            self.release(entry);
            self.stats.acks += 1;
        }
        self.queues.retain(|_, entries| !entries.is_empty());
        self.appended(8 * entries.len());
    }

    fn append_requeue(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>) {
        if entry.is_durable() && entry.is_stored() {
            self.queues.entry(queue).or_default().insert(entry.seq, (*entry, expires_at));
            let noted = self.visibility.get_mut(&queue);
            if let Some(noted) = noted.and_then(|noted| noted.get_mut(&entry.seq)) {
                noted.receive_count = entry.delivery_count;
            }
            self.appended(32);
        }
    }

    fn append_purge(&mut self, queue: QueueId, kept: &[Seq]) {
        let kept: HashSet<Seq> = kept.iter().copied().collect();
        if let Some(entries) = self.queues.get_mut(&queue) {
            entries.retain(|seq, _| kept.contains(seq));
        }
        self.queues.retain(|_, entries| !entries.is_empty());
        self.deduplications.remove(&queue);
        self.appended(16);
    }

    fn append_visibility(&mut self, queue: QueueId, visibility: &Visibility) {
        self.visibility.entry(queue).or_default().insert(visibility.seq, *visibility);
        self.appended(40);
    }

    fn append_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.deduplications.entry(queue).or_default().push(*sent);
        self.appended(64);
    }

    fn append_queue_deleted(&mut self, queue: QueueId) {
        self.queues.remove(&queue);
        self.visibility.remove(&queue);
        self.deduplications.remove(&queue);
        self.appended(16);
    }

    fn release(&mut self, entry: &Entry) {
        if !entry.is_stored() {
            return;
        }
        if let Some(record) = self.records.get_mut(&entry.location) {
            record.live = record.live.saturating_sub(1);
            self.stats.live = self.stats.live.saturating_sub(1);
            if record.live == 0 {
                self.records.remove(&entry.location);
            }
        }
    }

    fn release_paged_range(&mut self, range: &PagedRange) {
        // The queue is not known here, so the records stay; it is a model, not a broker.
        self.stats.live = self.stats.live.saturating_sub(u64::from(range.count));
    }

    fn put_topology(&mut self, key: &[u8], value: &[u8]) {
        self.topology.insert(key.to_vec(), value.to_vec());
        self.appended(key.len() + value.len());
    }

    fn delete_topology(&mut self, key: &[u8]) {
        self.topology.remove(key);
        self.appended(key.len());
    }

    fn ticket(&mut self, durability: Durability) -> Ticket {
        Ticket { batch: self.batch, durability }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn state(&self) -> &StoreState {
        &self.state
    }

    fn load(&mut self, request: LoadRequest) {
        let mut loaded = Loaded {
            token: request.token,
            queue: request.queue,
            messages: Vec::new(),
            range: None,
            errors: Vec::new(),
        };
        match &request.what {
            LoadWhat::Items(items) => self.load_items(items, &mut loaded),
            LoadWhat::PagedRange(range) => self.load_paged_range(request.queue, range, &mut loaded),
        }
        self.stats.reads += 1;
        self.loaded.push_back(loaded);
    }

    fn poll_loaded(&mut self) -> Option<Loaded> {
        self.loaded.pop_front()
    }

    fn poll_job(&mut self, _now: Timestamp) -> Option<Job> {
        if self.state == StoreState::Healthy {
            self.progress = Progress { written: self.batch, synced: self.batch };
        }
        None
    }

    fn begin_checkpoint(&mut self) {
        self.checkpoint = true;
    }

    fn checkpoint_under_way(&self) -> bool {
        self.checkpoint
    }

    fn finish_checkpoint(&mut self) {
        self.checkpoint = false;
        self.stats.checkpoints += 1;
    }

    fn is_idle(&self) -> bool {
        self.progress.written == self.batch && !self.checkpoint
    }

    fn stats(&self) -> StoreStats {
        StoreStats { segments: u64::from(self.next.segment), ..self.stats }
    }
}
