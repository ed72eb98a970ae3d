//! Reads the fields of one frame, each against its limit.

use bytes::{Buf, Bytes};

use crate::error::{Fault, FrameError, FrameName};
use crate::limits::TEXT_BYTES_MAX;
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

    pub(super) fn error(&self, field: &'static str, fault: Fault) -> FrameError {
        FrameError { frame: FrameName::Known(self.kind), field, fault }
    }

    /// After the last field.
    pub(super) fn end(&self) -> Read<()> {
        match self.body.len() {
            0 => Ok(()),
            bytes => Err(self.error("length", Fault::Trailing { bytes: bytes as u64 })),
        }
    }

    fn need(&self, field: &'static str, needed: usize) -> Read<()> {
        if self.body.len() >= needed {
            return Ok(());
        }
        let fault = Fault::Short { needed: needed as u64, left: self.body.len() as u64 };
        Err(self.error(field, fault))
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Read<u8> {
        self.need(field, 1)?;
        Ok(self.body.get_u8())
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Read<u16> {
        self.need(field, 2)?;
        Ok(self.body.get_u16_le())
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Read<u32> {
        self.need(field, 4)?;
        Ok(self.body.get_u32_le())
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Read<u64> {
        self.need(field, 8)?;
        Ok(self.body.get_u64_le())
    }

    pub(super) fn u128(&mut self, field: &'static str) -> Read<u128> {
        self.need(field, 16)?;
        Ok(self.body.get_u128_le())
    }

    /// 0 or 1.
    pub(super) fn bool(&mut self, field: &'static str) -> Read<bool> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(self.unknown(field, u64::from(value))),
        }
    }

    /// Bytes to the frame's end.
    pub(super) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.body)
    }

    pub(super) fn rest_at_most(&mut self, field: &'static str, limit: usize) -> Read<Bytes> {
        self.at_most(field, self.body.len(), limit)?;
        Ok(self.rest())
    }

    /// A u16 length and the bytes, which are not copied.
    pub(super) fn bytes(&mut self, field: &'static str, limit: usize) -> Read<Bytes> {
        let length = usize::from(self.u16(field)?);
        self.at_most(field, length, limit)?;
        self.need(field, length)?;
        Ok(self.body.split_to(length))
    }

    /// As [`Reader::bytes`] with a u32 length.
    pub(super) fn long_bytes(&mut self, field: &'static str, limit: usize) -> Read<Bytes> {
        let length = self.u32(field)? as usize;
        self.at_most(field, length, limit)?;
        self.need(field, length)?;
        Ok(self.body.split_to(length))
    }

    pub(super) fn string(&mut self, field: &'static str, limit: usize) -> Read<String> {
        let bytes = self.bytes(field, limit)?;
        self.utf8(field, &bytes)
    }

    /// A string that must not be empty.
    pub(super) fn name(&mut self, field: &'static str, limit: usize) -> Read<String> {
        let text = self.string(field, limit)?;
        if text.is_empty() {
            return Err(self.error(field, Fault::Empty));
        }
        Ok(text)
    }

    pub(super) fn text(&mut self, field: &'static str) -> Read<String> {
        self.string(field, TEXT_BYTES_MAX)
    }

    fn utf8(&self, field: &'static str, bytes: &[u8]) -> Read<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(self.error(field, Fault::NotUtf8 { at: error.valid_up_to() as u64 })),
        }
    }

    /// A list: its count, then each element. Room is taken for no more elements than the frame's bytes
    /// can hold, whatever the count claims.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        limit: usize,
        element_bytes_min: usize,
        mut element: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let count = self.u32(field)? as usize;
        self.at_most(field, count, limit)?;
        self.need(field, count.saturating_mul(element_bytes_min))?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    pub(super) fn at_most(&self, field: &'static str, value: usize, limit: usize) -> Read<()> {
        if value <= limit {
            return Ok(());
        }
        Err(self.error(field, Fault::Limit { limit: limit as u64, value: value as u64 }))
    }

    pub(super) fn unknown(&self, field: &'static str, value: u64) -> FrameError {
        self.error(field, Fault::Unknown { value })
    }
}
