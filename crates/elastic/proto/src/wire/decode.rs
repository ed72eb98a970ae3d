//! Bytes to frames.

use bytes::{Buf as _, Bytes};

use super::frame_error::FrameError;
use super::reader::Reader;
use crate::Frame;
use crate::limits::FRAME_HEADER_BYTES;
use crate::wire::FrameHeader;

impl Frame {
    /// Takes the next frame from the beginning of `input`; `None`, and `input` as it was, if it is not
    /// there as a whole. What a frame holds of bytes are slices of `input`.
    ///
    /// # Errors
    /// What is wrong with the frame. The connection cannot go on.
    pub fn decode(input: &mut Bytes) -> Result<Option<Self>, FrameError> {
        let Some(header) = FrameHeader::read(input)? else { return Ok(None) };
        if input.len() < header.frame_bytes() {
            return Ok(None);
        }
        let mut frame = input.split_to(header.frame_bytes());
        frame.advance(FRAME_HEADER_BYTES);
        let mut reader = Reader::new(frame);
        let read = Self::read(header.kind, &mut reader).and_then(|frame| {
            reader.end()?;
            Ok(Some(frame))
        });
        read.map_err(|error| FrameError::of(header.kind, error))
    }
}
