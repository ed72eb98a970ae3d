//! Reads the body of one frame, field by field, each against its limit.

use bytes::{Buf as _, Bytes};

use crate::error::{Fault, FrameError, FrameName};
use crate::wire::Kind;

/// The body of one frame, what of it is not read yet.
pub(super) struct Reader {
    body: Bytes,
    kind: Kind,
}

pub(super) type Read<T> = Result<T, FrameError>;

impl Reader {
    pub(super) const fn new(kind: Kind, body: Bytes) -> Self {
        Self { body, kind }
    }

    pub(super) const fn error(&self, field: &'static str, fault: Fault) -> FrameError {
        FrameError { frame: FrameName::Known(self.kind), field, fault }
    }

    pub(super) const fn unknown(&self, field: &'static str, value: u64) -> FrameError {
        self.error(field, Fault::Unknown { value })
    }

    /// After the last field.
    pub(super) fn end(&self) -> Read<()> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(self.error("length", Fault::Trailing { bytes: bytes as u64 })),
        }
    }

    /// Bytes that are not read yet.
    pub(super) const fn left(&self) -> usize {
        self.body.len()
    }

    pub(super) const fn need(&self, field: &'static str, needed: usize) -> Read<()> {
        if self.left() >= needed {
            return Ok(());
        }
        let fault = Fault::Short { needed: needed as u64, left: self.left() as u64 };
        Err(self.error(field, fault))
    }

    pub(super) const fn at_most(
        &self,
        field: &'static str,
        value: usize,
        limit: usize,
    ) -> Read<()> {
        if value <= limit {
            return Ok(());
        }
        Err(self.error(field, Fault::Limit { limit: limit as u64, value: value as u64 }))
    }

    /// The next byte, which stays to be read.
    pub(super) fn peek(&self) -> Option<u8> {
        self.body.first().copied()
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Read<[u8; N]> {
        self.need(field, N)?;
        let mut array = [0; N];
        self.body.copy_to_slice(&mut array);
        Ok(array)
    }

    /// The next `length` bytes, of which there may be `limit`.
    pub(super) fn take(&mut self, field: &'static str, length: usize, limit: usize) -> Read<Bytes> {
        self.at_most(field, length, limit)?;
        self.need(field, length)?;
        Ok(self.body.split_to(length))
    }

    /// Bytes to the frame's end.
    pub(super) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.body)
    }
}
