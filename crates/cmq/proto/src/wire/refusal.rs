//! The receiver's no.

use bytes::BufMut;

use crate::wire::Malformed;

/// Bytes of a REFUSAL's body: with the header no more than the smallest DATA has.
pub const REFUSAL_BYTES: usize = 1;

/// A REFUSAL's body: why. The numbers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The mailbox is not open there.
    NoSuchMailbox = 1,
    /// There is no room for another flow.
    NoRoom = 2,
}

impl Refusal {
    /// Appends the body.
    pub fn write(self, body: &mut impl BufMut) {
        body.put_u8(self as u8);
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It says nothing known.
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        match body.first() {
            Some(1) => Ok(Self::NoSuchMailbox),
            Some(2) => Ok(Self::NoRoom),
            _ => Err(Malformed::Handshake),
        }
    }
}
