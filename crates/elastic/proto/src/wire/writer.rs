//! Writes the fields of one frame, and remembers the first that does not fit its limit.

use bytes::{BufMut, BytesMut};

use crate::fault::{Fault, FieldError};
use crate::limits::FRAME_HEADER_BYTES;

/// One frame that is being written.
pub(super) struct Writer<'a> {
    out: &'a mut BytesMut,
    begin: usize,
    error: Option<FieldError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut BytesMut, kind: u8) -> Self {
        let begin = out.len();
        out.put_u32_le(0); // The length, which `finish` knows.
        out.put_u8(kind);
        out.put_bytes(0, 3);
        Self { out, begin, error: None }
    }

    /// Completes the header. If a field was wrong, nothing of the frame stays.
    pub(super) fn finish(mut self, body_bytes_max: usize) -> Result<(), FieldError> {
        let body = self.out.len() - self.begin - FRAME_HEADER_BYTES;
        self.at_most("length", body, body_bytes_max);
        if let Some(error) = self.error {
            self.out.truncate(self.begin);
            return Err(error);
        }
        let length = u32::try_from(body).expect("the limits of all kinds are below 4 GiB");
        self.out[self.begin..self.begin + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.put_slice(bytes);
    }

    pub(super) fn at_most(&mut self, field: &'static str, value: usize, limit: usize) {
        if value > limit {
            self.fail(field, Fault::Limit { limit: limit as u64, value: value as u64 });
        }
    }

    pub(super) fn fail(&mut self, field: &'static str, fault: Fault) {
        self.error.get_or_insert(FieldError { field, fault });
    }
}
