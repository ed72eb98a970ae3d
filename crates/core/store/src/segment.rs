//! Segments: their header on disk and their account in memory.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::disk::write_all_at;
use crate::record::{Seed, u32_at, u64_at};
use crate::{DiskFile, Location};

/// The header's sector. Records begin behind it.
pub(crate) const SEGMENT_HEADER_BYTES: u32 = 512;
/// The bytes of that sector that mean something.
const HEADER_FIELDS_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"QUELEALG";
/// Format of segments and of the records in them.
pub(crate) const FORMAT_VERSION: u16 = 2;
/// The oldest that is read. Its commits do not say what was on the disk.
pub(crate) const FORMAT_VERSION_MIN: u16 = 1;

const KIND_SPARE: u16 = 0;
const KIND_USED: u16 = 1;

/// The first sector of a segment's file: docs/formats/log.md, "Segment header".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Format of what lies in it.
    pub(crate) version: u16,
    /// 0 in a spare one.
    pub(crate) segment: u32,
    pub(crate) log_id: u64,
    /// Number of the last commit before this segment.
    pub(crate) commit: u64,
    pub(crate) next_seq: u64,
    pub(crate) next_queue: u32,
    /// Bytes of the file.
    pub(crate) bytes: u32,
    /// What its records' checksums start from, together with its number.
    pub(crate) salt: u64,
    /// Made by a program that renames files when they have headers; earlier ones wrote zero here.
    pub(crate) is_renamed: bool,
}

/// What the first sector of a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderState {
    Header(SegmentHeader),
    /// All zeros or too short.
    Missing,
    Version(u16),
    Damaged(&'static str),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        let kind = if self.segment == 0 { KIND_SPARE } else { KIND_USED };
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10..12].copy_from_slice(&kind.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.commit.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.next_seq.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.next_queue.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.salt.to_le_bytes());
        bytes[56..60].copy_from_slice(&u32::from(self.is_renamed).to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> HeaderState {
        if bytes.len() < HEADER_FIELDS_BYTES || bytes.iter().all(|b| *b == 0) {
            return HeaderState::Missing;
        }
        if bytes[..8] != MAGIC {
            return HeaderState::Damaged("this is not the header of a segment");
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
            return HeaderState::Version(version);
        }
        if crc32c::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return HeaderState::Damaged("the checksum of the segment's header is wrong");
        }
        let header = Self {
            version,
            segment: u32_at(bytes, 12),
            log_id: u64_at(bytes, 16),
            commit: u64_at(bytes, 24),
            next_seq: u64_at(bytes, 32),
            next_queue: u32_at(bytes, 40),
            bytes: u32_at(bytes, 44),
            salt: u64_at(bytes, 48),
            is_renamed: u32_at(bytes, 56) == 1,
        };
        let spare = u16::from_le_bytes([bytes[10], bytes[11]]) == KIND_SPARE;
        if spare != (header.segment == 0) {
            return HeaderState::Damaged("a spare segment has a number, or a used one has none");
        }
        HeaderState::Header(header)
    }
}

/// What the header's sector says besides: up to which commit the log was on the disk when it became quiet. It lies
/// apart from the end of the log, so that what is lost there is missed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncedNote([u8; Self::BYTES]);

impl SyncedNote {
    const BYTES: usize = 12;

    /// Returns a note for a segment whose checksums start from `seed`.
    pub(crate) fn new(commit: u64, seed: Seed) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[4..].copy_from_slice(&commit.to_le_bytes());
        let checksum = seed.checksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        Self(bytes)
    }

    /// Writes it into the segment's file.
    pub(crate) fn write(&self, file: &dyn DiskFile) -> io::Result<()> {
        write_all_at(file, HEADER_FIELDS_BYTES as u64, vec![IoSlice::new(&self.0)])
    }

    /// Decodes the commit, from the sector of a header; none in a segment that was not quiet yet,
    /// nor of the file's former life.
    pub(crate) fn decode(sector: &[u8], seed: Seed) -> Option<u64> {
        let bytes = sector.get(HEADER_FIELDS_BYTES..HEADER_FIELDS_BYTES + Self::BYTES)?;
        let is_whole = seed.checksum(&bytes[4..]) == u32_at(bytes, 0);
        is_whole.then(|| u64_at(bytes, 4))
    }
}

/// The file that a segment lives in.
#[derive(Clone)]
pub(crate) struct SegmentFile {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) bytes: u32,
}

impl SegmentFile {
    const PREFIX: &'static str = "segment-";

    /// Returns the name of the file with this number, which is not that of the segment in it.
    pub(crate) fn name_of(slot: u32) -> String {
        format!("{}{slot:08}", Self::PREFIX)
    }

    /// Returns the number in a file's name.
    pub(crate) fn slot_of(name: &str) -> Option<u32> {
        let slot = name.strip_prefix(Self::PREFIX)?.parse().ok()?;
        (Self::name_of(slot) == name).then_some(slot)
    }
}

impl std::fmt::Debug for SegmentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.bytes)
    }
}

/// A segment that is part of the log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    /// None until the first write into it.
    pub(crate) file: Option<SegmentFile>,
    /// What its records' checksums start from.
    pub(crate) seed: Seed,
    /// Bytes that it may hold, header included.
    pub(crate) capacity: u32,
    /// Where its records end, as far as they were appended.
    pub(crate) end: u32,
    /// Live (queue, message) pairs.
    pub(crate) live: u32,
    /// All pairs that were ever appended here.
    pub(crate) pairs: u32,
    /// A replay needs its records though no message in it is live: topology, or messages that were
    /// copied forward. Only a checkpoint that covers it may free it.
    pub(crate) replayed: bool,
    /// Read jobs that need it, and a checkpoint pass that copies from it.
    pub(crate) pins: u32,
    /// Pairs in paged-out ranges, as the last checkpoint pass saw them.
    pub(crate) paged_out: u32,
    /// Was declared free by a record of this batch: the file may be reused when that is synced.
    pub(crate) freed_by: Option<u64>,
}

impl Segment {
    pub(crate) const fn new(number: u32, capacity: u32, seed: Seed) -> Self {
        Self {
            number,
            file: None,
            seed,
            capacity,
            end: SEGMENT_HEADER_BYTES,
            live: 0,
            pairs: 0,
            replayed: false,
            pins: 0,
            paged_out: 0,
            freed_by: None,
        }
    }

    /// Returns whether nothing needs its records, apart from what a replay needs them for.
    pub(crate) const fn is_empty(&self) -> bool {
        self.live == 0 && self.pins == 0 && self.freed_by.is_none()
    }

    /// Returns the live share of its used bytes, estimated from its pairs.
    pub(crate) fn live_bytes(&self) -> u64 {
        let used = u64::from(self.end.saturating_sub(SEGMENT_HEADER_BYTES));
        if self.pairs == 0 { 0 } else { used * u64::from(self.live) / u64::from(self.pairs) }
    }
}

/// A segment of the log, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its number: a later one has later records.
    pub number: u32,
    /// The file's name; `None` before the first write.
    pub file: Option<String>,
    /// Bytes that it may hold.
    pub capacity_bytes: u32,
    /// Bytes that are written, or are about to be.
    pub used_bytes: u32,
    /// Bytes of messages that are still in queues, estimated from their number.
    pub live_bytes: u64,
    /// Messages that are still in queues, counted once for each queue.
    pub live_messages: u32,
    /// Whether only a checkpoint can free it, though no message in it is live.
    pub is_replayed: bool,
}

impl From<&Segment> for SegmentReport {
    fn from(segment: &Segment) -> Self {
        Self {
            number: segment.number,
            file: segment.file.as_ref().map(|file| file.name.clone()),
            capacity_bytes: segment.capacity,
            used_bytes: segment.end,
            live_bytes: segment.live_bytes(),
            live_messages: segment.live,
            is_replayed: segment.replayed,
        }
    }
}

/// All segments of the log by number.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Number of the first slot.
    base: u32,
    slots: VecDeque<Option<Segment>>,
    live: u64,
    /// A segment may have become free since this was last cleared.
    pub(crate) changed: bool,
}

impl Segments {
    /// Adds a segment; its number has to be greater than all others.
    pub(crate) fn add(&mut self, segment: Segment) {
        if self.slots.is_empty() {
            self.base = segment.number;
        }
        let at = segment.number.saturating_sub(self.base) as usize;
        debug_assert!(at >= self.slots.len(), "segments are added in order");
        self.live += u64::from(segment.live);
        self.slots.resize_with(at, || None);
        self.slots.push_back(Some(segment));
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Segment> {
        self.slots.get(number.checked_sub(self.base)? as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Segment> {
        self.slots.get_mut(number.checked_sub(self.base)? as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.slots.iter().flatten()
    }

    /// Returns reports of the segments behind a number, at most so many.
    pub(crate) fn reports(&self, after: u32, max: usize) -> Vec<SegmentReport> {
        let behind = self.iter().filter(|segment| segment.number > after);
        behind.take(max).map(SegmentReport::from).collect()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.slots.iter_mut().flatten()
    }

    /// Takes a segment out of the log.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Segment> {
        let at = number.checked_sub(self.base)? as usize;
        let segment = self.slots.get_mut(at)?.take()?;
        while self.slots.len() > 1 && matches!(self.slots.front(), Some(None)) {
            self.slots.pop_front();
            self.base += 1;
        }
        self.live -= u64::from(segment.live);
        Some(segment)
    }

    /// Counts the pairs of a record.
    pub(crate) fn add_live(&mut self, number: u32, pairs: u32) {
        self.live += u64::from(pairs);
        if let Some(segment) = self.get_mut(number) {
            segment.live += pairs;
            segment.pairs = segment.pairs.saturating_add(pairs);
        }
    }

    /// Pairs that ended.
    pub(crate) fn release(&mut self, location: Location, pairs: u32) {
        let Some(segment) = self.get_mut(location.segment) else {
            debug_assert!(false, "released an entry of segment {} twice", location.segment);
            return;
        };
        debug_assert!(segment.live >= pairs, "released an entry twice");
        let pairs = segment.live.min(pairs);
        segment.live -= pairs;
        let empty = segment.live == 0;
        self.live -= u64::from(pairs);
        self.changed |= empty;
    }

    pub(crate) fn pin(&mut self, number: u32) {
        if let Some(segment) = self.get_mut(number) {
            segment.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, number: u32) {
        if let Some(segment) = self.get_mut(number) {
            segment.pins -= 1;
            self.changed = true;
        }
    }

    /// Returns the number of live pairs of all segments.
    pub(crate) const fn live(&self) -> u64 {
        self.live
    }

    /// Returns the number of segments.
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_every_flipped_bit_of_it_is_seen() {
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            segment: 7,
            log_id: 0x1234_5678_9abc_def0,
            commit: 99,
            next_seq: 1_000,
            next_queue: 3,
            bytes: 65_536,
            salt: 5,
            is_renamed: true,
        };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), HeaderState::Header(header));
        for bit in 0..HEADER_FIELDS_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(SegmentHeader::decode(&bytes), HeaderState::Header(_)), "bit {bit}");
        }
    }

    #[test]
    fn a_missing_header_is_not_taken_for_a_damaged_one() {
        assert_eq!(SegmentHeader::decode(&[0; 512]), HeaderState::Missing);
        assert_eq!(SegmentHeader::decode(&[]), HeaderState::Missing);
        assert_eq!(SegmentHeader::decode(&[1; 63]), HeaderState::Missing);
        assert!(matches!(SegmentHeader::decode(&[1; 512]), HeaderState::Damaged(_)));
    }

    #[test]
    fn a_note_of_a_former_life_is_none() {
        let mut sector = [0; SEGMENT_HEADER_BYTES as usize];
        let seed = Seed::new(7, 3);
        assert_eq!(SyncedNote::decode(&sector, seed), None);
        let at = HEADER_FIELDS_BYTES;
        sector[at..at + SyncedNote::BYTES].copy_from_slice(&SyncedNote::new(41, seed).0);
        assert_eq!(SyncedNote::decode(&sector, seed), Some(41));
        assert_eq!(SyncedNote::decode(&sector, Seed::new(7, 4)), None);
        assert_eq!(SyncedNote::decode(&sector[..70], seed), None);
    }

    #[test]
    fn a_file_name_gives_its_number_back() {
        assert_eq!(SegmentFile::slot_of(&SegmentFile::name_of(12)), Some(12));
        assert_eq!(SegmentFile::slot_of(&SegmentFile::name_of(123_456_789)), Some(123_456_789));
        for name in [
            "segment-00000012.tmp",
            "segment-12",
            "segment-",
            "segment-0000001x",
            "checkpoint-00000001",
        ] {
            assert_eq!(SegmentFile::slot_of(name), None, "{name}");
        }
    }

    #[test]
    fn segments_are_found_by_number_while_others_go() {
        let mut segments = Segments::default();
        for number in [3, 4, 6] {
            segments.add(Segment::new(number, 4096, Seed::new(1, number)));
        }
        segments.add_live(4, 2);
        assert!(segments.get(5).is_none() && segments.get(2).is_none());
        segments.remove(3);
        segments.remove(4);
        assert_eq!(segments.iter().map(|s| s.number).collect::<Vec<_>>(), [6]);
        segments.remove(6);
        segments.add(Segment::new(9, 4096, Seed::new(1, 9)));
        assert_eq!(segments.get(9).map(|s| s.number), Some(9));
    }
}
