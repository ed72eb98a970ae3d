//! The checkpoint's file: docs/formats/log.md, "Checkpoint". Written in chunks under a temporary
//! name, synced, renamed.

use std::io::{self, IoSlice};
use std::sync::Arc;

use quelea_model::{QueueId, Seq, Timestamp};

use crate::chunk::CHUNK_ENTRIES;
use crate::disk::{rename_to_final, temporary_name, write_all_at};
use crate::record::{u32_at, u64_at};
use crate::segment::Segment;
use crate::{Disk, DiskFile, Entry, EntryFlags, Location, NEVER, PagedRange};

/// The file's header.
pub(crate) const CHECKPOINT_HEADER_BYTES: usize = 64;
/// A block's header: checksum, length, kind, count.
pub(crate) const BLOCK_HEADER_BYTES: usize = 16;
/// No block is longer: what claims to be is damage.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 1024 * 1024;
const MAGIC: [u8; 8] = *b"QUELEACP";
/// Format of the file.
pub(crate) const FORMAT_VERSION: u16 = 1;

const BLOCK_TOPOLOGY: u32 = 1;
const BLOCK_ENTRIES: u32 = 2;
const BLOCK_PAGED_RANGE: u32 = 3;
const BLOCK_SEGMENTS: u32 = 4;
const BLOCK_END: u32 = 5;

const ENTRIES_EXPIRIES: u8 = 1;
const ENTRIES_RUN: u8 = 2;

const ENTRY_BYTES: usize = 24;
const PAGED_RANGE_BYTES: usize = 72;
const SEGMENT_BYTES: usize = 16;

/// The start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointHeader {
    pub(crate) log_id: u64,
    pub(crate) number: u64,
    /// Where the replay starts.
    pub(crate) position: Location,
    /// Number of the last commit before it.
    pub(crate) commit: u64,
    pub(crate) next_seq: u64,
    pub(crate) next_queue: u32,
}

/// A segment that the checkpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeededSegment {
    pub(crate) number: u32,
    pub(crate) end: u32,
    pub(crate) pairs: u32,
}

/// A block of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Block<'a> {
    Topology(TopologyItems<'a>),
    Entries(EntriesBlock<'a>),
    PagedRange(QueueId, PagedRange),
    Segments(&'a [u8]),
    /// The last one: the log was on the disk up to here when the checkpoint was made.
    End {
        entries: u64,
        synced: Location,
    },
}

/// Entries of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntriesBlock<'a> {
    pub(crate) queue: QueueId,
    /// They are all messages that the queue got between the first and the last of them.
    pub(crate) is_run: bool,
    entries: &'a [u8],
    expiries: &'a [u8],
}

/// Keys and values, each with its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopologyItems<'a>(&'a [u8]);

impl CheckpointHeader {
    pub(crate) fn encode(&self) -> [u8; CHECKPOINT_HEADER_BYTES] {
        let mut bytes = [0; CHECKPOINT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.next_queue.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.position.segment.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.position.offset.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.commit.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.next_seq.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a checkpoint's header. The error is the version if it is not ours, else what is
    /// wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.len() < CHECKPOINT_HEADER_BYTES || bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged("this is not the header of a checkpoint"));
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != FORMAT_VERSION {
            return Err(HeaderError::Version(version));
        }
        if crc32c::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeaderError::Damaged("the checksum of the checkpoint's header is wrong"));
        }
        Ok(Self {
            log_id: u64_at(bytes, 16),
            number: u64_at(bytes, 24),
            position: Location { segment: u32_at(bytes, 32), offset: u32_at(bytes, 36) },
            commit: u64_at(bytes, 40),
            next_seq: u64_at(bytes, 48),
            next_queue: u32_at(bytes, 12),
        })
    }

    /// Returns what the checksums of its blocks start from.
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c_append(
            crc32c::crc32c(&self.log_id.to_le_bytes()),
            &self.number.to_le_bytes(),
        )
    }
}

/// Why a header is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Version(u16),
    Damaged(&'static str),
}

/// Returns the name of a checkpoint.
pub(crate) fn checkpoint_name(number: u64) -> String {
    format!("checkpoint-{number:010}")
}

/// Returns the number in a checkpoint's name.
pub(crate) fn checkpoint_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("checkpoint-")?.parse().ok()?;
    (checkpoint_name(number) == name).then_some(number)
}

/// Appends a block; `content` writes what follows its header and returns the count for it.
fn put_block(out: &mut Vec<u8>, seed: u32, kind: u32, content: impl FnOnce(&mut Vec<u8>) -> u32) {
    let at = out.len();
    out.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
    let count = content(out);
    let len = (out.len() - at) as u32;
    out[at + 4..at + 8].copy_from_slice(&len.to_le_bytes());
    out[at + 8..at + 12].copy_from_slice(&kind.to_le_bytes());
    out[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
    let checksum = crc32c::crc32c_append(seed, &out[at + 4..]);
    out[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

pub(crate) fn put_topology<'a>(
    out: &mut Vec<u8>,
    seed: u32,
    items: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    put_block(out, seed, BLOCK_TOPOLOGY, |out| {
        let mut count = 0;
        for (key, value) in items {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            count += 1;
        }
        count
    });
}

/// Returns whether an entry outlives the process.
pub(crate) const fn is_kept(entry: &Entry) -> bool {
    entry.is_durable() && entry.is_stored()
}

/// Appends those of these entries that are kept.
pub(crate) fn put_entries(
    out: &mut Vec<u8>,
    seed: u32,
    queue: QueueId,
    entries: &[Entry],
    expiries: &[Timestamp],
    is_run: bool,
) {
    put_block(out, seed, BLOCK_ENTRIES, |out| {
        let has_expiries = expiries.iter().any(|expiry| *expiry != NEVER);
        let flags = if has_expiries { ENTRIES_EXPIRIES } else { 0 };
        out.extend_from_slice(&queue.0.to_le_bytes());
        out.extend_from_slice(&[flags | if is_run { ENTRIES_RUN } else { 0 }, 0, 0, 0]);
        let mut count = 0;
        for entry in entries.iter().filter(|entry| is_kept(entry)) {
            out.extend_from_slice(&encode_entry(entry));
            count += 1;
        }
        if has_expiries {
            for (entry, expiry) in entries.iter().zip(expiries) {
                if is_kept(entry) {
                    out.extend_from_slice(&expiry.as_millis().to_le_bytes());
                }
            }
        }
        count
    });
}

fn encode_entry(entry: &Entry) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&entry.seq.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&entry.location.segment.to_le_bytes());
    bytes[12..16].copy_from_slice(&entry.location.offset.to_le_bytes());
    bytes[16..20].copy_from_slice(&entry.body_bytes.to_le_bytes());
    bytes[20..22].copy_from_slice(&entry.delivery_count.to_le_bytes());
    bytes[22] = entry.priority;
    bytes[23] = entry.flags.bits();
    bytes
}

fn decode_entry(bytes: &[u8]) -> Entry {
    Entry {
        seq: Seq(u64_at(bytes, 0)),
        location: Location { segment: u32_at(bytes, 8), offset: u32_at(bytes, 12) },
        body_bytes: u32_at(bytes, 16),
        delivery_count: u16::from_le_bytes([bytes[20], bytes[21]]),
        priority: bytes[22],
        flags: EntryFlags::from_bits(bytes[23]),
    }
}

pub(crate) fn put_paged_range(out: &mut Vec<u8>, seed: u32, queue: QueueId, range: &PagedRange) {
    put_block(out, seed, BLOCK_PAGED_RANGE, |out| {
        out.extend_from_slice(&queue.0.to_le_bytes());
        out.extend_from_slice(&[range.priority_min, range.priority_max, 0, 0]);
        for number in [range.first.0, range.last.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [range.segment, range.first_offset, range.last_offset, range.count] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let expiry = range.earliest_expiry.as_millis();
        for number in [range.body_bytes, expiry, range.check] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Room for facts of later versions.
        out.extend_from_slice(&[0; 8]);
        1
    });
}

fn decode_paged_range(bytes: &[u8]) -> Result<Block<'_>, &'static str> {
    let range = PagedRange {
        first: Seq(u64_at(bytes, 8)),
        last: Seq(u64_at(bytes, 16)),
        segment: u32_at(bytes, 24),
        first_offset: u32_at(bytes, 28),
        last_offset: u32_at(bytes, 32),
        count: u32_at(bytes, 36),
        body_bytes: u64_at(bytes, 40),
        earliest_expiry: Timestamp::from_millis(u64_at(bytes, 48)),
        priority_min: bytes[4],
        priority_max: bytes[5],
        durable: true,
        check: u64_at(bytes, 56),
    };
    let sound = range.first <= range.last
        && range.first_offset <= range.last_offset
        && range.count > 0
        && range.priority_min <= range.priority_max
        && range.body_bytes <= u64::from(u32::MAX) * u64::from(range.count);
    if !sound {
        return Err("a range contradicts itself");
    }
    Ok(Block::PagedRange(QueueId(u32_at(bytes, 0)), range))
}

pub(crate) fn put_segments<'a>(
    out: &mut Vec<u8>,
    seed: u32,
    segments: impl Iterator<Item = &'a Segment>,
) {
    put_block(out, seed, BLOCK_SEGMENTS, |out| {
        let mut count = 0;
        for segment in segments {
            for number in [segment.number, segment.end, segment.pairs, 0] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            count += 1;
        }
        count
    });
}

pub(crate) fn put_end(out: &mut Vec<u8>, seed: u32, entries: u64, synced: Location) {
    put_block(out, seed, BLOCK_END, |out| {
        out.extend_from_slice(&entries.to_le_bytes());
        out.extend_from_slice(&synced.segment.to_le_bytes());
        out.extend_from_slice(&synced.offset.to_le_bytes());
        0
    });
}

/// Returns the length that a block's header claims, if that can be.
pub(crate) fn block_len(header: &[u8]) -> Option<usize> {
    let len = u32_at(header, 4) as usize;
    (BLOCK_HEADER_BYTES..=BLOCK_BYTES_MAX).contains(&len).then_some(len)
}

/// Decodes a whole block; the error says what is wrong with it.
pub(crate) fn decode_block(bytes: &[u8], seed: u32) -> Result<Block<'_>, &'static str> {
    if crc32c::crc32c_append(seed, &bytes[4..]) != u32_at(bytes, 0) {
        return Err("the checksum of a block is wrong");
    }
    let (kind, count) = (u32_at(bytes, 8), u32_at(bytes, 12) as usize);
    let content = &bytes[BLOCK_HEADER_BYTES..];
    Ok(match kind {
        BLOCK_TOPOLOGY => Block::Topology(TopologyItems::checked(content, count)?),
        BLOCK_ENTRIES => Block::Entries(EntriesBlock::checked(content, count)?),
        BLOCK_PAGED_RANGE if content.len() >= PAGED_RANGE_BYTES => decode_paged_range(content)?,
        BLOCK_SEGMENTS if content.len() == count.saturating_mul(SEGMENT_BYTES) => {
            Block::Segments(content)
        }
        BLOCK_END if content.len() >= 16 => Block::End {
            entries: u64_at(content, 0),
            synced: Location { segment: u32_at(content, 8), offset: u32_at(content, 12) },
        },
        BLOCK_PAGED_RANGE | BLOCK_SEGMENTS | BLOCK_END => return Err("a block's length is wrong"),
        _ => return Err("no such kind of block"),
    })
}

/// Returns the segments that their block lists.
pub(crate) fn needed_segments(bytes: &[u8]) -> impl Iterator<Item = NeededSegment> {
    bytes.chunks_exact(SEGMENT_BYTES).map(|segment| NeededSegment {
        number: u32_at(segment, 0),
        end: u32_at(segment, 4),
        pairs: u32_at(segment, 8),
    })
}

impl<'a> EntriesBlock<'a> {
    fn checked(content: &'a [u8], count: usize) -> Result<Self, &'static str> {
        const BAD: &str = "a block of entries has the wrong length";
        let (fixed, rest) = content.split_at_checked(8).ok_or(BAD)?;
        let entries_len = count.checked_mul(ENTRY_BYTES).ok_or(BAD)?;
        let (entries, expiries) = rest.split_at_checked(entries_len).ok_or(BAD)?;
        if expiries.len() != if fixed[4] & ENTRIES_EXPIRIES == 0 { 0 } else { 8 * count } {
            return Err(BAD);
        }
        let is_run = fixed[4] & ENTRIES_RUN != 0;
        let block = Self { queue: QueueId(u32_at(fixed, 0)), is_run, entries, expiries };
        let is_sorted = block.iter().map(|(entry, _)| entry.seq).is_sorted_by(|a, b| a < b);
        if is_run && (count == 0 || count > CHUNK_ENTRIES || !is_sorted) {
            return Err("a run of entries contradicts itself");
        }
        Ok(block)
    }

    /// Returns the entries with their expiry or [`NEVER`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Entry, Timestamp)> + 'a {
        let expiries = self.expiries;
        self.entries.chunks_exact(ENTRY_BYTES).enumerate().map(move |(at, entry)| {
            let expiry = if expiries.is_empty() {
                NEVER
            } else {
                Timestamp::from_millis(u64_at(expiries, 8 * at))
            };
            (decode_entry(entry), expiry)
        })
    }
}

impl<'a> TopologyItems<'a> {
    fn checked(content: &'a [u8], count: usize) -> Result<Self, &'static str> {
        let items = Self(content);
        let mut bytes = 0;
        let mut found = 0;
        for (key, value) in items.iter() {
            bytes += 8 + key.len() + value.len();
            found += 1;
        }
        if found == count && bytes == content.len() {
            Ok(items)
        } else {
            Err("a block of topology has the wrong length")
        }
    }

    /// Returns the keys and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (lengths, after) = rest.split_at_checked(8)?;
            let (key, after) = after.split_at_checked(u32_at(lengths, 0) as usize)?;
            let (value, after) = after.split_at_checked(u32_at(lengths, 4) as usize)?;
            rest = after;
            Some((key, value))
        })
    }
}

/// A job about the checkpoint's file.
pub(crate) enum CheckpointWrite {
    /// Appends a chunk; creates the file for the first.
    Append { number: u64, file: Option<Arc<dyn DiskFile>>, offset: u64, bytes: Vec<u8>, sync: bool },
    /// Makes the file the newest checkpoint and removes those that it replaces.
    Finish { number: u64, file: Arc<dyn DiskFile>, replaced: Vec<String> },
    /// Removes what was begun.
    Abandon { number: u64 },
}

/// How it went.
pub(crate) enum CheckpointWritten {
    Appended { file: Arc<dyn DiskFile>, bytes: u64 },
    Finished,
    Abandoned,
    Failed { error: io::Error },
}

impl std::fmt::Debug for CheckpointWritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Appended { bytes, .. } => write!(f, "Appended({bytes})"),
            Self::Finished => write!(f, "Finished"),
            Self::Abandoned => write!(f, "Abandoned"),
            Self::Failed { error } => write!(f, "Failed({error})"),
        }
    }
}

impl CheckpointWrite {
    pub(crate) fn run(self, disk: &dyn Disk) -> CheckpointWritten {
        let result = match self {
            Self::Append { number, file, offset, bytes, sync } => {
                append(disk, number, file, offset, &bytes, sync)
                    .map(|file| CheckpointWritten::Appended { file, bytes: bytes.len() as u64 })
            }
            Self::Finish { number, file, replaced } => {
                finish(disk, number, &*file, &replaced).map(|()| CheckpointWritten::Finished)
            }
            Self::Abandon { number } => {
                // One that stays is removed by the next opening.
                let _ = disk.remove(&temporary_name(&checkpoint_name(number)));
                Ok(CheckpointWritten::Abandoned)
            }
        };
        result.unwrap_or_else(|error| CheckpointWritten::Failed { error })
    }
}

fn append(
    disk: &dyn Disk,
    number: u64,
    file: Option<Arc<dyn DiskFile>>,
    offset: u64,
    bytes: &[u8],
    sync: bool,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = match file {
        Some(file) => file,
        None => disk.create(&temporary_name(&checkpoint_name(number)))?,
    };
    write_all_at(&*file, offset, vec![IoSlice::new(bytes)])?;
    if sync {
        file.sync_data()?;
    }
    Ok(file)
}

fn finish(
    disk: &dyn Disk,
    number: u64,
    file: &dyn DiskFile,
    replaced: &[String],
) -> io::Result<()> {
    file.sync_data()?;
    rename_to_final(disk, &checkpoint_name(number))?;
    for name in replaced {
        // One that stays is removed by the next opening.
        let _ = disk.remove(name);
    }
    Ok(())
}
