//! What one write job writes: records back to back, in one or more segments.

use std::io::IoSlice;

use bytes::Bytes;

use crate::Location;
use crate::record::{self, Parsed, RecordError, Seed};
use crate::segment::{SEGMENT_HEADER_BYTES, SyncedNote};

/// Bodies from this size on are written from where they are instead of being copied.
pub(crate) const SHARED_BODY_BYTES_MIN: usize = 16 * 1024;

/// Everything that was appended between two seals.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Its number, for tickets.
    pub(crate) number: u64,
    /// One per segment, in order; not empty.
    pub(crate) parts: Vec<Part>,
    /// Bytes of all parts.
    pub(crate) bytes: usize,
    /// Number of its last commit.
    pub(crate) commit: u64,
}

/// The part of a batch that goes into one segment.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) segment: u32,
    /// Offset of its first record.
    pub(crate) start: u32,
    /// The segment's header, if the part is the first in its segment.
    pub(crate) header: Option<Box<[u8; SEGMENT_HEADER_BYTES as usize]>>,
    /// What its segment is to note.
    pub(crate) note: Option<SyncedNote>,
    /// All but the large bodies.
    pub(crate) bytes: Vec<u8>,
    /// Large bodies, each with the length of `bytes` in front of it.
    shared: Vec<(usize, Bytes)>,
    shared_bytes: usize,
}

impl Batch {
    /// Returns the part that holds a location.
    pub(crate) fn part_of(&self, location: Location) -> Option<&Part> {
        self.parts.iter().find(|part| part.holds(location))
    }
}

impl Part {
    pub(crate) const fn new(
        segment: u32,
        start: u32,
        header: Option<Box<[u8; SEGMENT_HEADER_BYTES as usize]>>,
        bytes: Vec<u8>,
    ) -> Self {
        Self { segment, start, header, note: None, bytes, shared: Vec::new(), shared_bytes: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    /// Returns where the file is to be written.
    pub(crate) fn file_offset(&self) -> u64 {
        if self.header.is_some() { 0 } else { u64::from(self.start) }
    }

    /// Adds a large body behind what is there.
    pub(crate) fn share(&mut self, body: Bytes) {
        self.shared_bytes += body.len();
        self.shared.push((self.bytes.len(), body));
    }

    /// Returns everything to be written from [`Part::file_offset`] on.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(2 * self.shared.len() + 2);
        if let Some(header) = &self.header {
            slices.push(IoSlice::new(&header[..]));
        }
        let mut from = 0;
        for (at, body) in &self.shared {
            slices.push(IoSlice::new(&self.bytes[from..*at]));
            slices.push(IoSlice::new(body));
            from = *at;
        }
        slices.push(IoSlice::new(&self.bytes[from..]));
        slices
    }

    pub(crate) fn holds(&self, location: Location) -> bool {
        location.segment == self.segment
            && location.offset >= self.start
            && ((location.offset - self.start) as usize) < self.len()
    }

    /// Reads the record at an offset that the part holds and passes it to `f`.
    pub(crate) fn with_record<R>(
        &self,
        offset: u32,
        seed: Seed,
        f: impl FnOnce(Parsed<'_>) -> R,
    ) -> Result<R, RecordError> {
        let from = (offset - self.start) as usize;
        let len = record::record_len(&self.copy(from, record::RECORD_BYTES_MIN))?;
        let bytes = self.copy(from, len);
        record::parse(&bytes, seed).map(f)
    }

    /// Returns up to `len` bytes from a place in the part.
    fn copy(&self, from: usize, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len);
        let mut at = 0;
        let mut add = |piece: &[u8]| {
            let skip = from.saturating_sub(at).min(piece.len());
            let take = (len - out.len()).min(piece.len() - skip);
            out.extend_from_slice(&piece[skip..skip + take]);
            at += piece.len();
        };
        let mut before = 0;
        for (after, body) in &self.shared {
            add(&self.bytes[before..*after]);
            add(body);
            before = *after;
        }
        add(&self.bytes[before..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_reads_across_shared_bodies() {
        let mut part = Part::new(1, 512, None, b"abc".to_vec());
        part.share(Bytes::from_static(b"DEF"));
        part.bytes.extend_from_slice(b"ghi");
        part.share(Bytes::from_static(b"J"));
        assert_eq!(part.copy(0, 100), b"abcDEFghiJ");
        assert_eq!(part.copy(2, 5), b"cDEFg");
        assert_eq!(part.copy(4, 2), b"EF");
        assert_eq!(part.copy(9, 2), b"J");
        let written: Vec<u8> = part.slices().iter().flat_map(|s| s.to_vec()).collect();
        assert_eq!(written, b"abcDEFghiJ");
        assert!(part.holds(Location { segment: 1, offset: 521 }));
        assert!(!part.holds(Location { segment: 1, offset: 522 }));
    }
}
