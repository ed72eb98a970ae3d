//! The store on a disk.

use std::collections::BTreeMap;

use quelea_model::{QueueId, Seq, Timestamp};

use crate::appender::Appender;
use crate::checkpoint_writer::{self, CheckpointEnd, CheckpointWriter};
use crate::group_commit::GroupCommit;
use crate::job::{Outcome, Work};
use crate::load_queue::LoadQueue;
use crate::noted_ids::NotedIds;
use crate::read_job::{OpenSegment, ReadJob, ReadResult};
use crate::record;
use crate::segment::{SegmentReport, Segments};
use crate::segment_pool::SegmentPool;
use crate::{
    Deduplication, Durability, Entry, Job, JobDone, LoadRequest, Loaded, Location, NewMessage,
    Options, PagedRange, Progress, Store, StoreState, StoreStats, Ticket, Visibility,
};

/// Read jobs under way at once; each may hold some megabytes.
const READS_MAX: usize = 4;
/// While so much waits to be written, a checkpoint pass makes no more of it.
const CHECKPOINT_PENDING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The log: one sequence of records for all queues, in recycled segments. See docs/formats/log.md.
#[derive(Debug)]
pub struct LogStore {
    pub(crate) log_id: u64,
    pub(crate) options: Options,
    pub(crate) appender: Appender,
    pub(crate) segments: Segments,
    pub(crate) pool: SegmentPool,
    pub(crate) commit: GroupCommit,
    pub(crate) topology: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Segments declared free, each with the batch that has to be synced before its file is reused.
    pub(crate) freeing: Vec<(u32, u64)>,
    pub(crate) loads: LoadQueue,
    pub(crate) checkpoint_writer: Option<CheckpointWriter>,
    pub(crate) checkpoint: LastCheckpoint,
    /// What the next one has to note in the log itself.
    pub(crate) noted: NotedIds,
    pub(crate) state: StoreState,
    pub(crate) stats: StoreStats,
    /// As of the last poll.
    pub(crate) now: Timestamp,
}

/// What a recovery would start from.
#[derive(Debug, Default)]
pub(crate) struct LastCheckpoint {
    /// Number of the last one begun.
    pub(crate) number: u64,
    /// Names of files that the next one replaces.
    pub(crate) names: Vec<String>,
    /// Where the replay starts.
    pub(crate) position: Location,
    /// Bytes of its file.
    pub(crate) bytes: u64,
    /// Bytes appended since it was begun.
    pub(crate) appended_since: u64,
    /// The disk refused the last one: not before then the next is tried on a full disk.
    pub(crate) retry_at: Option<Timestamp>,
}

impl LogStore {
    /// Updates the table of segments after an append, and counts it.
    fn appended(&mut self, before: u64) {
        checkpoint_writer::add_tail_segment(&mut self.segments, &self.appender);
        if self.commit.failed().is_some() {
            // Nothing will ever be written; do not let it pile up.
            self.appender.discard();
            return;
        }
        let bytes = self.appender.appended_bytes() - before;
        self.stats.appended_bytes += bytes;
        self.checkpoint.appended_since += bytes;
    }

    /// Appends a small record.
    fn append(&mut self, len: usize, encode: impl FnOnce(&mut Vec<u8>)) -> Location {
        let before = self.appender.appended_bytes();
        let location = self.appender.append(len, encode, None);
        self.appended(before);
        location
    }

    /// What a pass repeats is no reason for the next one: with many ids they would follow one another
    /// without end.
    fn not_for_the_next_checkpoint(&mut self, bytes: usize) {
        if self.checkpoint_writer.as_ref().is_some_and(CheckpointWriter::is_gathering) {
            let since = &mut self.checkpoint.appended_since;
            *since = since.saturating_sub(bytes as u64);
        }
    }

    fn note_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        let at = self.append(record::DEDUPLICATION_BYTES, |out| {
            record::encode_deduplication(queue, sent, out);
        });
        // It outlives its message.
        if let Some(segment) = self.segments.get_mut(at.segment) {
            segment.replayed = true;
        }
    }

    fn append_topology(&mut self, key: &[u8], value: Option<&[u8]>) {
        let len = 16 + key.len() + value.map_or(0, <[u8]>::len);
        let at = self.append(len, |out| record::encode_topology(key, value, out));
        if let Some(segment) = self.segments.get_mut(at.segment) {
            segment.replayed = true;
        }
    }

    /// Declares segments free that nothing needs any more. Their files are reused when that
    /// declaration is on the disk, so that a recovery knows why they are missing.
    fn free_segments(&mut self) {
        if !std::mem::take(&mut self.segments.changed) || self.commit.failed().is_some() {
            return;
        }
        let written = self.commit.written_to().segment;
        let covered = self.checkpoint.position.segment;
        let mut prefix = None;
        let mut in_prefix = true;
        let mut single = Vec::new();
        for segment in self.segments.iter().take_while(|segment| segment.number < written) {
            let covered = segment.number < covered;
            if segment.is_empty() && in_prefix && (covered || !segment.replayed) {
                prefix = Some(segment.number);
            } else if segment.freed_by.is_none() {
                in_prefix = false;
                if segment.is_empty() && covered {
                    single.push(segment.number);
                }
            }
        }
        let batch = self.commit.open();
        if let Some(last) = prefix {
            self.append(16, |out| record::encode_segment_freed(last, true, out));
            for segment in self.segments.iter_mut().take_while(|segment| segment.number <= last) {
                if segment.freed_by.is_none() {
                    segment.freed_by = Some(batch);
                    self.freeing.push((segment.number, batch));
                }
            }
        }
        for number in single {
            self.append(16, |out| record::encode_segment_freed(number, false, out));
            if let Some(segment) = self.segments.get_mut(number) {
                segment.freed_by = Some(batch);
                self.freeing.push((number, batch));
            }
        }
    }

    /// Returns whether segments would be free if a checkpoint covered them. On a full disk that is
    /// worth one at any time.
    fn checkpoint_frees_space(&self) -> bool {
        let written = self.commit.written_to().segment;
        let covered = self.checkpoint.position.segment;
        self.checkpoint.retry_at.is_none_or(|at| self.now >= at)
            && self
                .segments
                .iter()
                .take_while(|segment| segment.number < written)
                .any(|segment| segment.number >= covered && segment.is_empty())
    }

    /// Takes the files of segments whose end is on the disk.
    fn reuse_segments(&mut self) {
        if self.freeing.is_empty() {
            return;
        }
        let synced = self.commit.progress().synced;
        let (free, waiting) = std::mem::take(&mut self.freeing)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, batch)| *batch <= synced);
        self.freeing = waiting;
        for (number, _) in free {
            if let Some(file) = self.segments.remove(number).and_then(|segment| segment.file) {
                self.pool.recycle(file);
                self.stats.segments_recycled += 1;
            }
        }
        if !self.freeing.is_empty() && self.pool.is_short() {
            // The files are needed soon: do not wait for the lazy sync.
            self.commit.ticket(Durability::Fsync, self.appender.is_empty());
        }
    }

    fn update_state(&mut self) {
        let full = self.commit.full().or_else(|| self.pool.full());
        let state = match (self.commit.failed(), full) {
            (Some(reason), _) => StoreState::Failed { reason: reason.to_owned() },
            (None, Some(reason)) => StoreState::Full { reason: reason.to_owned() },
            (None, None) => StoreState::Healthy,
        };
        if state != self.state {
            if matches!(state, StoreState::Failed { .. }) {
                self.appender.discard();
                self.loads.fail_waiting();
                if let Some(writer) = &mut self.checkpoint_writer {
                    writer.abandon();
                }
            }
            self.state = state;
        }
    }

    fn poll_background(&mut self) -> Option<Work> {
        if self.pool.is_busy()
            || self.checkpoint_writer.as_ref().is_some_and(CheckpointWriter::is_busy)
        {
            return None;
        }
        let failed = self.commit.failed().is_some();
        if self.pool.is_urgent()
            && !failed
            && let Some(allocation) = self.pool.poll(self.now)
        {
            return Some(Work::Allocate(allocation));
        }
        let synced = self.commit.progress().synced;
        if let Some(write) = self.checkpoint_writer.as_mut().and_then(|writer| writer.poll(synced))
        {
            return Some(Work::Checkpoint(write));
        }
        if failed { None } else { self.pool.poll(self.now).map(Work::Allocate) }
    }

    fn end_checkpoint(&mut self, end: CheckpointEnd) {
        let Some(writer) = self.checkpoint_writer.take() else { return };
        for segment in writer.victims() {
            self.segments.unpin(segment);
        }
        self.segments.changed = true;
        match end {
            CheckpointEnd::Finished { position, bytes } => {
                self.checkpoint.position = position;
                self.checkpoint.bytes = bytes;
                self.checkpoint.names = vec![writer.name()];
                self.stats.checkpoints += 1;
                self.stats.checkpoint_bytes = bytes;
            }
            CheckpointEnd::Failed => {
                // It may have got its name all the same.
                self.checkpoint.names.push(writer.name());
                self.checkpoint.retry_at = Some(self.now.plus_ms(self.options.full_retry_ms));
                self.stats.checkpoints_failed += 1;
            }
        }
    }

    /// Adds entries to the checkpoint, copying forward what is to be copied.
    fn checkpoint_block(
        &mut self,
        queue: QueueId,
        entries: &mut [Entry],
        expiries: &[Timestamp],
        is_run: bool,
    ) {
        // Without room entries stay where they are: the pass must come to its end, which frees space.
        let has_room = self.has_file_room(0);
        let writer = self.checkpoint_writer.as_mut().filter(|writer| writer.is_gathering());
        let Some(writer) = writer else { return };
        let before = self.appender.appended_bytes();
        if has_room {
            self.stats.copied_bytes +=
                writer.copy_entries(entries, &mut self.appender, &mut self.segments);
        }
        writer.put_entries(queue, entries, expiries, is_run);
        self.appended(before);
    }

    /// More is written now.
    fn retry_loads(&mut self) {
        for request in self.loads.take_waiting() {
            self.load(request);
        }
    }
}

impl Store for LogStore {
    fn append_message(&mut self, new: NewMessage<'_>) -> Location {
        let before = self.appender.appended_bytes();
        let location = self.appender.message(&new);
        self.appended(before);
        self.segments.add_live(location.segment, new.queues.len() as u32);
        self.stats.messages += 1;
        location
    }

    fn append_acks(&mut self, queue: QueueId, entries: &[Entry]) {
        let before = self.appender.appended_bytes();
        for entry in entries.iter().filter(|entry| entry.is_stored()) {
            if entry.is_durable() {
                self.appender.ack(queue, entry.seq);
                self.stats.acks += 1;
            }
            self.segments.release(entry.location, 1);
        }
        if before != self.appender.appended_bytes() {
            self.appended(before);
        }
    }

    fn append_requeue(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>) {
        if entry.is_durable() && entry.is_stored() {
            self.append(48, |out| record::encode_requeue(queue, entry, expires_at, out));
        }
    }

    fn append_visibility(&mut self, queue: QueueId, visibility: &Visibility) {
        // Nothing keeps the record's segment but the message, which lies in it or before it.
        self.append(record::VISIBILITY_BYTES, |out| {
            record::encode_visibility(queue, visibility, out);
        });
        self.not_for_the_next_checkpoint(record::VISIBILITY_BYTES);
    }

    fn append_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.note_deduplication(queue, sent);
        self.noted.add(sent.sent_at);
    }

    fn repeat_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.note_deduplication(queue, sent);
        self.not_for_the_next_checkpoint(record::DEDUPLICATION_BYTES);
    }

    fn append_purge(&mut self, queue: QueueId, kept: &[Seq]) {
        self.append(20 + 8 * kept.len(), |out| record::encode_purge(queue, kept, out));
    }

    fn append_queue_deleted(&mut self, queue: QueueId) {
        self.appender.note_queue(queue);
        self.append(16, |out| record::encode_queue_deleted(queue, out));
    }

    fn release(&mut self, entry: &Entry) {
        if entry.is_stored() {
            self.segments.release(entry.location, 1);
        }
    }

    fn release_paged_range(&mut self, range: &PagedRange) {
        self.segments.release(range.first_location(), range.count);
    }

    fn put_topology(&mut self, key: &[u8], value: &[u8]) {
        self.append_topology(key, Some(value));
        self.topology.insert(key.to_vec(), value.to_vec());
    }

    fn delete_topology(&mut self, key: &[u8]) {
        if self.topology.remove(key).is_some() {
            self.append_topology(key, None);
        }
    }

    fn begin_atomic(&mut self) {
        self.appender.begin_atomic();
    }

    fn end_atomic(&mut self) {
        let before = self.appender.appended_bytes();
        self.appender.end_atomic();
        self.appended(before);
    }

    fn ticket(&mut self, durability: Durability) -> Ticket {
        self.commit.ticket(durability, self.appender.is_empty())
    }

    fn progress(&self) -> Progress {
        self.commit.progress()
    }

    fn state(&self) -> &StoreState {
        &self.state
    }

    fn pending_bytes(&self) -> usize {
        self.appender.pending_bytes() + self.commit.pending_bytes()
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.has_file_room(bytes)
    }

    fn load(&mut self, request: LoadRequest) {
        let written_to = self.commit.written_to();
        let batch = self.commit.sealed();
        self.loads.request(request, written_to, batch, &self.appender, &mut self.segments);
    }

    fn poll_loaded(&mut self) -> Option<Loaded> {
        self.loads.poll_loaded()
    }

    fn poll_job(&mut self, now: Timestamp) -> Option<Job> {
        self.now = now;
        if self.appender.is_atomic() {
            return None;
        }
        self.noted.forget_old(now);
        self.pool.set_ahead(self.segments_ahead());
        if matches!(self.state, StoreState::Full { .. }) {
            // Fewer spare files may be enough now, only since some time has passed.
            self.update_state();
        }
        self.free_segments();
        self.reuse_segments();
        let before = self.appender.appended_bytes();
        let work = self.commit.poll(&mut self.appender, &mut self.segments, &mut self.pool, now);
        if before != self.appender.appended_bytes() {
            self.appended(before);
        }
        let work = work.or_else(|| self.poll_background()).or_else(|| {
            self.loads.poll(READS_MAX, self.now).map(|read| Work::Read(Box::new(read)))
        })?;
        Some(Job { work })
    }

    fn complete(&mut self, done: JobDone) {
        let us = done.elapsed_us;
        let syncs = self.stats.syncs;
        match done.outcome {
            Outcome::Written(result) => {
                let before = self.commit.written_to().segment;
                if let Some(batch) = self.commit.written(result, self.now, &mut self.stats) {
                    self.appender.reuse(batch);
                }
                self.segments.changed |= self.commit.written_to().segment != before;
                self.retry_loads();
            }
            Outcome::Synced(result) => self.commit.synced(result, &mut self.stats),
            Outcome::Allocated(allocated) => self.pool.complete(allocated, self.now),
            Outcome::Checkpoint(written) => {
                let end =
                    self.checkpoint_writer.as_mut().and_then(|writer| writer.complete(written));
                if let Some(end) = end {
                    self.end_checkpoint(end);
                }
            }
            Outcome::Read(read) => {
                self.stats.reads += 1;
                self.stats.read_bytes += read.bytes;
                for segment in read.unpin {
                    self.segments.unpin(segment);
                }
                match read.result {
                    ReadResult::Loaded(loaded) => self.loads.complete(Some(loaded)),
                    ReadResult::Again(after_ms, read) => {
                        self.stats.reads_retried += 1;
                        self.loads.retry(self.now.plus_ms(after_ms), *read);
                    }
                    ReadResult::Segment(segment, content) => {
                        self.loads.complete(None);
                        if let Some(writer) = &mut self.checkpoint_writer {
                            writer.victim_loaded(segment, content);
                        }
                    }
                }
            }
        }
        if self.stats.syncs != syncs {
            self.stats.sync_times.record(us, 1);
        }
        self.update_state();
    }

    fn deadline(&self) -> Option<Timestamp> {
        let read = self.loads.retry_at(READS_MAX);
        if self.commit.failed().is_some() {
            return read;
        }
        [self.commit.deadline(), self.pool.retry_at(), read].into_iter().flatten().min()
    }

    fn wants_checkpoint(&self) -> bool {
        let enough = u64::from(self.options.segment_bytes).max(2 * self.checkpoint.bytes);
        self.checkpoint_writer.is_none()
            && match self.state {
                StoreState::Healthy => self.checkpoint.appended_since > enough,
                StoreState::Full { .. } => self.checkpoint_frees_space(),
                StoreState::Failed { .. } => false,
            }
    }

    fn begin_checkpoint(&mut self) {
        if self.checkpoint_writer.is_some()
            || self.appender.is_atomic()
            || matches!(self.state, StoreState::Failed { .. })
        {
            return;
        }
        let before = self.appender.appended_bytes();
        let tail = self.appender.mark();
        self.appended(before);
        self.checkpoint.number += 1;
        self.checkpoint.appended_since = 0;
        let (number, replaced) = (self.checkpoint.number, self.checkpoint.names.clone());
        let mut writer = CheckpointWriter::new(self.log_id, number, &tail, replaced);
        let written = self.commit.written_to().segment.min(tail.segment);
        for number in checkpoint_writer::choose_victims(&self.segments, written) {
            let Some(segment) = self.segments.get(number) else { continue };
            let Some(file) = segment.file.clone() else { continue };
            writer.add_victim(segment);
            let open = OpenSegment { number, file, seed: segment.seed };
            self.loads.push(ReadJob::Segment { segment: open, end: segment.end });
            self.segments.pin(number);
        }
        self.checkpoint_writer = Some(writer);
    }

    fn checkpoint_ready(&self) -> bool {
        self.pending_bytes() <= CHECKPOINT_PENDING_BYTES_MAX
            && self.checkpoint_writer.as_ref().is_some_and(CheckpointWriter::is_ready)
    }

    fn checkpoint_under_way(&self) -> bool {
        self.checkpoint_writer.is_some()
    }

    fn checkpoint_gathering(&self) -> bool {
        self.checkpoint_writer.as_ref().is_some_and(CheckpointWriter::is_gathering)
    }

    fn checkpoint_topology(&mut self, max: usize) -> bool {
        let writer = self.checkpoint_writer.as_mut().filter(|writer| writer.is_gathering());
        writer.is_none_or(|writer| writer.put_topology(&self.topology, max))
    }

    fn checkpoint_entries(
        &mut self,
        queue: QueueId,
        entries: &mut [Entry],
        expiries: &[Timestamp],
    ) {
        self.checkpoint_block(queue, entries, expiries, false);
    }

    fn checkpoint_run(&mut self, queue: QueueId, entries: &mut [Entry], expiries: &[Timestamp]) {
        self.checkpoint_block(queue, entries, expiries, true);
    }

    fn checkpoint_paged_range(&mut self, queue: QueueId, range: &PagedRange) {
        if let Some(writer) = self.checkpoint_writer.as_mut().filter(|writer| writer.is_gathering())
        {
            writer.put_paged_range(queue, range);
        }
    }

    fn finish_checkpoint(&mut self) {
        if !self.checkpoint_gathering() || self.appender.is_atomic() {
            return;
        }
        let before = self.appender.appended_bytes();
        let tail = self.appender.mark();
        self.appended(before);
        let batch = self.commit.ticket(Durability::Fsync, self.appender.is_empty()).batch();
        if let Some(writer) = &mut self.checkpoint_writer {
            let synced = Location { segment: tail.segment, offset: tail.offset };
            writer.finish(batch, synced, &self.topology, &mut self.segments);
        }
    }

    fn is_idle(&self) -> bool {
        (self.appender.is_empty() || self.commit.failed().is_some())
            && self.commit.is_idle()
            && self.checkpoint_writer.is_none()
            && self.loads.is_idle()
    }

    fn segments(&self, after: u32, max: usize) -> Vec<SegmentReport> {
        self.segments.reports(after, max)
    }

    fn stats(&self) -> StoreStats {
        StoreStats {
            pending_bytes: self.pending_bytes() as u64,
            segments: self.segments.len() as u64,
            segments_spare: self.pool.len() as u64,
            log_bytes: self.segments.iter().map(|segment| u64::from(segment.capacity)).sum(),
            live: self.segments.live(),
            replay_bytes: self.checkpoint.appended_since,
            ..self.stats
        }
    }
}
