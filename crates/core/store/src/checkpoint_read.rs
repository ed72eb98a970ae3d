//! Reads a checkpoint.

use crate::checkpoint_file::{
    self as file, BLOCK_HEADER_BYTES, Block, CHECKPOINT_HEADER_BYTES, CheckpointHeader,
    FORMAT_VERSION, HeaderError, NeededSegment,
};
use crate::disk::read_all_at;
use crate::replay::Replay;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::{Disk, DiskFile, Location, OpenError};

/// Bytes of one read.
const READ_BYTES: usize = 1024 * 1024;

/// What a replay starts from.
#[derive(Debug)]
pub(crate) struct Base {
    /// 0 without a checkpoint.
    pub(crate) number: u64,
    pub(crate) name: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) log_id: Option<u64>,
    pub(crate) position: Location,
    pub(crate) commit: u64,
    /// Greater than every message number used before.
    pub(crate) next_seq: u64,
    pub(crate) needed: Vec<NeededSegment>,
    /// The log was on the disk up to here.
    pub(crate) synced: Location,
}

impl Default for Base {
    /// Returns the beginning of the log.
    fn default() -> Self {
        Self {
            number: 0,
            name: None,
            bytes: 0,
            log_id: None,
            position: Location { segment: 1, offset: SEGMENT_HEADER_BYTES },
            commit: 0,
            next_seq: 1,
            needed: Vec::new(),
            synced: Location::NOWHERE,
        }
    }
}

/// Reads the checkpoint of a number into the replay. It was synced before it got its name, so
/// whatever is wrong with it is damage.
pub(crate) fn read_checkpoint(
    disk: &dyn Disk,
    number: u64,
    replay: &mut Replay,
) -> Result<Base, OpenError> {
    let name = file::checkpoint_name(number);
    let io = |source| OpenError::Io { action: "read", file: name.clone(), source };
    let damaged = |offset: u64, problem: &str| OpenError::Damaged {
        file: name.clone(),
        offset,
        problem: problem.to_owned(),
    };
    let file = disk.open(&name).map_err(io)?;
    file.will_need(0, u64::MAX >> 1);
    let mut blocks = Blocks { file: &*file, buffer: Vec::new(), start: 0, at: 0 };
    let header = blocks.take(CHECKPOINT_HEADER_BYTES).map_err(io)?.unwrap_or_default();
    let header = match CheckpointHeader::decode(header) {
        Ok(header) if header.number == number => header,
        Ok(_) => return Err(damaged(24, "the number is not that of the file's name")),
        Err(HeaderError::Damaged(problem)) => return Err(damaged(0, problem)),
        Err(HeaderError::Version(version)) => {
            return Err(OpenError::Version { file: name, version, known: FORMAT_VERSION });
        }
    };
    replay.next_seq = replay.next_seq.max(header.next_seq);
    replay.next_queue = replay.next_queue.max(header.next_queue);
    let mut base = Base {
        number,
        name: Some(name.clone()),
        log_id: Some(header.log_id),
        position: header.position,
        commit: header.commit,
        next_seq: header.next_seq,
        ..Base::default()
    };
    let mut found = 0;
    loop {
        let offset = blocks.offset();
        let block = match blocks.next_block().map_err(io)? {
            Some(bytes) => file::decode_block(bytes, header.seed()),
            None => return Err(damaged(offset, "the checkpoint is cut off")),
        };
        match block.map_err(|problem| damaged(offset, problem))? {
            Block::Topology(items) => replay
                .topology
                .extend(items.iter().map(|(key, value)| (key.to_vec(), value.to_vec()))),
            Block::Entries(entries) => {
                found += replay.put_entries(&entries)?;
            }
            Block::PagedRange(queue, range) => {
                replay.put_paged_range(queue, &range)?;
                found += u64::from(range.count);
            }
            Block::Segments(segments) => base.needed.extend(file::needed_segments(segments)),
            Block::End { entries, .. } if entries != found => {
                return Err(damaged(offset, "the number of entries is wrong"));
            }
            Block::End { synced, .. } => {
                base.synced = synced;
                base.bytes = blocks.offset();
                return Ok(base);
            }
        }
    }
}

/// Reads a checkpoint's file from its beginning to its end.
struct Blocks<'a> {
    file: &'a dyn DiskFile,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's first byte.
    start: u64,
    /// Bytes of the buffer that were taken.
    at: usize,
}

impl Blocks<'_> {
    fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Returns the next block; `None` if the file ends or the length makes no sense.
    fn next_block(&mut self) -> std::io::Result<Option<&[u8]>> {
        let Some(header) = self.peek(BLOCK_HEADER_BYTES)? else {
            return Ok(None);
        };
        match file::block_len(header) {
            Some(len) => self.take(len),
            None => Ok(None),
        }
    }

    fn take(&mut self, len: usize) -> std::io::Result<Option<&[u8]>> {
        if self.peek(len)?.is_none() {
            return Ok(None);
        }
        let at = self.at;
        self.at += len;
        Ok(self.buffer.get(at..at + len))
    }

    fn peek(&mut self, len: usize) -> std::io::Result<Option<&[u8]>> {
        if self.buffer.len() - self.at < len {
            let rest = &self.buffer[self.at..];
            let have = rest.len();
            let mut buffer = vec![0; have + len.max(READ_BYTES)];
            buffer[..have].copy_from_slice(rest);
            self.start += self.at as u64;
            self.at = 0;
            let read = read_all_at(self.file, self.start + have as u64, &mut buffer[have..])?;
            buffer.truncate(have + read);
            self.buffer = buffer;
        }
        Ok(self.buffer.get(self.at..self.at + len))
    }
}
