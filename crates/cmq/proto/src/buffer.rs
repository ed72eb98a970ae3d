//! What a driver gives an endpoint: its own to change, or shared with the driver.

use core::ops::Deref;

use bytes::{Bytes, BytesMut};

/// Bytes that came.
#[derive(Debug)]
pub enum Buffer {
    /// Nobody else's.
    Own(BytesMut),
    /// The driver, for instance, takes it back when all that was cut from it is gone.
    Shared(Bytes),
}

impl Buffer {
    pub(crate) fn into_shared(self) -> Bytes {
        match self {
            Self::Own(bytes) => bytes.freeze(),
            Self::Shared(bytes) => bytes,
        }
    }

    pub(crate) fn into_own(self) -> BytesMut {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => BytesMut::from(bytes),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl From<BytesMut> for Buffer {
    fn from(bytes: BytesMut) -> Self {
        Self::Own(bytes)
    }
}

impl From<Bytes> for Buffer {
    fn from(bytes: Bytes) -> Self {
        Self::Shared(bytes)
    }
}
