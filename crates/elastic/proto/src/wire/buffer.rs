//! What a connection has read, cut into whole frames.

use bytes::{Bytes, BytesMut};

use super::frame_error::{FrameError, FrameName};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::limits::GREETING_BYTES_MAX;
use crate::wire::FrameHeader;

/// Bytes asked of the allocator for each read, if the frame under way needs no more: several reads'
/// worth share one allocation.
const READ_BYTES: usize = 64 * 1024;

/// A connection's read buffer. The driver reads into [`FrameBuffer::room`]; whole frames come out as one
/// `Bytes` that shares the buffer's memory, so that neither frames nor messages are copied.
#[derive(Debug)]
pub struct FrameBuffer {
    buffer: BytesMut,
    /// Bytes at the beginning that are known to be whole frames.
    whole: usize,
    body_bytes_max: usize,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameBuffer {
    /// Creates a buffer for a connection that has not been greeted: only frames of
    /// [`GREETING_BYTES_MAX`] are taken.
    #[must_use]
    pub fn new() -> Self {
        Self { buffer: BytesMut::new(), whole: 0, body_bytes_max: GREETING_BYTES_MAX }
    }

    /// From now on each kind has its own limit.
    pub const fn greeted(&mut self) {
        self.body_bytes_max = usize::MAX;
    }

    /// Returns where to read to: append to it, and change nothing in it.
    ///
    /// It has room for the rest of the frame under way, so that a large one is not read in small
    /// pieces and moved for each.
    pub fn room(&mut self) -> &mut BytesMut {
        self.room_of(READ_BYTES)
    }

    /// Returns where to read to, as [`FrameBuffer::room`] does, with room for at least `bytes`
    /// bytes if the buffer has to be made anew.
    pub fn room_of(&mut self, bytes: usize) -> &mut BytesMut {
        let under_way = &self.buffer[self.whole..];
        let frame_bytes = match FrameHeader::read(under_way) {
            Ok(Some(header)) if header.body_bytes <= self.body_bytes_max => header.frame_bytes(),
            _ => 0,
        };
        let missing = frame_bytes.saturating_sub(under_way.len());
        if missing > 0 || self.buffer.capacity() - self.buffer.len() < bytes / 8 {
            self.buffer.reserve(missing.max(bytes));
        }
        &mut self.buffer
    }

    /// Takes all whole frames that are there, without copying; empty if there is none.
    ///
    /// # Errors
    /// If a header says a frame that is none or too long: the connection cannot go on. The frames
    /// before it come out of the call before.
    pub fn take(&mut self) -> Result<Bytes, FrameError> {
        let fault = loop {
            match FrameHeader::read(&self.buffer[self.whole..]) {
                Ok(Some(header)) if header.body_bytes > self.body_bytes_max => {
                    let value = header.body_bytes as u64;
                    let fault = Fault::Limit { limit: self.body_bytes_max as u64, value };
                    let frame = FrameName::Known(header.kind);
                    break Some(FrameError { frame, field: "length", fault });
                }
                Ok(Some(header)) if header.frame_bytes() <= self.buffer.len() - self.whole => {
                    self.whole += header.frame_bytes();
                }
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        match fault {
            Some(error) if self.whole == 0 => Err(error),
            _ => Ok(self.buffer.split_to(std::mem::take(&mut self.whole)).freeze()),
        }
    }

    /// Takes the next frame, if it is whole: for connections with little traffic. Others take all
    /// frames that are there at once, and decode them from these.
    ///
    /// # Errors
    /// As [`FrameBuffer::take`], and what [`Frame::decode`] says.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(header) = FrameHeader::read(&self.buffer)? else { return Ok(None) };
        if header.body_bytes > self.body_bytes_max {
            let value = header.body_bytes as u64;
            let fault = Fault::Limit { limit: self.body_bytes_max as u64, value };
            return Err(FrameError {
                frame: FrameName::Known(header.kind),
                field: "length",
                fault,
            });
        }
        if header.frame_bytes() > self.buffer.len() {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(header.frame_bytes()).freeze();
        Frame::decode(&mut frame)
    }
}
