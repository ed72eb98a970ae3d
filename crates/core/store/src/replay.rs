//! Replays records onto the state of a checkpoint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use quelea_model::{QueueId, Seq, Timestamp};
use rustc_hash::FxHashMap;

use crate::DiskFile;
use crate::checkpoint_file::EntriesBlock;
use crate::damage::{Damage, LossByQueue, LostMessages};
use crate::read_job::{read_paged_range, salvage_paged_range};
use crate::record::{MessageRecord, Record, Seed};
use crate::record_reader::{ReadError, RecordReader};
use crate::{
    Deduplication, Entry, EntryFlags, LoadedRange, Location, NEVER, OpenError, PagedRange,
    QueueIndex, Recovered, Visibility,
};

/// A segment's file, as far as a replay needs it.
#[derive(Clone)]
pub(crate) struct ReplaySegment {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) seed: Seed,
    /// Format of what lies in it.
    pub(crate) version: u16,
}

/// The state that is being recovered.
pub(crate) struct Replay {
    pub(crate) topology: BTreeMap<Vec<u8>, Vec<u8>>,
    queues: Vec<(QueueId, QueueIndex)>,
    by_id: FxHashMap<QueueId, usize>,
    /// The queue of the last operation, which is most often that of the next.
    last: Option<(QueueId, usize)>,
    visibility: HashMap<QueueId, BTreeMap<Seq, Visibility>>,
    deduplications: HashMap<QueueId, Vec<Deduplication>>,
    pub(crate) next_seq: u64,
    pub(crate) next_queue: u32,
    /// All segments up to this one were declared free.
    pub(crate) freed_prefix: u32,
    /// Further segments that were declared free.
    pub(crate) freed: BTreeSet<u32>,
    /// Segments from which messages were copied forward.
    pub(crate) moved_from: BTreeSet<u32>,
    /// Operations of a group that has no commit yet.
    group: Vec<Operation>,
    segments: BTreeMap<u32, ReplaySegment>,
    pub(crate) records: u64,
    /// Whether what is damaged is left out.
    pub(crate) accepts_damage: bool,
    /// What was left out, or would have to be.
    pub(crate) damage: Vec<Damage>,
}

/// What a record does, once its group is complete.
enum Operation {
    Put { queue: QueueId, entry: Entry, expiry: Timestamp },
    Requeue { queue: QueueId, entry: Entry, expiry: Timestamp },
    Move { queue: QueueId, seq: Seq, to: Location },
    Remove { queue: QueueId, seq: Seq },
    Purge { queue: QueueId, kept: Vec<Seq> },
    DeleteQueue(QueueId),
    SetVisibility(QueueId, Visibility),
    AddDeduplication(QueueId, Box<Deduplication>),
    PutTopology(Box<(Vec<u8>, Vec<u8>)>),
    DeleteTopology(Vec<u8>),
    Free { segment: u32, prefix: bool },
}

impl Replay {
    pub(crate) fn new(segments: BTreeMap<u32, ReplaySegment>, accepts_damage: bool) -> Self {
        Self {
            topology: BTreeMap::new(),
            queues: Vec::new(),
            by_id: FxHashMap::default(),
            last: None,
            visibility: HashMap::new(),
            deduplications: HashMap::new(),
            next_seq: 1,
            next_queue: 1,
            freed_prefix: 0,
            freed: BTreeSet::new(),
            moved_from: BTreeSet::new(),
            group: Vec::new(),
            segments,
            records: 0,
            accepts_damage,
            damage: Vec::new(),
        }
    }

    /// Adds a block of the checkpoint; returns the number of its entries.
    pub(crate) fn put_entries(&mut self, block: &EntriesBlock<'_>) -> Result<u64, OpenError> {
        let first = block.iter().map(|(entry, _)| entry.seq).next();
        let last = self.queue(block.queue).last_seq();
        let mut count = 0;
        if block.is_run && last < first {
            let (entries, mut expiries): (Vec<Entry>, Vec<Timestamp>) = block.iter().unzip();
            if expiries.iter().all(|expiry| *expiry == NEVER) {
                expiries = Vec::new();
            }
            count += entries.len() as u64;
            self.queue(block.queue).push_run(entries, expiries);
        } else {
            for (entry, expiry) in block.iter() {
                self.put_entry(block.queue, entry, expiry)?;
                count += 1;
            }
        }
        let last = block.iter().map(|(entry, _)| entry.seq).max().unwrap_or_default();
        self.next_seq = self.next_seq.max(last.0.saturating_add(1));
        Ok(count)
    }

    /// Puts an entry to its place. A range in whose numbers it lies is read: it may be one of the range's, which was
    /// delivered after the range had been written, and in a queue with priorities it parts the range.
    fn put_entry(&mut self, id: QueueId, entry: Entry, expiry: Timestamp) -> Result<(), OpenError> {
        let expires_at = Some(expiry).filter(|e| *e != NEVER);
        self.page_in(id, entry.seq)?;
        self.queue(id).insert(entry, expires_at, None);
        Ok(())
    }

    /// Adds a range of the checkpoint. One among whose numbers others lie is read at once: the indexes of a
    /// priority queue overlap.
    pub(crate) fn put_paged_range(
        &mut self,
        id: QueueId,
        range: &PagedRange,
    ) -> Result<(), OpenError> {
        self.next_seq = self.next_seq.max(range.last.0.saturating_add(1));
        if self.queue(id).insert_paged_range(*range) {
            return Ok(());
        }
        match self.read(id, range)? {
            Some(loaded) => self.put_loaded(id, loaded),
            None => Ok(()),
        }
    }

    fn put_loaded(&mut self, id: QueueId, loaded: LoadedRange) -> Result<(), OpenError> {
        let expiries = loaded.expiries.into_iter().chain(std::iter::repeat(NEVER));
        let mut entries = loaded.entries.into_iter().zip(expiries);
        entries.try_for_each(|(entry, expiry)| self.put_entry(id, entry, expiry))
    }

    /// Takes a record that is not a commit; it takes effect with its group.
    pub(crate) fn record(&mut self, record: &Record<'_>, at: Location) {
        self.records += 1;
        match record {
            Record::Message(message) => self.message(message, at),
            Record::Copy(message) => {
                let seq = message.seq;
                self.group.extend(message.queues().map(|(queue, _)| Operation::Move {
                    queue,
                    seq,
                    to: at,
                }));
            }
            Record::Acks(acks) => {
                let group = &mut self.group;
                acks.for_each(|queue, seq| group.push(Operation::Remove { queue, seq }));
            }
            Record::Requeue { queue, entry, expires_at } => {
                let expiry = expires_at.unwrap_or(NEVER);
                let flags = entry.flags.with(EntryFlags::STORED).with(EntryFlags::DURABLE);
                let entry = Entry { flags, ..*entry };
                self.group.push(Operation::Requeue { queue: *queue, entry, expiry });
            }
            Record::Purge { queue, kept } => {
                self.group.push(Operation::Purge { queue: *queue, kept: kept.iter().collect() });
            }
            Record::QueueDeleted(queue) => {
                self.next_queue = self.next_queue.max(queue.0.saturating_add(1));
                self.group.push(Operation::DeleteQueue(*queue));
            }
            Record::TopologyPut { key, value } => {
                let item = Box::new((key.to_vec(), value.to_vec()));
                self.group.push(Operation::PutTopology(item));
            }
            Record::TopologyDelete(key) => {
                self.group.push(Operation::DeleteTopology(key.to_vec()));
            }
            Record::SegmentFreed { segment, prefix } => {
                self.group.push(Operation::Free { segment: *segment, prefix: *prefix });
            }
            Record::Visibility(queue, visibility) => {
                self.group.push(Operation::SetVisibility(*queue, *visibility));
            }
            Record::Deduplication(queue, sent) => {
                self.next_seq = self.next_seq.max(sent.seq.0.saturating_add(1));
                self.group.push(Operation::AddDeduplication(*queue, Box::new(*sent)));
            }
            Record::Commit(_) => {}
        }
    }

    fn message(&mut self, message: &MessageRecord<'_>, at: Location) {
        self.next_seq = self.next_seq.max(message.seq.0.saturating_add(1));
        for (queue, expiry) in message.queues() {
            self.next_queue = self.next_queue.max(queue.0.saturating_add(1));
            // A transient message that was spilled does not outlive the process.
            if message.durable {
                let entry = message.entry(at, expiry);
                self.group.push(Operation::Put { queue, entry, expiry });
                if let Some(visible_at) = message.visible_at {
                    let visibility =
                        Visibility { seq: message.seq, visible_at, ..Visibility::default() };
                    self.group.push(Operation::SetVisibility(queue, visibility));
                }
            }
        }
    }

    /// Applies the records of a group that is complete.
    pub(crate) fn commit(&mut self) -> Result<(), OpenError> {
        let mut group = std::mem::take(&mut self.group);
        for operation in group.drain(..) {
            self.apply(operation)?;
        }
        self.group = group;
        Ok(())
    }

    /// The group will never be complete.
    pub(crate) fn discard(&mut self) {
        self.group.clear();
    }

    fn apply(&mut self, operation: Operation) -> Result<(), OpenError> {
        match operation {
            Operation::Put { queue, entry, expiry } => self.put(queue, entry, expiry)?,
            Operation::Requeue { queue, entry, expiry } => self.requeue(queue, entry, expiry)?,
            Operation::Move { queue, seq, to } => {
                self.page_in(queue, seq)?;
                if let Some(from) = self.queue(queue).relocate(seq, to) {
                    self.moved_from.insert(from.segment);
                }
            }
            Operation::Remove { queue, seq } => {
                if self.queue(queue).remove(seq).is_none() {
                    self.page_in(queue, seq)?;
                    self.queue(queue).remove(seq);
                }
                if let Some(noted) = self.visibility.get_mut(&queue) {
                    noted.remove(&seq);
                }
            }
            Operation::Purge { queue, kept } => {
                self.deduplications.remove(&queue);
                let mut left = Vec::with_capacity(kept.len());
                for seq in kept {
                    self.page_in(queue, seq)?;
                    left.extend(self.queue(queue).remove(seq));
                }
                left.sort_unstable_by_key(|ready| ready.entry.seq);
                if let Some(noted) = self.visibility.get_mut(&queue) {
                    noted.retain(|seq, _| {
                        left.binary_search_by_key(seq, |ready| ready.entry.seq).is_ok()
                    });
                }
                let index = self.queue(queue);
                *index = QueueIndex::new();
                for ready in left {
                    index.insert(ready.entry, ready.expires_at, None);
                }
            }
            Operation::DeleteQueue(queue) => {
                *self.queue(queue) = QueueIndex::new();
                self.visibility.remove(&queue);
                self.deduplications.remove(&queue);
            }
            Operation::SetVisibility(queue, visibility) => {
                self.visibility.entry(queue).or_default().insert(visibility.seq, visibility);
            }
            Operation::AddDeduplication(queue, sent) => {
                self.deduplications.entry(queue).or_default().push(*sent);
            }
            Operation::PutTopology(item) => {
                self.topology.insert(item.0, item.1);
            }
            Operation::DeleteTopology(key) => {
                self.topology.remove(&key);
            }
            Operation::Free { segment, prefix: true } => {
                self.freed_prefix = self.freed_prefix.max(segment);
            }
            Operation::Free { segment, prefix: false } => {
                self.freed.insert(segment);
            }
        }
        Ok(())
    }

    fn requeue(
        &mut self,
        queue: QueueId,
        mut entry: Entry,
        expiry: Timestamp,
    ) -> Result<(), OpenError> {
        self.page_in(queue, entry.seq)?;
        if let Some(held) = self.queue(queue).get(entry.seq) {
            // It may have been copied forward between this record and the checkpoint.
            entry.location = held.entry.location;
        }
        if let Some(noted) = self.noted(queue, entry.seq) {
            noted.receive_count = entry.delivery_count;
        }
        let expires_at = Some(expiry).filter(|e| *e != NEVER);
        self.queue(queue).insert(entry, expires_at, None);
        Ok(())
    }

    /// Returns what is noted of a message.
    fn noted(&mut self, queue: QueueId, seq: Seq) -> Option<&mut Visibility> {
        self.visibility.get_mut(&queue)?.get_mut(&seq)
    }

    /// Puts a message into its queue's index. One that the checkpoint has already is only given its
    /// place and count.
    fn put(&mut self, id: QueueId, entry: Entry, expiry: Timestamp) -> Result<(), OpenError> {
        let expires_at = Some(expiry).filter(|e| *e != NEVER);
        let index = self.queue(id);
        if index.last_seq().is_none_or(|last| last < entry.seq) {
            index.push_back(entry, expires_at, None);
            return Ok(());
        }
        self.page_in(id, entry.seq)?;
        self.queue(id).insert(entry, expires_at, None);
        Ok(())
    }

    /// Reads the range back in which a number lies, if there is one.
    fn page_in(&mut self, id: QueueId, seq: Seq) -> Result<(), OpenError> {
        let Some(range) = self.queue(id).paged_range_of(seq).copied() else {
            return Ok(());
        };
        match self.read(id, &range)? {
            Some(loaded) if loaded.entries.len() == range.count as usize => {
                self.queue(id).page_in(loaded);
            }
            Some(loaded) => {
                self.queue(id).remove_paged_range(range.first_location());
                self.put_loaded(id, loaded)?;
                // The log holds more between its entries than the index.
                self.queue(id).mark_sparse();
            }
            // Its segment is not there any more, so all in it is gone; that is proved at the end.
            None => self.queue(id).retain_segments(|segment| segment != range.segment),
        }
        Ok(())
    }

    /// Reads a range; `None` if there is no such segment. If damage is accepted, what can be read of it.
    fn read(&mut self, id: QueueId, range: &PagedRange) -> Result<Option<LoadedRange>, OpenError> {
        let Some(segment) = self.segments.get(&range.segment) else {
            return Ok(None);
        };
        let mut reader = RecordReader::new(Arc::clone(&segment.file), segment.seed);
        let file = segment.name.clone();
        let (offset, error) = match read_paged_range(&mut reader, id, range, 0, &mut Vec::new()) {
            Ok(loaded) => return Ok(Some(loaded)),
            Err((_, ReadError::Io(source))) => {
                return Err(OpenError::Io { action: "read", file, source });
            }
            Err(damage) => damage,
        };
        let (offset, problem) = (u64::from(offset), error.to_string());
        if !self.accepts_damage {
            return Err(OpenError::Damaged { file, offset, problem });
        }
        let left = salvage_paged_range(&mut reader, id, range);
        let mut lost = LossByQueue::default();
        let missed = u64::from(range.count).saturating_sub(left.entries.len() as u64);
        lost.add(id, missed, range.first, range.last);
        self.damage.push(Damage { file, offset, problem, lost: lost.into_list() });
        Ok(Some(left))
    }

    /// Counts what lies at places that are gone, and drops it if damage is accepted.
    pub(crate) fn lose(
        &mut self,
        is_lost: impl Fn(&Entry) -> bool,
        is_range_lost: impl Fn(&PagedRange) -> bool,
    ) -> Result<Vec<LostMessages>, OpenError> {
        if self.accepts_damage {
            // What can still be read of them is entries then.
            let ranges: Vec<_> = (self.queues.iter())
                .flat_map(|(id, index)| index.paged_ranges().map(|range| (*id, *range)))
                .filter(|(_, range)| is_range_lost(range))
                .collect();
            for (id, range) in ranges {
                self.page_in(id, range.first)?;
            }
        }
        let mut lost = LossByQueue::default();
        for (id, index) in &mut self.queues {
            let before = index.len();
            let entries = index.entries().map(|(entry, _)| entry).filter(|entry| is_lost(entry));
            entries.for_each(|entry| lost.add_entry(*id, entry));
            for range in index.paged_ranges().filter(|range| is_range_lost(range)) {
                lost.add(*id, u64::from(range.count), range.first, range.last);
            }
            if self.accepts_damage {
                index.retain_entries(|entry| !is_lost(entry), |range| !is_range_lost(range));
                debug_assert!(index.len() <= before, "nothing comes of it");
            }
        }
        Ok(lost.into_list())
    }

    /// Returns whether a segment was declared free.
    pub(crate) fn is_freed(&self, segment: u32) -> bool {
        segment <= self.freed_prefix || self.freed.contains(&segment)
    }

    /// Drops entries whose segments were declared free: they were settled before, by records that
    /// went with their own segments. Counts the others by segment.
    pub(crate) fn count_live(&mut self) -> BTreeMap<u32, u32> {
        let mut live = LiveCounts::default();
        let (prefix, freed) = (self.freed_prefix, &self.freed);
        let is_freed = |segment: u32| segment <= prefix || freed.contains(&segment);
        for (_, index) in &mut self.queues {
            let mut stale = false;
            index.for_each_segment(|segment, pairs| {
                if is_freed(segment) {
                    stale = true;
                } else {
                    live.add(segment, pairs);
                }
            });
            if stale {
                index.retain_segments(|segment| !is_freed(segment));
            }
        }
        live.counts.retain(|_, pairs| *pairs > 0);
        live.counts
    }

    /// Reads back the ranges in which messages lie that are noted to be hidden or received: the
    /// broker takes them out one by one.
    pub(crate) fn page_in_noted(&mut self) -> Result<(), OpenError> {
        let noted = self.visibility.iter();
        let noted: Vec<_> =
            noted.flat_map(|(queue, noted)| noted.keys().map(|seq| (*queue, *seq))).collect();
        noted.into_iter().try_for_each(|(queue, seq)| self.page_in(queue, seq))
    }

    /// Moves what was found to where it is handed out: the indexes that hold something, and what was
    /// noted of their messages.
    pub(crate) fn fill(self, recovered: &mut Recovered) {
        recovered.queues = self.queues.into_iter().filter(|(_, index)| !index.is_empty()).collect();
        recovered.visibility = self.visibility;
        recovered.deduplications = self.deduplications;
    }

    /// Returns the number of messages of all indexes.
    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(|(_, index)| index.len()).sum()
    }

    fn queue(&mut self, id: QueueId) -> &mut QueueIndex {
        let at = match self.last {
            Some((last, at)) if last == id => at,
            _ => {
                let queues = &mut self.queues;
                let at = *self.by_id.entry(id).or_insert_with(|| {
                    queues.push((id, QueueIndex::new()));
                    queues.len() - 1
                });
                self.last = Some((id, at));
                self.next_queue = self.next_queue.max(id.0.saturating_add(1));
                at
            }
        };
        &mut self.queues[at].1
    }
}

/// Counts by segment; runs of one segment cost one look-up.
#[derive(Default)]
struct LiveCounts {
    counts: BTreeMap<u32, u32>,
}

impl LiveCounts {
    fn add(&mut self, segment: u32, pairs: u32) {
        *self.counts.entry(segment).or_default() += pairs;
    }
}

const _: () = assert!(size_of::<Operation>() <= 48, "a group of a million operations is 48 MB");
