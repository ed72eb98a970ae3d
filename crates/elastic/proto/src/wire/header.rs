//! The header that all frames begin with, and DATA's longer one.

use super::frame_error::{FrameError, FrameName};
use crate::fault::Fault;
use crate::limits::{
    CONTROL_BYTES_MAX, DATA_HEADER_BYTES, FRAME_HEADER_BYTES, KEEP_BYTES_MAX, MESSAGE_BYTES_MAX,
};
use crate::wire::Kind;
use crate::{MessageSeq, Slot};

/// A frame's first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// What it is.
    pub kind: Kind,
    /// Bytes behind the header.
    pub body_bytes: usize,
}

impl FrameHeader {
    /// Reads the header at the beginning of `input`; `None` if it is not there as a whole.
    ///
    /// # Errors
    /// If the frame is none of ours or longer than its kind may be. Nothing more need be read to know.
    pub fn read(input: &[u8]) -> Result<Option<Self>, FrameError> {
        let Some((header, _)) = input.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let [l0, l1, l2, l3, kind, flags, r0, r1] = *header;
        let Some(kind) = Kind::of_number(kind) else {
            let fault = Fault::Unknown { value: u64::from(kind) };
            return Err(FrameError { frame: FrameName::Unknown(kind), field: "kind", fault });
        };
        let wrong = |field, fault| Err(FrameError { frame: FrameName::Known(kind), field, fault });
        if flags != 0 {
            return wrong("flags", Fault::Unknown { value: u64::from(flags) });
        }
        let reserved = u16::from_le_bytes([r0, r1]);
        if reserved != 0 {
            return wrong("reserved", Fault::Unknown { value: u64::from(reserved) });
        }
        let body_bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let limit = kind.body_bytes_max();
        if body_bytes > limit {
            let fault = Fault::Limit { limit: limit as u64, value: body_bytes as u64 };
            return wrong("length", fault);
        }
        Ok(Some(Self { kind, body_bytes }))
    }

    /// Returns how many bytes the whole frame has.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.body_bytes
    }
}

impl Kind {
    /// Returns the greatest body of this kind, in bytes.
    #[must_use]
    pub const fn body_bytes_max(self) -> usize {
        match self {
            Self::Data => DATA_HEADER_BYTES - FRAME_HEADER_BYTES + MESSAGE_BYTES_MAX,
            Self::Keep => KEEP_BYTES_MAX,
            _ => CONTROL_BYTES_MAX,
        }
    }
}

/// What stands before a message's parts in a DATA frame, behind the frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The producer's slot.
    pub slot: Slot,
    /// The message's number.
    pub sequence: MessageSeq,
}

impl DataHeader {
    /// Reads it from a whole DATA frame (with the frame's header); `None` if the frame is too short.
    #[must_use]
    pub fn of_frame(frame: &[u8]) -> Option<Self> {
        let header = frame.first_chunk::<DATA_HEADER_BYTES>()?;
        let (_, body) = header.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let (slot, sequence) = body.split_first_chunk::<4>()?;
        let sequence = sequence.first_chunk::<8>()?;
        Some(Self {
            slot: Slot(u32::from_le_bytes(*slot)),
            sequence: MessageSeq(u64::from_le_bytes(*sequence)),
        })
    }
}
