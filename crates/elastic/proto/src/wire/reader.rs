//! Reads the body of one frame, field by field, each against its limit.

use bytes::{Buf as _, Bytes};

use crate::fault::{Fault, FieldError};

/// The body of one frame, what of it is not read yet.
pub(super) struct Reader(Bytes);

pub(super) type Read<T> = Result<T, FieldError>;

impl Reader {
    pub(super) const fn new(body: Bytes) -> Self {
        Self(body)
    }

    /// Checks that nothing follows the last field.
    pub(super) fn end(&self) -> Read<()> {
        match self.left() {
            0 => Ok(()),
            bytes => {
                Err(FieldError { field: "length", fault: Fault::Trailing { bytes: bytes as u64 } })
            }
        }
    }

    /// Returns how many bytes are not read yet.
    pub(super) const fn left(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn need(&self, field: &'static str, needed: usize) -> Read<()> {
        if self.left() >= needed {
            return Ok(());
        }
        let fault = Fault::Short { needed: needed as u64, left: self.left() as u64 };
        Err(FieldError { field, fault })
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
        Err(FieldError { field, fault: Fault::Limit { limit: limit as u64, value: value as u64 } })
    }

    /// Returns the next byte, which stays to be read.
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Read<[u8; N]> {
        self.need(field, N)?;
        let mut array = [0; N];
        self.0.copy_to_slice(&mut array);
        Ok(array)
    }

    /// Takes the next `length` bytes, of which there may be `limit`.
    pub(super) fn take(&mut self, field: &'static str, length: usize, limit: usize) -> Read<Bytes> {
        self.at_most(field, length, limit)?;
        self.need(field, length)?;
        Ok(self.0.split_to(length))
    }

    /// Takes the bytes up to the frame's end.
    pub(super) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }
}
