//! Encodes records into the open batch and decides where they lie.

use bytes::Bytes;
use quelea_model::{QueueId, Seq};

use crate::Location;
use crate::NewMessage;
use crate::batch::{Batch, Part, SHARED_BODY_BYTES_MIN};
use crate::record::{self, COMMIT_BYTES, Commit, RECORD_HEADER_BYTES, Seed};
use crate::segment::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader, SyncedNote};

/// Acknowledgements of one record.
const ACKS_PER_RECORD_MAX: usize = 4_096;
/// A buffer that grew larger than this for one batch is not kept for the next.
const BUFFER_BYTES_KEPT_MAX: usize = 4 * 1024 * 1024;
/// Room kept in a segment: a commit for the group, and one more that ends the segment if the group
/// was the last of a batch.
const RESERVED_BYTES: usize = 2 * COMMIT_BYTES;

/// Where the log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) capacity: u32,
    /// What the checksums in the segment start from.
    pub(crate) seed: Seed,
    /// The segment's header is not written yet.
    pub(crate) fresh: bool,
    /// Number of the last commit.
    pub(crate) commit: u64,
    pub(crate) next_seq: u64,
    pub(crate) next_queue: u32,
}

/// The open batch.
#[derive(Debug)]
pub(crate) struct Appender {
    log_id: u64,
    salt: u64,
    segment_bytes: u32,
    parts: Vec<Part>,
    tail: Tail,
    /// The group of records since the last commit.
    group_start: u32,
    group_records: u32,
    group_chain: u32,
    /// Acknowledgements that become a record when their group ends: within a group the order does
    /// not matter, since a message is never acknowledged before it is appended. Room for the record
    /// is kept in the segment.
    acks: Vec<(QueueId, Seq)>,
    acks_max: usize,
    atomic: u32,
    /// All commits up to this one are on the disk.
    synced: u64,
    /// Up to which one a commit has said so.
    announced: u64,
    /// The last commit of a group with anything in it.
    filled: u64,
    /// Bytes in the open batch.
    bytes: usize,
    /// Bytes appended since the opening.
    appended_bytes: u64,
    /// The last segment that was ended, and where.
    ended: Option<(u32, u32)>,
    buffers: Vec<Vec<u8>>,
}

impl Appender {
    pub(crate) fn new(log_id: u64, salt: u64, segment_bytes: u32, tail: Tail) -> Self {
        let room = (segment_bytes - SEGMENT_HEADER_BYTES) as usize - RESERVED_BYTES;
        let mut acks_max = ACKS_PER_RECORD_MAX;
        while record::acks_bytes_max(acks_max) > room / 4 {
            acks_max /= 2;
        }
        Self {
            log_id,
            salt,
            segment_bytes,
            parts: Vec::new(),
            group_start: tail.offset,
            group_records: 0,
            group_chain: 0,
            acks: Vec::new(),
            acks_max,
            atomic: 0,
            synced: tail.commit,
            announced: tail.commit,
            filled: 0,
            bytes: 0,
            appended_bytes: 0,
            ended: None,
            buffers: Vec::new(),
            tail,
        }
    }

    /// Returns where the next record will lie, unless it does not fit.
    pub(crate) const fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Returns the bytes in the open batch, those of acknowledgements not yet encoded guessed.
    pub(crate) const fn pending_bytes(&self) -> usize {
        self.bytes + 8 * self.acks.len()
    }

    /// Returns the bytes encoded since the opening.
    pub(crate) const fn appended_bytes(&self) -> u64 {
        self.appended_bytes
    }

    /// Returns the last segment that was ended, and where.
    pub(crate) const fn ended(&self) -> Option<(u32, u32)> {
        self.ended
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0 && self.acks.is_empty()
    }

    pub(crate) const fn is_atomic(&self) -> bool {
        self.atomic > 0
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) fn message(&mut self, new: &NewMessage<'_>) -> Location {
        self.tail.next_seq = self.tail.next_seq.max(new.seq.0.saturating_add(1));
        for queue in new.queues {
            self.note_queue(*queue);
        }
        let body = new.message.body();
        let len = record::message_bytes(new);
        if body.len() >= SHARED_BODY_BYTES_MIN {
            let shared = new.message.body_bytes();
            return self.append(len, |out| record::encode_message(new, out), Some(shared));
        }
        let encode = |out: &mut Vec<u8>| {
            record::encode_message(new, out);
            out.extend_from_slice(body);
        };
        self.append(len, encode, None)
    }

    pub(crate) fn ack(&mut self, queue: QueueId, seq: Seq) {
        if !self.has_room(record::acks_bytes_max(self.acks.len() + 1)) {
            self.roll(record::acks_bytes_max(1));
        }
        self.acks.push((queue, seq));
        if self.acks.len() >= self.acks_max {
            self.flush_acks();
        }
    }

    pub(crate) const fn note_queue(&mut self, queue: QueueId) {
        if queue.0 >= self.tail.next_queue {
            self.tail.next_queue = queue.0.saturating_add(1);
        }
    }

    pub(crate) const fn begin_atomic(&mut self) {
        self.atomic += 1;
    }

    pub(crate) fn end_atomic(&mut self) {
        if self.atomic == 1 {
            // They belong to what ends here.
            self.flush_acks();
        }
        self.atomic = self.atomic.saturating_sub(1);
    }

    /// Appends a record of at most `len` bytes; `encode` writes it from its type on, all but the
    /// large body.
    pub(crate) fn append(
        &mut self,
        len: usize,
        encode: impl FnOnce(&mut Vec<u8>),
        body: Option<Bytes>,
    ) -> Location {
        let acks = if self.acks.is_empty() { 0 } else { record::acks_bytes_max(self.acks.len()) };
        if !self.has_room(len + acks) {
            self.roll(len);
        }
        let location = Location { segment: self.tail.segment, offset: self.tail.offset };
        let seed = self.tail.seed;
        let part = self.part();
        let at = part.bytes.len();
        part.bytes.extend_from_slice(&[0; RECORD_HEADER_BYTES - 1]);
        encode(&mut part.bytes);
        let written = part.bytes.len() - at + body.as_ref().map_or(0, Bytes::len);
        debug_assert!(written <= len, "a record is not longer than announced");
        part.bytes[at + 4..at + 8].copy_from_slice(&(written as u32).to_le_bytes());
        let mut checksum = seed.checksum(&part.bytes[at + 4..]);
        if let Some(body) = body {
            checksum = crc32c::crc32c_append(checksum, &body);
            part.share(body);
        }
        part.bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        self.group_chain = record::chain(self.group_chain, checksum);
        self.group_records += 1;
        self.tail.offset += written as u32;
        self.bytes += written;
        self.appended_bytes += written as u64;
        location
    }

    /// Ends the group here, so that the place is one from which a replay may start. Returns it.
    pub(crate) fn mark(&mut self) -> Tail {
        self.flush_acks();
        if self.group_records > 0 {
            self.commit(false, false);
        }
        self.tail
    }

    /// Takes the batch, if there is anything in it.
    pub(crate) fn seal(&mut self, number: u64) -> Option<Batch> {
        self.mark();
        if self.parts.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let commit = self.tail.commit;
        Some(Batch { number, parts: std::mem::take(&mut self.parts), bytes, commit })
    }

    /// All commits up to this one are on the disk: the next commit says so.
    pub(crate) fn note_synced(&mut self, commit: u64) {
        self.synced = self.synced.max(commit);
    }

    /// Returns whether everything is on the disk and no commit has said so yet.
    pub(crate) const fn has_to_announce(&self) -> bool {
        self.announced < self.filled && self.filled <= self.synced
    }

    /// Appends an empty commit that says what is on the disk, and has it noted at the segment's beginning too.
    pub(crate) fn announce(&mut self) {
        if self.has_room(COMMIT_BYTES) {
            self.commit(false, false);
            let note = SyncedNote::new(self.filled, self.tail.seed);
            self.part().note = Some(note);
        }
        // The few bytes before a segment's end are not worth beginning the next one.
        self.announced = self.filled;
    }

    /// Takes the buffers of a written batch back.
    pub(crate) fn reuse(&mut self, batch: Batch) {
        for part in batch.parts {
            let mut buffer = part.bytes;
            if self.buffers.len() < 2 && buffer.capacity() <= BUFFER_BYTES_KEPT_MAX {
                buffer.clear();
                self.buffers.push(buffer);
            }
        }
    }

    /// Forgets what was appended since the last seal: the store has failed for good.
    pub(crate) fn discard(&mut self) {
        self.parts.clear();
        self.acks.clear();
        self.bytes = 0;
        self.group_start = self.tail.offset;
        self.group_records = 0;
        self.group_chain = 0;
    }

    fn flush_acks(&mut self) {
        if self.acks.is_empty() {
            return;
        }
        let mut acks = std::mem::take(&mut self.acks);
        let len = record::acks_bytes_max(acks.len());
        self.append(len, |out| record::encode_acks(&mut acks, out), None);
        acks.clear();
        self.acks = acks;
    }

    /// Returns whether records of so many bytes have room in the segment.
    const fn has_room(&self, len: usize) -> bool {
        self.tail.offset as usize + len + RESERVED_BYTES <= self.tail.capacity as usize
    }

    /// Ends the segment and goes on in the next one, in which at least `len` bytes have room.
    fn roll(&mut self, len: usize) {
        self.flush_acks();
        self.part();
        self.commit(self.atomic > 0, true);
        self.ended = Some((self.tail.segment, self.tail.offset));
        let needed = SEGMENT_HEADER_BYTES as usize + len + RESERVED_BYTES;
        let capacity = needed.next_multiple_of(4_096) as u32;
        self.tail.segment += 1;
        self.tail.offset = SEGMENT_HEADER_BYTES;
        self.tail.capacity = capacity.max(self.segment_bytes);
        self.tail.fresh = true;
        self.tail.seed = Seed::new(self.salt, self.tail.segment);
        self.group_start = SEGMENT_HEADER_BYTES;
    }

    fn commit(&mut self, continued: bool, segment_end: bool) {
        let commit = Commit {
            continued,
            segment_end,
            records: self.group_records,
            number: self.tail.commit + 1,
            start: self.group_start,
            chain: self.group_chain,
            synced: Some(self.synced),
        };
        let seed = self.tail.seed;
        record::encode_commit(&commit, seed, &mut self.part().bytes);
        self.tail.commit += 1;
        self.announced = self.synced;
        if self.group_records > 0 {
            self.filled = self.tail.commit;
        }
        self.tail.offset += COMMIT_BYTES as u32;
        self.bytes += COMMIT_BYTES;
        self.appended_bytes += COMMIT_BYTES as u64;
        self.group_start = self.tail.offset;
        self.group_records = 0;
        self.group_chain = 0;
    }

    /// Returns the part for the current segment.
    fn part(&mut self) -> &mut Part {
        let segment = self.tail.segment;
        if self.parts.last().is_none_or(|part| part.segment != segment) {
            let header = self.tail.fresh.then(|| Box::new(self.header().encode()));
            self.tail.fresh = false;
            let buffer = self.buffers.pop().unwrap_or_default();
            self.parts.push(Part::new(segment, self.tail.offset, header, buffer));
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    const fn header(&self) -> SegmentHeader {
        SegmentHeader {
            version: FORMAT_VERSION,
            segment: self.tail.segment,
            log_id: self.log_id,
            commit: self.tail.commit,
            next_seq: self.tail.next_seq,
            next_queue: self.tail.next_queue,
            bytes: self.tail.capacity,
            salt: self.salt,
            is_renamed: true,
        }
    }
}
