//! What is to be written to a peer: small pieces are gathered, large ones stay where they are.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf as _, Bytes, BytesMut};

/// Below this, copying costs less than another slice in a vectored write.
const COPY_BYTES_MAX: usize = 512;
/// Gathered small pieces that make a chunk of their own.
const CHUNK_BYTES: usize = 16 << 10;
/// Slices of one write.
const SLICES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    chunks: VecDeque<Bytes>,
    /// Small pieces behind the last chunk.
    gathered: BytesMut,
    bytes: usize,
}

impl Outbox {
    /// Returns how many bytes wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        if piece.len() < COPY_BYTES_MAX {
            self.gathered.extend_from_slice(&piece);
            if self.gathered.len() >= CHUNK_BYTES {
                self.close_chunk();
            }
        } else {
            self.close_chunk();
            self.chunks.push_back(piece);
        }
    }

    /// Returns slices of what comes next, and how many they are.
    pub(crate) fn slices(&mut self) -> ([IoSlice<'_>; SLICES_MAX], usize) {
        if self.chunks.len() < SLICES_MAX {
            self.close_chunk();
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slice = IoSlice::new(chunk);
            count += 1;
        }
        (slices, count)
    }

    /// So many bytes of the slices were written.
    pub(crate) fn written(&mut self, mut bytes: usize) {
        self.bytes -= bytes;
        while let Some(chunk) = self.chunks.front_mut() {
            let part = bytes.min(chunk.len());
            chunk.advance(part);
            bytes -= part;
            if !chunk.is_empty() {
                return;
            }
            self.chunks.pop_front();
        }
    }

    fn close_chunk(&mut self) {
        if !self.gathered.is_empty() {
            self.chunks.push_back(self.gathered.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_their_order_however_they_are_written() {
        for step in [1, 7, 600, 5_000, 1 << 20] {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for number in 0..200_usize {
                let piece = Bytes::from(vec![number as u8; number * 37 % 1_500]);
                expected.extend_from_slice(&piece);
                outbox.push(piece);
            }
            assert_eq!(outbox.bytes(), expected.len());
            let mut written = Vec::new();
            while outbox.bytes() > 0 {
                let (slices, count) = outbox.slices();
                let before = written.len();
                for slice in &slices[..count] {
                    let left = step - (written.len() - before);
                    written.extend_from_slice(&slice[..slice.len().min(left)]);
                }
                let taken = written.len() - before;
                assert!(taken > 0);
                outbox.written(taken);
            }
            assert!(written == expected, "{step}");
        }
    }
}
