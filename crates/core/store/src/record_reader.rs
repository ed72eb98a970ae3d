//! A piece of a segment's file in memory, from which records are read.

use std::sync::Arc;

use crate::DiskFile;
use crate::disk::read_all_at;
use crate::record::{self, Parsed, RECORD_BYTES_MIN, RecordError, Seed};

/// Reads records of one segment at any offset, many with one read.
pub(crate) struct RecordReader {
    file: Arc<dyn DiskFile>,
    seed: Seed,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's first byte.
    start: u64,
    /// Bytes of the buffer that were read.
    filled: usize,
    /// Bytes read from the file.
    pub(crate) bytes_read: u64,
}

/// Why there is no record at an offset.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record lies there, but not the one that should.
    #[error("{0}")]
    Other(String),
}

impl RecordReader {
    pub(crate) const fn new(file: Arc<dyn DiskFile>, seed: Seed) -> Self {
        Self { file, seed, buffer: Vec::new(), start: 0, filled: 0, bytes_read: 0 }
    }

    /// Goes on with another segment.
    pub(crate) fn switch_to(&mut self, file: Arc<dyn DiskFile>, seed: Seed) {
        self.file = file;
        self.seed = seed;
        self.filled = 0;
    }

    /// Returns the record at an offset. If it has to read, it reads up to `ahead()` bytes from
    /// there on; that is asked only then, since it may take a look at everything that follows.
    pub(crate) fn record(
        &mut self,
        offset: u32,
        ahead: impl Fn() -> usize,
    ) -> Result<Parsed<'_>, ReadError> {
        let offset = u64::from(offset);
        let mut have = self.have(offset);
        if have < RECORD_BYTES_MIN {
            have = self.read(offset, ahead().max(RECORD_BYTES_MIN))?;
        }
        let from = (offset - self.start) as usize;
        let len = record::record_len(&self.buffer[from..from + have])?;
        if have < len && self.read(offset, ahead().max(len))? < len {
            return Err(RecordError::Truncated { needed: len }.into());
        }
        let from = (offset - self.start) as usize;
        Ok(record::parse(&self.buffer[from..from + len], self.seed)?)
    }

    /// Returns the length that a record claims whose checksum may be wrong, if one lies there.
    pub(crate) fn claimed_len(&mut self, offset: u32) -> Option<usize> {
        let read = self.read(u64::from(offset), RECORD_BYTES_MIN).ok()?;
        record::record_len(&self.buffer[..read]).ok()
    }

    /// Returns how many bytes are in the buffer from an offset on.
    fn have(&self, offset: u64) -> usize {
        match offset.checked_sub(self.start) {
            Some(from) => self.filled.saturating_sub(from as usize),
            None => 0,
        }
    }

    fn read(&mut self, offset: u64, len: usize) -> Result<usize, std::io::Error> {
        if self.buffer.len() < len {
            self.buffer = vec![0; len];
        }
        self.filled = 0;
        self.start = offset;
        self.filled = read_all_at(&*self.file, offset, &mut self.buffer[..len])?;
        self.bytes_read += self.filled as u64;
        Ok(self.filled)
    }
}
