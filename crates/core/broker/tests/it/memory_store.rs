//! A store in memory that outlives its broker: what a restart finds again.

use std::sync::mpsc;

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{
    Deduplication, Durability, Entry, Job, JobDone, LoadRequest, Loaded, Location, MemStore,
    NewMessage, PagedRange, Progress, Store, StoreState, StoreStats, Ticket, Visibility,
};

/// Sends its store back when the broker that owns it is dropped, and takes orders about its state.
pub(crate) struct MemoryStore {
    inner: Option<MemStore>,
    back: mpsc::Sender<MemStore>,
    orders: mpsc::Receiver<StoreState>,
}

/// The other end.
pub(crate) struct Keeper {
    pub(crate) back: mpsc::Receiver<MemStore>,
    pub(crate) orders: mpsc::Sender<StoreState>,
}

impl MemoryStore {
    pub(crate) fn new(inner: MemStore) -> (Self, Keeper) {
        let (back, returned) = mpsc::channel();
        let (orders, received) = mpsc::channel();
        let store = Self { inner: Some(inner), back, orders: received };
        (store, Keeper { back: returned, orders })
    }

    fn inner(&self) -> &MemStore {
        self.inner.as_ref().expect("it is there until the drop")
    }

    fn inner_mut(&mut self) -> &mut MemStore {
        self.inner.as_mut().expect("it is there until the drop")
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            let _ = self.back.send(inner);
        }
    }
}

impl Store for MemoryStore {
    fn append_message(&mut self, new: NewMessage<'_>) -> Location {
        self.inner_mut().append_message(new)
    }
    fn append_acks(&mut self, queue: QueueId, entries: &[Entry]) {
        self.inner_mut().append_acks(queue, entries);
    }
    fn append_requeue(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>) {
        self.inner_mut().append_requeue(queue, entry, expires_at);
    }
    fn append_visibility(&mut self, queue: QueueId, visibility: &Visibility) {
        self.inner_mut().append_visibility(queue, visibility);
    }
    fn append_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.inner_mut().append_deduplication(queue, sent);
    }
    fn append_purge(&mut self, queue: QueueId, kept: &[Seq]) {
        self.inner_mut().append_purge(queue, kept);
    }
    fn append_queue_deleted(&mut self, queue: QueueId) {
        self.inner_mut().append_queue_deleted(queue);
    }
    fn release(&mut self, entry: &Entry) {
        self.inner_mut().release(entry);
    }
    fn release_paged_range(&mut self, range: &PagedRange) {
        self.inner_mut().release_paged_range(range);
    }
    fn put_topology(&mut self, key: &[u8], value: &[u8]) {
        self.inner_mut().put_topology(key, value);
    }
    fn delete_topology(&mut self, key: &[u8]) {
        self.inner_mut().delete_topology(key);
    }
    fn begin_atomic(&mut self) {
        self.inner_mut().begin_atomic();
    }
    fn end_atomic(&mut self) {
        self.inner_mut().end_atomic();
    }
    fn ticket(&mut self, durability: Durability) -> Ticket {
        self.inner_mut().ticket(durability)
    }
    fn progress(&self) -> Progress {
        self.inner().progress()
    }
    fn state(&self) -> &StoreState {
        self.inner().state()
    }
    fn pending_bytes(&self) -> usize {
        self.inner().pending_bytes()
    }
    fn load(&mut self, request: LoadRequest) {
        self.inner_mut().load(request);
    }
    fn poll_loaded(&mut self) -> Option<Loaded> {
        self.inner_mut().poll_loaded()
    }
    fn poll_job(&mut self, now: Timestamp) -> Option<Job> {
        while let Ok(state) = self.orders.try_recv() {
            self.inner_mut().set_state(state);
        }
        self.inner_mut().poll_job(now)
    }
    fn complete(&mut self, done: JobDone) {
        self.inner_mut().complete(done);
    }
    fn deadline(&self) -> Option<Timestamp> {
        self.inner().deadline()
    }
    fn wants_checkpoint(&self) -> bool {
        self.inner().wants_checkpoint()
    }
    fn begin_checkpoint(&mut self) {
        self.inner_mut().begin_checkpoint();
    }
    fn checkpoint_ready(&self) -> bool {
        self.inner().checkpoint_ready()
    }
    fn checkpoint_under_way(&self) -> bool {
        self.inner().checkpoint_under_way()
    }
    fn checkpoint_gathering(&self) -> bool {
        self.inner().checkpoint_gathering()
    }
    fn checkpoint_entries(
        &mut self,
        queue: QueueId,
        entries: &mut [Entry],
        expiries: &[Timestamp],
    ) {
        self.inner_mut().checkpoint_entries(queue, entries, expiries);
    }
    fn checkpoint_paged_range(&mut self, queue: QueueId, range: &PagedRange) {
        self.inner_mut().checkpoint_paged_range(queue, range);
    }
    fn finish_checkpoint(&mut self) {
        self.inner_mut().finish_checkpoint();
    }
    fn is_idle(&self) -> bool {
        self.inner().is_idle()
    }
    fn stats(&self) -> StoreStats {
        self.inner().stats()
    }
}
