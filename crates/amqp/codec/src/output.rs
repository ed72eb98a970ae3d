//! Bytes that wait to be written.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Bodies of at least this many bytes are shared instead of copied: a reference count and an entry
/// in a vectored write cost about what copying this much does.
pub(crate) const SHARED_BYTES_MIN: usize = 8 * 1024;

/// Sizes of the buffers that small things are gathered in: doubled while one after the other fills
/// up, so that an idle connection needs little and a busy one few.
const BUFFER_BYTES_MIN: usize = 1024;
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// What is to be written: small things gathered in buffers, large bodies shared. Holds no memory
/// when it is empty. It is as long as its owner lets it grow; `len` is for that.
#[derive(Debug)]
pub struct Output {
    /// Full, in order, none empty.
    chunks: VecDeque<Bytes>,
    /// Behind the chunks, still growing.
    tail: BytesMut,
    /// Bytes in `chunks`.
    chunk_bytes: usize,
    /// The next buffer's size.
    buffer_bytes: usize,
    /// Bytes that have gone since the beginning.
    written: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// Returns an empty output.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            tail: BytesMut::new(),
            chunk_bytes: 0,
            buffer_bytes: BUFFER_BYTES_MIN,
            written: 0,
        }
    }

    /// Returns how many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunk_bytes + self.tail.len()
    }

    /// Returns whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes were written since the beginning.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Sets `slices` to the first bytes that wait; returns how many slices were set.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = self.chunks.iter().map(|chunk| &chunk[..]);
        let tail = Some(&self.tail[..]).filter(|tail| !tail.is_empty());
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(parts.chain(tail)) {
            *slice = IoSlice::new(part);
            count += 1;
        }
        count
    }

    /// Forgets the first `written` bytes.
    ///
    /// # Panics
    /// If fewer wait.
    pub fn advance(&mut self, mut written: usize) {
        assert!(written <= self.len(), "no more can be written than waits");
        self.written += written as u64;
        while let Some(first) = self.chunks.front_mut() {
            if written < first.len() {
                first.advance(written);
                self.chunk_bytes -= written;
                return;
            }
            written -= first.len();
            self.chunk_bytes -= first.len();
            self.chunks.pop_front();
        }
        self.tail.advance(written);
        if self.tail.is_empty() {
            self.release();
        }
    }

    /// Appends a copy.
    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.buffer(bytes.len()).extend_from_slice(bytes);
    }

    /// Appends bytes: shares them if they are many, copies them otherwise.
    pub fn put_shared(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            self.put_slice(&bytes);
            return;
        }
        self.seal();
        self.chunk_bytes += bytes.len();
        self.chunks.push_back(bytes);
    }

    /// Returns all that waits, joined; for tests and for clients that have no vectored writes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.len());
        self.chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
        all.extend_from_slice(&self.tail);
        all.freeze()
    }

    /// Returns the buffer for small things, with room for `bytes` more.
    #[inline]
    pub(crate) fn buffer(&mut self, bytes: usize) -> &mut BytesMut {
        if self.tail.capacity() - self.tail.len() < bytes {
            self.next_buffer(bytes);
        }
        &mut self.tail
    }

    /// Returns so many bytes of the buffer, all to be written by the caller.
    #[inline]
    pub(crate) fn space(&mut self, bytes: usize) -> &mut [u8] {
        let buffer = self.buffer(bytes);
        let from = buffer.len();
        buffer.resize(from + bytes, 0);
        &mut buffer[from..]
    }

    /// Begins a new buffer instead of moving the old one's bytes to a larger one.
    #[cold]
    fn next_buffer(&mut self, bytes: usize) {
        if self.tail.capacity() > 0 {
            self.buffer_bytes = (2 * self.buffer_bytes).min(BUFFER_BYTES_MAX);
        }
        self.seal();
        self.tail = BytesMut::with_capacity(bytes.max(self.buffer_bytes));
    }

    /// Makes the buffer's content a chunk, and goes on in what is left of its memory.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let sealed = self.tail.split().freeze();
            self.chunk_bytes += sealed.len();
            self.chunks.push_back(sealed);
        }
    }

    /// All is written: gives the memory back, and begins smaller if so much was not needed.
    fn release(&mut self) {
        if self.buffer_bytes > BUFFER_BYTES_MIN && self.tail.capacity() > self.buffer_bytes / 2 {
            self.buffer_bytes /= 2;
        }
        self.tail = BytesMut::new();
        self.chunks = VecDeque::new();
    }
}
