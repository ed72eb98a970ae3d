//! What a sender says first, or when it is challenged (HELLO), and the receiver's answer to it, or to data
//! from an address that is not proven (CHALLENGE).

use bytes::BufMut;

use crate::wire::Malformed;

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;

/// Bytes of a cookie.
pub const COOKIE_BYTES: usize = 8;

/// The body of a HELLO or a CHALLENGE without the tag. Which it is, the header's flag SEALED says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Without a key: a CHALLENGE's cookie, which the HELLO returns to prove that the sender gets what is
    /// sent to its address.
    Cookie([u8; COOKIE_BYTES]),
    /// With a key: the salt of who says it, of which the flow's keys are made. A tag follows.
    Salt([u8; SALT_BYTES]),
}

impl Handshake {
    /// Appends the body, without the tag.
    pub fn write(&self, body: &mut impl BufMut) {
        match self {
            Self::Cookie(cookie) => body.put_slice(cookie),
            Self::Salt(salt) => body.put_slice(salt),
        }
    }

    /// Reads a body, without the tag.
    ///
    /// # Errors
    /// It is cut off.
    pub fn read(body: &[u8], sealed: bool) -> Result<Self, Malformed> {
        if sealed {
            body.first_chunk().copied().map(Self::Salt).ok_or(Malformed::Handshake)
        } else {
            body.first_chunk().copied().map(Self::Cookie).ok_or(Malformed::Handshake)
        }
    }
}
