//! What a front-end has in memory of a queue that it serves: what waits for Cassandra, and hints about where its head is.
//! Nothing is lost when it is forgotten, but for partitions that have to be listed again (`relisting.rs`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quelea_sqs_protocol::{Fault, QueueRef};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::bucket::{Bucket, Filling, Writers};
use crate::clock::Clock;
use crate::entry::Entry;
use crate::limits::REMEMBERED_QUEUES_MAX;
use crate::peers::Peers;
use crate::standard::fair::Fairness;
use crate::standard::gather::Gatherer;
use crate::standard::head::Head;
use crate::standard::heard_buckets::HeardBuckets;
use crate::standard::in_flight::InFlight;
use crate::standard::jobs::{DeleteJob, ReceiveJob, SendJob, VisibilityJob};
use crate::standard::order_hint::AutoHint;
use crate::standard::rows::Rows;
use crate::standard::tables::List;
use crate::standard::unreadable::UnreadableMessages;

/// Buckets that are known to be listed.
const LISTED_MAX: usize = 256;

/// One generation of a queue's messages.
pub(crate) struct Queue {
    pub(crate) generation: Uuid,
    pub(crate) sends: Gatherer<SendJob>,
    pub(crate) deletes: Gatherer<DeleteJob>,
    pub(crate) visibility: Gatherer<VisibilityJob>,
    pub(crate) receives: Gatherer<ReceiveJob>,
    /// Something that can be received at once was put into the queue here.
    pub(crate) arrived: Notify,
    pub(crate) head: tokio::sync::Mutex<Head>,
    /// K, where `OrderHint` is `auto`.
    auto_hint: Mutex<AutoHint>,
    pub(crate) in_flight: InFlight,
    fair: Mutex<Fairness>,
    /// Entries of the last read of the head that others were taking.
    passed_over: AtomicUsize,
    unreadable: Mutex<UnreadableMessages>,
    /// Until when messages are hidden by changes of their visibility that were asked for here.
    changed_until_us: AtomicI64,
    heard: Mutex<HeardBuckets>,
    places: Mutex<Places>,
    used_at_ms: AtomicU64,
    /// The queue whose messages they are, if they were waited for here.
    name: OnceLock<QueueRef>,
}

struct Places {
    entries: Filling,
    bodies: Filling,
    listed: VecDeque<Bucket>,
    listed_bodies: VecDeque<Bucket>,
    /// Partitions of messages that were listed by a clock that was wrong.
    suspected: VecDeque<Bucket>,
}

impl Places {
    fn new(bucket_rows_max: u32) -> Self {
        Self {
            entries: Filling::new(bucket_rows_max),
            bodies: Filling::new(bucket_rows_max),
            listed: VecDeque::new(),
            listed_bodies: VecDeque::new(),
            suspected: VecDeque::new(),
        }
    }
}

impl Queue {
    fn new(generation: Uuid, bucket_rows_max: u32) -> Self {
        Self {
            generation,
            sends: Gatherer::default(),
            deletes: Gatherer::default(),
            visibility: Gatherer::default(),
            receives: Gatherer::default(),
            arrived: Notify::new(),
            head: tokio::sync::Mutex::default(),
            auto_hint: Mutex::default(),
            in_flight: InFlight::default(),
            fair: Mutex::default(),
            passed_over: AtomicUsize::new(0),
            unreadable: Mutex::default(),
            changed_until_us: AtomicI64::new(0),
            heard: Mutex::default(),
            places: Mutex::new(Places::new(bucket_rows_max)),
            used_at_ms: AtomicU64::new(0),
            name: OnceLock::new(),
        }
    }

    /// Returns how many entries more than are wanted have to be read, since others take so many.
    pub(crate) fn passed_over(&self) -> usize {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// So many were taken by others in a read of the head. The next one reads somewhat more.
    pub(crate) fn pass_over(&self, count: usize) {
        let more = if count == 0 { 0 } else { count + count / 2 + 4 };
        self.passed_over.store(more, Ordering::Relaxed);
    }

    /// The rows of these entries' messages could not be read.
    pub(crate) fn note_unreadable(&self, entries: &[Entry]) {
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().for_each(|entry| unreadable.add(entry.message, Instant::now()));
    }

    /// Takes those entries away of which that is known. Returns how many.
    pub(crate) fn leave_out_unreadable(&self, entries: &mut Vec<Entry>) -> usize {
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        unreadable.leave_out(entries, Instant::now())
    }

    /// Returns what K is chosen by, where `OrderHint` is `auto`.
    pub(crate) fn auto_hint(&self) -> MutexGuard<'_, AutoHint> {
        self.auto_hint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what groups of messages have in flight.
    pub(crate) fn fair(&self) -> MutexGuard<'_, Fairness> {
        self.fair.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The visibility of one that was delivered was changed: until when it is in flight now, if it still is.
    pub(crate) fn note_changed(&self, entry: &Entry, until_us: Option<i64>, now_us: i64) {
        let mut fair = self.fair();
        fair.settled(entry.group, entry.visible_at_us, now_us);
        if let Some(until_us) = until_us {
            fair.delivered(entry.group, until_us);
        }
    }

    /// The visibility of a message is being changed, so that it is hidden until then.
    pub(crate) fn note_hidden_until(&self, until_us: i64) {
        self.changed_until_us.fetch_max(until_us, Ordering::Relaxed);
    }

    /// Returns whether messages may be hidden by a change of their visibility, as far as is known here.
    pub(crate) fn may_have_changed(&self, now_us: i64) -> bool {
        self.changed_until_us.load(Ordering::Relaxed) > now_us
    }

    /// These were delivered.
    pub(crate) fn note_fair<'a>(&self, entries: impl Iterator<Item = &'a Entry>) {
        let mut fair = self.fair();
        entries.for_each(|entry| fair.delivered(entry.group, entry.visible_at_us));
    }

    /// Chooses the partition of an entry that is written now.
    pub(crate) fn place_entry(&self, visible_at_us: i64, now_us: i64, writers: Writers) -> Bucket {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.entries.place(visible_at_us, now_us, 1, writers)
    }

    /// Chooses the partition of a body of so many bytes that is written now.
    pub(crate) fn place_body(&self, bytes: usize, now_us: i64, writers: Writers) -> Bucket {
        let weight = 1 + (bytes / 16_384).min(1_000) as u32;
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.bodies.place(now_us, now_us, weight, writers)
    }

    /// Lets the directory list these buckets, before an entry in them is confirmed.
    pub(crate) async fn list_buckets(
        &self,
        rows: &Rows<'_>,
        buckets: impl Iterator<Item = Bucket>,
        clock: &Clock,
        peers: &Peers,
    ) -> Result<(), Fault> {
        let fresh = {
            let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            unlisted(&places.listed, buckets)
        };
        if fresh.is_empty() {
            return Ok(());
        }
        let now_us = clock.now_us();
        rows.tables.list(rows.of, List::Entries, fresh.clone(), now_us).await?;
        peers.listed(self.generation, &fresh);
        self.heard_of(&fresh);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        remember_listed(&mut places.listed, fresh);
        Ok(())
    }

    /// Returns those of the partitions of bodies that were not reported to the sweep.
    pub(crate) fn unlisted_bodies(&self, buckets: impl Iterator<Item = Bucket>) -> Vec<Bucket> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        unlisted(&places.listed_bodies, buckets)
    }

    /// It was told of these.
    pub(crate) fn listed_bodies(&self, buckets: Vec<Bucket>) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        remember_listed(&mut places.listed_bodies, buckets);
    }

    /// Nothing is known to be listed, and what was has to be listed again.
    pub(crate) fn suspect_listings(&self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.listed.clear();
        let listed_bodies = std::mem::take(&mut places.listed_bodies);
        let fresh = unlisted(&places.suspected, listed_bodies.into_iter());
        remember_listed(&mut places.suspected, fresh);
    }

    /// Returns what has to be listed again.
    pub(crate) fn suspected_listings(&self) -> Vec<Bucket> {
        self.places
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .suspected
            .iter()
            .copied()
            .collect()
    }

    /// These were listed again.
    pub(crate) fn listed_again(&self, buckets: Vec<Bucket>) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.suspected.retain(|suspected| !buckets.contains(suspected));
        remember_listed(&mut places.listed_bodies, buckets);
    }

    /// Another front-end has put something into a bucket that can be received at once.
    pub(crate) fn nudged(&self, bucket: Bucket) {
        self.heard_of(&[bucket]);
        self.arrived.notify_one();
    }

    /// Entries were put into these buckets, which the directory may not list as it is known here.
    pub(crate) fn heard_of(&self, buckets: &[Bucket]) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).add(buckets);
    }

    /// Takes the buckets that were heard of since this was last asked, for the next read of the
    /// head.
    pub(crate) fn take_heard(&self) -> HeardBuckets {
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Somebody waits for messages of that queue, which these are.
    pub(crate) fn is_polled_as(&self, name: &QueueRef) {
        self.name.get_or_init(|| name.clone());
    }

    fn is_idle(&self) -> bool {
        self.sends.is_idle()
            && self.deletes.is_idle()
            && self.visibility.is_idle()
            && self.receives.is_idle()
    }
}

fn unlisted(listed: &VecDeque<Bucket>, buckets: impl Iterator<Item = Bucket>) -> Vec<Bucket> {
    let mut fresh: Vec<Bucket> = Vec::new();
    for bucket in buckets {
        if !listed.contains(&bucket) && !fresh.contains(&bucket) {
            fresh.push(bucket);
        }
    }
    fresh
}

fn remember_listed(listed: &mut VecDeque<Bucket>, fresh: Vec<Bucket>) {
    for bucket in fresh {
        if listed.len() == LISTED_MAX {
            listed.pop_front();
        }
        listed.push_back(bucket);
    }
}

/// The queues that are served here, by generation.
pub(crate) struct Served {
    bucket_rows_max: u32,
    queues: Mutex<FxHashMap<Uuid, Arc<Queue>>>,
}

impl Served {
    /// Returns a set without queues yet, of which a bucket holds so many rows.
    pub(crate) fn new(bucket_rows_max: u32) -> Self {
        Self { bucket_rows_max, queues: Mutex::default() }
    }

    /// Returns the queue of that generation.
    pub(crate) fn queue(&self, clock: &Clock, generation: Uuid) -> Arc<Queue> {
        let now_ms = clock.now_ms();
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= REMEMBERED_QUEUES_MAX && !queues.contains_key(&generation) {
            forget_half(&mut queues);
        }
        let queue = queues
            .entry(generation)
            .or_insert_with(|| Arc::new(Queue::new(generation, self.bucket_rows_max)));
        queue.used_at_ms.store(now_ms, Ordering::Relaxed);
        queue.clone()
    }

    /// Returns all queues that are served here.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// A queue was changed: whoever waits for its messages looks which those are now.
    pub(crate) fn changed(&self, name: &QueueRef) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = queues.values().filter(|queue| queue.name.get() == Some(name));
        changed.for_each(|queue| queue.arrived.notify_one());
    }

    /// Returns the queue of that generation, if it is served here.
    pub(crate) fn find(&self, generation: Uuid) -> Option<Arc<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).get(&generation).cloned()
    }
}

/// Forgets the half that was not used for the longest time, save those that somebody waits for.
fn forget_half(queues: &mut FxHashMap<Uuid, Arc<Queue>>) {
    let mut used: Vec<u64> =
        queues.values().map(|queue| queue.used_at_ms.load(Ordering::Relaxed)).collect();
    used.sort_unstable();
    let border = used.get(used.len() / 2).copied().unwrap_or_default();
    queues.retain(|_, queue| !queue.is_idle() || queue.used_at_ms.load(Ordering::Relaxed) > border);
}
