//! Buffers of trains. A batch that begins does not know whether it will hold four bytes or a whole
//! train, and 100,000 destinations may have one each: so it begins small and grows.

use bytes::BytesMut;

use crate::limits;

/// Capacities in steps of four. The largest holds any train.
const CLASS_BYTES: [usize; 5] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Bytes of the buffers that wait for the next train: two trains, one to fill while one is sent. An
/// idle queue shall cost little.
const POOL_BYTES_MAX: usize = 128 << 10;

// The largest class holds any train.
const _: () = assert!(CLASS_BYTES[CLASS_BYTES.len() - 1] >= limits::DATAGRAM_BYTES_MAX);

/// A size of buffers, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

impl Class {
    /// Returns the smallest class that holds `bytes`; the largest if none does.
    pub(crate) fn holding(bytes: usize) -> Self {
        let at = CLASS_BYTES.iter().position(|class| *class >= bytes);
        Self(at.unwrap_or(CLASS_BYTES.len() - 1) as u8)
    }

    fn bytes(self) -> usize {
        CLASS_BYTES[usize::from(self.0)]
    }
}

/// Buffers for the next trains.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Of the largest class: the smaller ones are cheap to make.
    free: Vec<BytesMut>,
}

impl Pool {
    /// Takes an empty buffer for `bytes`, of at least the class `class`.
    pub(crate) fn take(&mut self, class: Class, bytes: usize) -> BytesMut {
        let class = class.max(Class::holding(bytes));
        if class.bytes() == CLASS_BYTES[CLASS_BYTES.len() - 1]
            && let Some(buffer) = self.free.pop()
        {
            return buffer;
        }
        BytesMut::with_capacity(class.bytes().max(bytes))
    }

    /// Takes a buffer whose content is not needed any more.
    pub(crate) fn recycle(&mut self, mut buffer: BytesMut) {
        let largest = CLASS_BYTES[CLASS_BYTES.len() - 1];
        if buffer.capacity() >= largest && (self.free.len() + 1) * largest <= POOL_BYTES_MAX {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}

/// Makes room for `bytes` more, in a step to a larger class, so that filling a train copies it at most
/// four times.
pub(crate) fn grow(buffer: &mut BytesMut, bytes: usize) {
    let needed = buffer.len() + bytes;
    if needed > buffer.capacity() {
        let wanted = Class::holding(needed).bytes().max(needed);
        buffer.reserve(wanted - buffer.len());
    }
}
