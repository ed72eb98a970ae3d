//! How values become messages.

/// Turns values of `T` into bytes and back. Both ends must use the same.
pub trait Codec<T> {
    /// What it finds wrong.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Appends the bytes of `value` to `bytes`.
    ///
    /// # Errors
    /// The value can't be encoded.
    fn encode(value: &T, bytes: &mut Vec<u8>) -> Result<(), Self::Error>;

    /// Decodes `bytes`. Returns their value.
    ///
    /// # Errors
    /// The bytes are not those of a `T`.
    fn decode(bytes: &[u8]) -> Result<T, Self::Error>;
}

/// Values that are bytes already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl<T: AsRef<[u8]> + for<'a> From<&'a [u8]>> Codec<T> for Raw {
    type Error = std::convert::Infallible;

    fn encode(value: &T, bytes: &mut Vec<u8>) -> Result<(), Self::Error> {
        bytes.extend_from_slice(value.as_ref());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<T, Self::Error> {
        Ok(bytes.into())
    }
}

/// Any serde type in postcard's encoding: the smallest, and the default.
#[cfg(feature = "postcard")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

#[cfg(feature = "postcard")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Codec<T> for Postcard {
    type Error = postcard::Error;

    fn encode(value: &T, bytes: &mut Vec<u8>) -> Result<(), Self::Error> {
        postcard::to_extend(value, core::mem::take(bytes)).map(|filled| *bytes = filled)
    }

    fn decode(bytes: &[u8]) -> Result<T, Self::Error> {
        postcard::from_bytes(bytes)
    }
}

/// Any serde type in MessagePack, which other languages read too.
#[cfg(feature = "msgpack")]
#[derive(Clone, Copy, Debug, Default)]
pub struct MsgPack;

/// What MessagePack finds wrong.
#[cfg(feature = "msgpack")]
#[derive(Debug, thiserror::Error)]
pub enum MsgPackError {
    /// The value can't be encoded.
    #[error(transparent)]
    Encode(#[from] rmp_serde::encode::Error),
    /// The bytes are not those of such a value.
    #[error(transparent)]
    Decode(#[from] rmp_serde::decode::Error),
}

#[cfg(feature = "msgpack")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Codec<T> for MsgPack {
    type Error = MsgPackError;

    fn encode(value: &T, bytes: &mut Vec<u8>) -> Result<(), Self::Error> {
        Ok(rmp_serde::encode::write_named(bytes, value)?)
    }

    fn decode(bytes: &[u8]) -> Result<T, Self::Error> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}
