//! The receiver's answer to HELLO, or to data from an address that is not proven.

use bytes::BufMut;

use crate::wire::Malformed;
use crate::wire::hello::{COOKIE_BYTES, SALT_BYTES};

/// A CHALLENGE's body without the tag. Which it is, the header's flag SEALED says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// Without a key: a cookie, to be given back in a HELLO.
    Cookie([u8; COOKIE_BYTES]),
    /// With a key: the receiver's salt, for the same flow's keys. A tag follows.
    Salt([u8; SALT_BYTES]),
}

impl Challenge {
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
