//! The body of PARITY: of which group it is, and the parity itself.

use bytes::{Buf, BufMut};

use crate::limits::{REPAIR_DATA_MAX, REPAIR_PARITY_MAX};
use crate::wire::Malformed;

/// Bytes before the parity.
pub const PARITY_HEAD_BYTES: usize = 12;

/// Bytes of the parity that are of the datagrams' heads and not of their bodies: see `repair`.
pub const BLOCK_HEAD_BYTES: usize = 10;

/// Which parity it is. With one parity for a group it is the XOR of its blocks, with more they are
/// Reed–Solomon's; see docs/formats/cmq.md for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parity {
    /// The sequence of the group's first data datagram.
    pub first: u64,
    /// Data datagrams of the group: of consecutive sequences.
    pub data: u8,
    /// Parity datagrams of the group.
    pub parity: u8,
    /// Which of them this is, from 0.
    pub index: u8,
}

impl Parity {
    /// Appends what stands before the parity.
    pub fn write(&self, body: &mut impl BufMut) {
        body.put_u64_le(self.first);
        body.put_slice(&[self.data, self.parity, self.index, 0]);
    }

    /// Reads a body of the datagram with `sequence`. Returns the parity too.
    ///
    /// # Errors
    /// It is cut off, or of an impossible group.
    pub fn read(mut body: &[u8], sequence: u64) -> Result<(Self, &[u8]), Malformed> {
        if body.len() < PARITY_HEAD_BYTES + BLOCK_HEAD_BYTES {
            return Err(Malformed::Parity);
        }
        let first = body.get_u64_le();
        let found =
            Self { first, data: body.get_u8(), parity: body.get_u8(), index: body.get_u8() };
        body.advance(1);
        let group = 1..=REPAIR_DATA_MAX;
        let end = first.checked_add(u64::from(found.data));
        if !group.contains(&found.data)
            || !(1..=REPAIR_PARITY_MAX).contains(&found.parity)
            || found.index >= found.parity
            || end.is_none_or(|end| end > sequence)
        {
            return Err(Malformed::Parity);
        }
        Ok((found, body))
    }
}
