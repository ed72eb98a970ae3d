//! Frames to bytes.

use bytes::{BufMut as _, BytesMut};

use super::frame_error::{FrameError, FrameName};
use super::writer::Writer;
use crate::Frame;
use crate::fault::Fault;
use crate::limits::{DATA_HEADER_BYTES, FRAME_HEADER_BYTES};
use crate::parts::{self, PartsError};
use crate::wire::Kind;
use crate::{MessageSeq, Slot};

impl Frame {
    /// Appends the frame to `out`. Texts for people are cut at their limit. The parts of a DATA are
    /// written as they are: whoever made them has checked them.
    ///
    /// # Errors
    /// If a field is beyond its limit; then `out` is as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), FrameError> {
        let kind = self.kind();
        let mut writer = Writer::new(out, kind as u8);
        self.put(&mut writer);
        writer.finish(kind.body_bytes_max()).map_err(|error| FrameError::of(kind, error))
    }
}

/// Appends a message as one DATA frame.
///
/// # Errors
/// If the parts make no message; then `out` is as it was.
pub fn encode_data<P: AsRef<[u8]>>(
    out: &mut BytesMut,
    slot: Slot,
    sequence: MessageSeq,
    parts: &[P],
) -> Result<(), FrameError> {
    let message = |fault: PartsError| FrameError {
        frame: FrameName::Known(Kind::Data),
        field: "parts",
        fault: Fault::Message(fault),
    };
    parts::check_sizes(parts).map_err(message)?;
    let parts_bytes = parts::message_bytes(parts);
    out.reserve(DATA_HEADER_BYTES + parts_bytes);
    out.put_slice(&data_header(slot, sequence, parts_bytes));
    parts::put_parts(out, parts).map_err(message)
}

/// Returns what stands before a message's parts, which are `parts_bytes` long: the frame's header,
/// slot and sequence. The parts are written by other means.
#[must_use]
pub fn data_header(
    slot: Slot,
    sequence: MessageSeq,
    parts_bytes: usize,
) -> [u8; DATA_HEADER_BYTES] {
    let body = DATA_HEADER_BYTES - FRAME_HEADER_BYTES + parts_bytes;
    debug_assert!(body <= Kind::Data.body_bytes_max(), "a message is checked before");
    let mut header = [0; DATA_HEADER_BYTES];
    header[..4].copy_from_slice(&(body as u32).to_le_bytes());
    header[4] = Kind::Data as u8;
    header[8..12].copy_from_slice(&slot.0.to_le_bytes());
    header[12..].copy_from_slice(&sequence.0.to_le_bytes());
    header
}
