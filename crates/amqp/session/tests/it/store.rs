//! A store in memory whose progress and state the test decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{
    Deduplication, Durability, Entry, Job, JobDone, LoadRequest, Loaded, Location, MemStore,
    NewMessage, PagedRange, Progress, Store, StoreState, StoreStats, Ticket, Visibility,
};

/// The test's hand on the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    slow: AtomicBool,
    full: AtomicBool,
}

impl Disk {
    /// While it is slow nothing becomes durable.
    pub(crate) fn is_slow(&self, slow: bool) {
        self.0.slow.store(slow, Ordering::Relaxed);
    }

    /// While it is full publishers are held back.
    pub(crate) fn is_full(&self, full: bool) {
        self.0.full.store(full, Ordering::Relaxed);
    }

    /// Whether the log's jobs are done.
    pub(crate) fn works(&self) -> bool {
        !self.0.slow.load(Ordering::Relaxed) && !self.0.full.load(Ordering::Relaxed)
    }
}

pub(crate) struct TestStore {
    inner: MemStore,
    disk: Disk,
    full: StoreState,
    healthy: StoreState,
}

impl TestStore {
    pub(crate) fn new() -> (Self, Disk) {
        let disk = Disk::default();
        let full = StoreState::Full { reason: "low on disk".to_owned() };
        let store = Self {
            inner: MemStore::pumped(),
            disk: disk.clone(),
            full,
            healthy: StoreState::Healthy,
        };
        (store, disk)
    }
}

impl Store for TestStore {
    fn poll_job(&mut self, now: Timestamp) -> Option<Job> {
        self.inner.poll_job(now)
    }

    fn state(&self) -> &StoreState {
        if self.disk.0.full.load(Ordering::Relaxed) { &self.full } else { &self.healthy }
    }

    fn append_message(&mut self, new: NewMessage<'_>) -> Location {
        self.inner.append_message(new)
    }
    fn append_acks(&mut self, queue: QueueId, entries: &[Entry]) {
        self.inner.append_acks(queue, entries);
    }
    fn append_requeue(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>) {
        self.inner.append_requeue(queue, entry, expires_at);
    }
    fn append_visibility(&mut self, queue: QueueId, visibility: &Visibility) {
        self.inner.append_visibility(queue, visibility);
    }
    fn append_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.inner.append_deduplication(queue, sent);
    }
    fn append_purge(&mut self, queue: QueueId, kept: &[Seq]) {
        self.inner.append_purge(queue, kept);
    }
    fn append_queue_deleted(&mut self, queue: QueueId) {
        self.inner.append_queue_deleted(queue);
    }
    fn release(&mut self, entry: &Entry) {
        self.inner.release(entry);
    }
    fn release_paged_range(&mut self, range: &PagedRange) {
        self.inner.release_paged_range(range);
    }
    fn put_topology(&mut self, key: &[u8], value: &[u8]) {
        self.inner.put_topology(key, value);
    }
    fn delete_topology(&mut self, key: &[u8]) {
        self.inner.delete_topology(key);
    }
    fn begin_atomic(&mut self) {
        self.inner.begin_atomic();
    }
    fn end_atomic(&mut self) {
        self.inner.end_atomic();
    }
    fn ticket(&mut self, durability: Durability) -> Ticket {
        self.inner.ticket(durability)
    }
    fn progress(&self) -> Progress {
        self.inner.progress()
    }
    fn pending_bytes(&self) -> usize {
        self.inner.pending_bytes()
    }
    fn load(&mut self, request: LoadRequest) {
        self.inner.load(request);
    }
    fn poll_loaded(&mut self) -> Option<Loaded> {
        self.inner.poll_loaded()
    }
    fn complete(&mut self, done: JobDone) {
        self.inner.complete(done);
    }
    fn deadline(&self) -> Option<Timestamp> {
        self.inner.deadline()
    }
    fn wants_checkpoint(&self) -> bool {
        self.inner.wants_checkpoint()
    }
    fn begin_checkpoint(&mut self) {
        self.inner.begin_checkpoint();
    }
    fn checkpoint_ready(&self) -> bool {
        self.inner.checkpoint_ready()
    }
    fn checkpoint_under_way(&self) -> bool {
        self.inner.checkpoint_under_way()
    }
    fn checkpoint_gathering(&self) -> bool {
        self.inner.checkpoint_gathering()
    }
    fn checkpoint_entries(
        &mut self,
        queue: QueueId,
        entries: &mut [Entry],
        expiries: &[Timestamp],
    ) {
        self.inner.checkpoint_entries(queue, entries, expiries);
    }
    fn checkpoint_paged_range(&mut self, queue: QueueId, range: &PagedRange) {
        self.inner.checkpoint_paged_range(queue, range);
    }
    fn finish_checkpoint(&mut self) {
        self.inner.finish_checkpoint();
    }
    fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }
    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }
}
