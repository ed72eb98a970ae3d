//! A message as the wire has it: its parts, each a frame, in one piece.

use bytes::{Bytes, BytesMut};

use crate::frame::{Header, put_frame};

/// Makes one message of parts. Without parts there is no message: one empty part then.
#[must_use]
pub fn frame_parts(parts: &[&[u8]]) -> Bytes {
    let mut out = BytesMut::with_capacity(parts.iter().map(|part| part.len() + 9).sum());
    if parts.is_empty() {
        put_frame(&mut out, false, &[]);
    }
    for (number, part) in parts.iter().enumerate() {
        put_frame(&mut out, number + 1 < parts.len(), part);
    }
    out.freeze()
}

/// The parts of a framed message, as slices of it. Ends early at what is no frame.
#[derive(Clone, Debug)]
pub struct Parts {
    rest: Bytes,
}

impl Parts {
    /// Creates the iterator over the parts of `message`.
    #[must_use]
    pub const fn of(message: Bytes) -> Self {
        Self { rest: message }
    }
}

impl Iterator for Parts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let header = Header::parse(&self.rest).ok()??;
        let length = usize::try_from(header.length).ok()?;
        if self.rest.len() - header.header_bytes < length {
            return None;
        }
        let frame = self.rest.split_to(header.header_bytes + length);
        Some(frame.slice(header.header_bytes..))
    }
}
