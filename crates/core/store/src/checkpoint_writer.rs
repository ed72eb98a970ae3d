//! One checkpoint in the making: what the broker hands over is gathered into writes to the file, and
//! entries in segments with little life left are copied forward on the way.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use quelea_model::{QueueId, Timestamp};
use rustc_hash::FxHashMap;

use crate::appender::{Appender, Tail};
use crate::checkpoint_file::{self as file, CheckpointHeader, CheckpointWrite, CheckpointWritten};
use crate::record::{self, Record, Seed};
use crate::segment::{Segment, Segments};
use crate::{DiskFile, Entry, Location, PagedRange};

/// Bytes of one write to the file.
const WRITE_BYTES: usize = 1024 * 1024;
/// Writes that may wait before the broker is asked to pause.
const WRITES_WAITING_MAX: usize = 4;
/// The file is synced every so many bytes, so that the last sync is short.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;
/// Segments emptied in one pass; each is held in memory as long as the pass gathers.
const VICTIMS_MAX: usize = 2;
/// A segment is worth emptying when at most one in so many of its pairs is live.
const LIVE_SHARE_MIN: u64 = 4;

/// A checkpoint under way.
pub(crate) struct CheckpointWriter {
    header: CheckpointHeader,
    seed: u32,
    phase: Phase,
    victims: Vec<Victim>,
    /// Victims whose content is still being read.
    loading: usize,
    buffer: Vec<u8>,
    writes: VecDeque<Vec<u8>>,
    file: Option<Arc<dyn DiskFile>>,
    busy: bool,
    offset: u64,
    synced_offset: u64,
    entries: u64,
    /// Pairs in ranges by segment.
    paged_out: FxHashMap<u32, u32>,
    /// Older checkpoints, to be removed.
    replaced: Vec<String>,
    /// The item of the topology that was added last.
    topology_up_to: Option<Vec<u8>>,
    topology_is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The broker hands over its entries.
    Gathering,
    /// All is gathered; the file is finished when this batch is synced.
    Finishing { batch: u64 },
    /// Given up; the file has to be removed.
    Abandoned,
}

/// A segment that is being emptied.
struct Victim {
    segment: u32,
    seed: Seed,
    bytes: Vec<u8>,
    /// Where records went, by old offset: a fan-out is copied once.
    moved: FxHashMap<u32, Location>,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointEnd {
    /// The checkpoint is on the disk; a replay would start here.
    Finished { position: Location, bytes: u64 },
    /// The disk refused it; the one before stays.
    Failed,
}

impl CheckpointWriter {
    /// Begins a pass whose replay starts at `tail`, right behind a commit.
    pub(crate) fn new(log_id: u64, number: u64, tail: &Tail, replaced: Vec<String>) -> Self {
        let header = CheckpointHeader {
            log_id,
            number,
            position: Location { segment: tail.segment, offset: tail.offset },
            commit: tail.commit,
            next_seq: tail.next_seq,
            next_queue: tail.next_queue,
        };
        Self {
            header,
            seed: header.seed(),
            phase: Phase::Gathering,
            victims: Vec::new(),
            loading: 0,
            buffer: header.encode().to_vec(),
            writes: VecDeque::new(),
            file: None,
            busy: false,
            offset: 0,
            synced_offset: 0,
            entries: 0,
            paged_out: FxHashMap::default(),
            replaced,
            topology_up_to: None,
            topology_is_complete: false,
        }
    }

    pub(crate) fn is_gathering(&self) -> bool {
        self.phase == Phase::Gathering
    }

    /// Returns whether the broker may give entries now.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_gathering() && self.loading == 0 && self.writes.len() < WRITES_WAITING_MAX
    }

    /// Returns whether a job is under way.
    pub(crate) const fn is_busy(&self) -> bool {
        self.busy
    }

    /// Returns the name that the file gets in the end.
    pub(crate) fn name(&self) -> String {
        file::checkpoint_name(self.header.number)
    }

    /// Adds a victim, whose content is being read.
    pub(crate) fn add_victim(&mut self, segment: &Segment) {
        self.loading += 1;
        self.victims.push(Victim {
            segment: segment.number,
            seed: segment.seed,
            bytes: Vec::new(),
            moved: FxHashMap::default(),
        });
    }

    /// Takes a victim's content; without it, it is left alone. True if it was this pass's.
    pub(crate) fn victim_loaded(&mut self, segment: u32, content: Result<Vec<u8>, String>) {
        self.loading = self.loading.saturating_sub(1);
        if let Some(victim) = self.victims.iter_mut().find(|victim| victim.segment == segment) {
            victim.bytes = content.unwrap_or_default();
        }
    }

    /// Returns the segments that are pinned by the pass.
    pub(crate) fn victims(&self) -> impl Iterator<Item = u32> {
        self.victims.iter().map(|victim| victim.segment)
    }

    /// Adds the next `max` items of the topology. True when all have been added.
    ///
    /// It may change between two calls: what changes is in the log behind the replay's start, which
    /// therefore ends with the right item for each key, whether it was added before the change, after it, or
    /// not at all.
    pub(crate) fn put_topology(
        &mut self,
        topology: &BTreeMap<Vec<u8>, Vec<u8>>,
        max: usize,
    ) -> bool {
        if self.topology_is_complete {
            return true;
        }
        let from = self.topology_up_to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut added = 0;
        let mut last = None;
        let items = topology.range::<[u8], _>((from, Bound::Unbounded)).take(max);
        let items = items.map(|(key, value)| {
            added += 1;
            last = Some(key);
            (&key[..], &value[..])
        });
        let mut items = items.peekable();
        while items.peek().is_some() {
            let mut bytes = 0;
            let block = std::iter::from_fn(|| {
                let (key, value) = if bytes < WRITE_BYTES { items.next()? } else { return None };
                bytes += key.len() + value.len();
                Some((key, value))
            });
            file::put_topology(&mut self.buffer, self.seed, block);
            self.cut();
        }
        drop(items);
        self.topology_up_to = last.cloned().or_else(|| self.topology_up_to.take());
        self.topology_is_complete = added < max;
        self.topology_is_complete
    }

    /// Copies entries out of the victims; returns the bytes copied.
    pub(crate) fn copy_entries(
        &mut self,
        entries: &mut [Entry],
        appender: &mut Appender,
        segments: &mut Segments,
    ) -> u64 {
        if self.victims.is_empty() {
            return 0;
        }
        let stored = entries.iter_mut().filter(|entry| entry.is_stored());
        stored.map(|entry| self.copy_forward(entry, appender, segments)).sum()
    }

    /// Adds entries; those of a run are all that the queue got between the first and the last.
    pub(crate) fn put_entries(
        &mut self,
        queue: QueueId,
        entries: &[Entry],
        expiries: &[Timestamp],
        is_run: bool,
    ) {
        let durable = entries.iter().filter(|entry| file::is_kept(entry)).count();
        if durable > 0 {
            file::put_entries(&mut self.buffer, self.seed, queue, entries, expiries, is_run);
            self.entries += durable as u64;
            self.cut();
        }
    }

    /// Adds a range.
    pub(crate) fn put_paged_range(&mut self, queue: QueueId, range: &PagedRange) {
        *self.paged_out.entry(range.segment).or_default() += range.count;
        if range.durable {
            file::put_paged_range(&mut self.buffer, self.seed, queue, range);
            self.entries += u64::from(range.count);
            self.cut();
        }
    }

    /// Ends the gathering: the file is complete when `batch`, which ends at `synced`, is on the
    /// disk, since entries may lie in it.
    pub(crate) fn finish(
        &mut self,
        batch: u64,
        synced: Location,
        topology: &BTreeMap<Vec<u8>, Vec<u8>>,
        segments: &mut Segments,
    ) {
        self.put_topology(topology, usize::MAX);
        let position = self.header.position;
        let needed = segments.iter().filter(|segment| {
            segment.number <= position.segment && segment.live > 0 && segment.freed_by.is_none()
        });
        file::put_segments(&mut self.buffer, self.seed, needed);
        file::put_end(&mut self.buffer, self.seed, self.entries, synced);
        self.writes.push_back(std::mem::take(&mut self.buffer));
        for victim in &mut self.victims {
            victim.bytes = Vec::new();
        }
        for segment in segments.iter_mut() {
            segment.paged_out = self.paged_out.get(&segment.number).copied().unwrap_or(0);
        }
        self.phase = Phase::Finishing { batch };
    }

    /// Gives up the checkpoint.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Abandoned;
        self.writes.clear();
        self.buffer = Vec::new();
        for victim in &mut self.victims {
            victim.bytes = Vec::new();
        }
    }

    /// Returns the next job.
    pub(crate) fn poll(&mut self, synced: u64) -> Option<CheckpointWrite> {
        if self.busy {
            return None;
        }
        let number = self.header.number;
        let write = match self.phase {
            Phase::Abandoned => CheckpointWrite::Abandon { number },
            Phase::Gathering | Phase::Finishing { .. } if !self.writes.is_empty() => {
                let bytes = self.writes.pop_front()?;
                let end = self.offset + bytes.len() as u64;
                let sync = end - self.synced_offset >= SYNC_BYTES;
                if sync {
                    self.synced_offset = end;
                }
                let file = self.file.clone();
                CheckpointWrite::Append { number, file, offset: self.offset, bytes, sync }
            }
            Phase::Finishing { batch } if synced >= batch => CheckpointWrite::Finish {
                number,
                file: Arc::clone(self.file.as_ref()?),
                replaced: std::mem::take(&mut self.replaced),
            },
            Phase::Gathering | Phase::Finishing { .. } => return None,
        };
        self.busy = true;
        Some(write)
    }

    /// Takes a job's result; returns how the pass ended if that was the last.
    pub(crate) fn complete(&mut self, written: CheckpointWritten) -> Option<CheckpointEnd> {
        self.busy = false;
        match written {
            CheckpointWritten::Appended { file, bytes } => {
                self.file = Some(file);
                self.offset += bytes;
                None
            }
            CheckpointWritten::Finished => {
                Some(CheckpointEnd::Finished { position: self.header.position, bytes: self.offset })
            }
            CheckpointWritten::Abandoned => Some(CheckpointEnd::Failed),
            CheckpointWritten::Failed { .. } => {
                self.abandon();
                None
            }
        }
    }

    /// Moves an entry out of a victim; returns the bytes copied.
    fn copy_forward(
        &mut self,
        entry: &mut Entry,
        appender: &mut Appender,
        segments: &mut Segments,
    ) -> u64 {
        let from = entry.location;
        let Some(victim) = self.victims.iter_mut().find(|v| v.segment == from.segment) else {
            return 0;
        };
        let mut copied = 0;
        let to = match victim.moved.get(&from.offset) {
            Some(to) => *to,
            None => {
                // A damaged record is left where it is; reading it reports the damage.
                let Some(record) = victim.record(entry) else { return 0 };
                let len = record.len();
                let to = appender.append(len, |out| record::encode_copy(record, out), None);
                add_tail_segment(segments, appender);
                copied = len as u64;
                victim.moved.insert(from.offset, to);
                to
            }
        };
        segments.add_live(to.segment, 1);
        segments.release(from, 1);
        if let Some(segment) = segments.get_mut(from.segment) {
            // The copy only moves what the original made, as long as that is replayed.
            segment.replayed = true;
        }
        entry.location = to;
        copied
    }

    /// Closes a write when it is large enough.
    fn cut(&mut self) {
        if self.buffer.len() >= WRITE_BYTES {
            let next = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 16);
            self.writes.push_back(std::mem::replace(&mut self.buffer, next));
        }
    }
}

impl Victim {
    /// Returns the bytes of an entry's record.
    fn record(&self, entry: &Entry) -> Option<&[u8]> {
        let bytes = self.bytes.get(entry.location.offset as usize..)?;
        let parsed = record::parse(bytes, self.seed).ok()?;
        match parsed.record {
            Record::Message(found) | Record::Copy(found) if found.seq == entry.seq => {
                Some(&bytes[..parsed.len])
            }
            _ => None,
        }
    }
}

/// Adds the segment that the appender has begun, if it is new.
pub(crate) fn add_tail_segment(segments: &mut Segments, appender: &Appender) {
    let tail = appender.tail();
    match segments.get_mut(tail.segment) {
        Some(segment) => segment.end = tail.offset,
        None => {
            if let Some((number, end)) = appender.ended()
                && let Some(ended) = segments.get_mut(number)
            {
                ended.end = end;
            }
            let mut segment = Segment::new(tail.segment, tail.capacity, tail.seed);
            segment.end = tail.offset;
            segments.add(segment);
        }
    }
}

/// Returns the segments worth emptying: complete, with little life in them, while the log is much
/// larger than what lives in it. The emptiest first.
pub(crate) fn choose_victims(segments: &Segments, written: u32) -> Vec<u32> {
    let (mut used, mut live) = (0, 0);
    for segment in segments.iter() {
        used += u64::from(segment.end);
        live += segment.live_bytes();
    }
    if used <= 2 * live {
        return Vec::new();
    }
    let mut candidates: Vec<&Segment> = segments
        .iter()
        .filter(|segment| {
            segment.number < written
                && segment.file.is_some()
                && segment.freed_by.is_none()
                && segment.live > 0
                && segment.paged_out == 0
                && u64::from(segment.live) * LIVE_SHARE_MIN < u64::from(segment.pairs)
        })
        .collect();
    candidates.sort_by_key(|segment| segment.live_bytes());
    candidates.iter().take(VICTIMS_MAX).map(|segment| segment.number).collect()
}

impl std::fmt::Debug for CheckpointWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointWriter({:?}, {:?}, {} entries)", self.header, self.phase, self.entries)
    }
}
