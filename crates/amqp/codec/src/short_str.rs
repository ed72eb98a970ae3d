//! Short strings: names, routing keys and tags as they stand in the read buffer.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use bytes::Bytes;
use quelea_model::limits::SHORT_STRING_BYTES_MAX;

/// UTF-8 text of at most 255 bytes (AMQP 0-9-1 §4.2.5.3).
///
/// One that was decoded is a slice of the read buffer: cheap to make, and it keeps that whole
/// buffer alive. Copy what is to stay (`to_owned`, or [`ShortStr::detached`]).
#[derive(Clone, Default)]
pub struct ShortStr(Bytes);

/// Why bytes are not a short string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShortStrError {
    /// Longer than a length octet can say.
    #[error("{len} bytes are too long for a short string")]
    TooLong {
        /// Length in bytes.
        len: usize,
    },
    /// Not UTF-8.
    #[error("a short string is not UTF-8")]
    NotUtf8,
}

impl ShortStr {
    /// Takes bytes without copying them.
    ///
    /// # Errors
    /// [`ShortStrError`] if they are longer than 255 or not UTF-8.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, ShortStrError> {
        if bytes.len() > SHORT_STRING_BYTES_MAX {
            return Err(ShortStrError::TooLong { len: bytes.len() });
        }
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(ShortStrError::NotUtf8),
        }
    }

    /// Returns text that is known when the program is written; not copied.
    ///
    /// # Panics
    /// If it is longer than 255 bytes.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(text.len() <= SHORT_STRING_BYTES_MAX, "longer than a short string");
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Copies text; what does not fit is cut at a character's boundary and ends in `...`, as
    /// RabbitMQ does with reply texts.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        if text.len() <= SHORT_STRING_BYTES_MAX {
            return Self(Bytes::copy_from_slice(text.as_bytes()));
        }
        let end = text.floor_char_boundary(SHORT_STRING_BYTES_MAX - 3);
        Self(Bytes::from(format!("{}...", &text[..end])))
    }

    /// Returns a copy that shares nothing with the read buffer.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was made")
    }

    /// Returns the text's bytes, without checking them again.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text's bytes, shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for ShortStr {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ShortStr {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// Copies text that the program made or has checked.
///
/// # Panics
/// If it is longer than 255 bytes; use [`ShortStr::cut`] or [`ShortStr::from_bytes`] for text from
/// outside.
impl From<&str> for ShortStr {
    fn from(text: &str) -> Self {
        assert!(text.len() <= SHORT_STRING_BYTES_MAX, "longer than a short string");
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl PartialEq for ShortStr {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for ShortStr {}

impl PartialEq<str> for ShortStr {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for ShortStr {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl Hash for ShortStr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for ShortStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ShortStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let short = ShortStr::cut(&"é".repeat(200));
        assert_eq!(short.len(), 255);
        assert!(short.ends_with("é..."));
        assert_eq!(ShortStr::cut("as it is"), "as it is");
    }

    #[test]
    fn bytes_are_refused_for_their_length_or_for_not_being_utf8() {
        assert_eq!(
            ShortStr::from_bytes(Bytes::from(vec![b'a'; 256])),
            Err(ShortStrError::TooLong { len: 256 })
        );
        assert_eq!(ShortStr::from_bytes(Bytes::from_static(&[0xff])), Err(ShortStrError::NotUtf8));
        assert_eq!(ShortStr::from_bytes(Bytes::from_static(b"ok")).unwrap(), "ok");
    }
}
