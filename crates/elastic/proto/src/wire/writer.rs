//! Writes the fields of one frame, and remembers the first that does not fit its limit.

use bytes::{BufMut, BytesMut};

use crate::error::{Fault, FrameError, FrameName};
use crate::limits::{FRAME_HEADER_BYTES, TEXT_BYTES_MAX};
use crate::wire::Kind;

/// One frame that is being written.
pub(super) struct Writer<'a> {
    out: &'a mut BytesMut,
    begin: usize,
    kind: Kind,
    error: Option<FrameError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut BytesMut, kind: Kind) -> Self {
        let begin = out.len();
        out.put_u32_le(0); // The length, which `finish` knows.
        out.put_u8(kind as u8);
        out.put_bytes(0, 3);
        Self { out, begin, kind, error: None }
    }

    /// Completes the header. If a field was wrong, nothing of the frame stays.
    pub(super) fn finish(mut self) -> Result<(), FrameError> {
        let body = self.out.len() - self.begin - FRAME_HEADER_BYTES;
        self.at_most("length", body, self.kind.body_bytes_max());
        if let Some(error) = self.error {
            self.out.truncate(self.begin);
            return Err(error);
        }
        let length = u32::try_from(body).expect("the limits of all kinds are below 4 GiB");
        self.out[self.begin..self.begin + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.put_u8(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.out.put_u16_le(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.out.put_u32_le(value);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.out.put_u64_le(value);
    }

    pub(super) fn u128(&mut self, value: u128) {
        self.out.put_u128_le(value);
    }

    /// Bytes to the frame's end.
    pub(super) fn rest(&mut self, bytes: &[u8]) {
        self.out.put_slice(bytes);
    }

    /// A u16 length and the bytes.
    pub(super) fn bytes(&mut self, field: &'static str, bytes: &[u8], limit: usize) {
        self.at_most(field, bytes.len(), limit);
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX); // Then it is an error already.
        self.u16(length);
        self.out.put_slice(bytes);
    }

    /// As [`Writer::bytes`] with a u32 length.
    pub(super) fn long_bytes(&mut self, field: &'static str, bytes: &[u8], limit: usize) {
        self.count(field, bytes.len(), limit);
        self.out.put_slice(bytes);
    }

    /// As [`Writer::bytes`], and not empty.
    pub(super) fn name(&mut self, field: &'static str, text: &str, limit: usize) {
        if text.is_empty() {
            self.fail(field, Fault::Empty);
        }
        self.bytes(field, text.as_bytes(), limit);
    }

    /// For people: what is longer is cut.
    pub(super) fn text(&mut self, field: &'static str, text: &str) {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        self.bytes(field, &text.as_bytes()[..end], TEXT_BYTES_MAX);
    }

    /// The number of a list's elements.
    pub(super) fn count(&mut self, field: &'static str, count: usize, limit: usize) {
        self.at_most(field, count, limit);
        self.u32(u32::try_from(count).unwrap_or(u32::MAX)); // Then it is an error already.
    }

    pub(super) fn at_most(&mut self, field: &'static str, value: usize, limit: usize) {
        if value > limit {
            self.fail(field, Fault::Limit { limit: limit as u64, value: value as u64 });
        }
    }

    pub(super) fn fail(&mut self, field: &'static str, fault: Fault) {
        let frame = FrameName::Known(self.kind);
        self.error.get_or_insert(FrameError { frame, field, fault });
    }
}
