//! Buffers for what the kernel gives. A train goes on to the application in the buffer that it came
//! in; a small datagram is copied, so that it does not keep 64 KiB alive.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use quelea_cmq_proto::endpoint::Buffer;

/// A GRO train has up to 64 KiB.
pub(crate) const BUFFER_BYTES: usize = 1 << 16;

/// What is smaller than this is copied into an arena of its like.
const COPY_BYTES_MAX: usize = 8 << 10;

/// Buffers that were handed on and are watched for their return: 4 MiB.
const LENT_MAX: usize = 64;

/// How many of them are asked before a new buffer is made.
const LENT_ASKED: usize = 4;

/// The buffers of one socket.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Of full length, zeroed or written before.
    free: Vec<BytesMut>,
    /// Buffers that were handed on, whole: they come back once all that was cut from them is gone,
    /// and need not be cleared for that.
    lent: VecDeque<Bytes>,
    /// What is handed on is changed where it lies: then it is a copy.
    in_place: bool,
    arena: BytesMut,
    /// Room for what the kernel says beside a datagram.
    pub(super) ancillary: Vec<u8>,
}

impl Pool {
    /// Creates an empty pool. `in_place` says that what is handed on is changed where it lies.
    pub(crate) fn new(in_place: bool) -> Self {
        Self { in_place, ..Self::default() }
    }

    /// Takes a buffer of [`BUFFER_BYTES`].
    pub(crate) fn take(&mut self) -> BytesMut {
        if let Some(buffer) = self.free.pop() {
            return buffer;
        }
        for _ in 0..LENT_ASKED.min(self.lent.len()) {
            let Some(buffer) = self.lent.pop_front() else { break };
            match buffer.try_into_mut() {
                Ok(buffer) => return buffer,
                Err(buffer) => self.lent.push_back(buffer),
            }
        }
        BytesMut::zeroed(BUFFER_BYTES)
    }

    /// Returns a buffer that was not used.
    pub(crate) fn put_back(&mut self, buffer: BytesMut) {
        debug_assert_eq!(buffer.len(), BUFFER_BYTES, "a buffer comes back whole");
        self.free.push(buffer);
    }

    /// Cuts the first `length` bytes off `buffer`, to be handed on.
    pub(crate) fn cut(&mut self, mut buffer: BytesMut, length: usize) -> Buffer {
        if length <= COPY_BYTES_MAX {
            let copy = self.copy(&buffer[..length]);
            self.put_back(buffer);
            return copy.into();
        }
        if self.in_place {
            let copy = BytesMut::from(&buffer[..length]);
            self.put_back(buffer);
            return copy.into();
        }
        if self.lent.len() >= LENT_MAX {
            buffer.truncate(length);
            return buffer.into();
        }
        let whole = buffer.freeze();
        let part = whole.slice(..length);
        self.lent.push_back(whole);
        part.into()
    }

    /// Copies `bytes`; the copy shares its allocation with others of its like.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> BytesMut {
        if bytes.len() > BUFFER_BYTES / 4 {
            return BytesMut::from(bytes);
        }
        if self.arena.capacity() < bytes.len() {
            // Reclaims the last one if nothing of it is left, else leaves it to those who hold it.
            self.arena.reserve(BUFFER_BYTES / 4);
        }
        self.arena.extend_from_slice(bytes);
        self.arena.split()
    }

    /// Lets go of what it keeps: nothing is going on.
    pub(crate) fn trim(&mut self) {
        *self = Self::new(self.in_place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_returns_once_all_its_slices_are_gone() {
        let mut pool = Pool::default();
        let mut buffer = pool.take();
        let place = buffer.as_ptr();
        buffer[..3].copy_from_slice(b"abc");
        let part = pool.cut(buffer, COPY_BYTES_MAX + 1);
        assert_eq!(&part[..3], b"abc");
        let Buffer::Shared(part) = part else { panic!("a large one is not copied") };
        let kept = part.slice(1..2);
        drop(part);
        assert_ne!(pool.take().as_ptr(), place, "a part of it is still in use");
        drop(kept);
        let again = pool.take();
        assert_eq!(again.as_ptr(), place);
        assert_eq!(again.len(), BUFFER_BYTES);
    }

    #[test]
    fn a_small_datagram_is_copied_and_its_buffer_used_again() {
        let mut pool = Pool::default();
        let mut buffer = pool.take();
        let place = buffer.as_ptr();
        buffer[..3].copy_from_slice(b"abc");
        let part = pool.cut(buffer, 3);
        assert_eq!(&part[..], b"abc");
        assert_eq!(pool.take().as_ptr(), place);
    }

    #[test]
    fn what_is_kept_of_the_arena_stays_as_it_was() {
        let mut pool = Pool::default();
        let kept: Vec<_> = (0..10_000_u32).map(|n| pool.copy(&n.to_le_bytes())).collect();
        for (n, bytes) in (0_u32..).zip(&kept) {
            assert_eq!(bytes[..], n.to_le_bytes());
        }
    }
}
