//! Digests as text: 64 small hexadecimal digits.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, or an HMAC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest32(pub(crate) [u8; 32]);

impl Digest32 {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses a digest. Strict: another case would be another signature for the same request.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_small = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if !text.as_bytes().iter().all(is_small) {
            return None;
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub(crate) fn hex(&self) -> [u8; 64] {
        let mut text = [0; 64];
        hex::encode_to_slice(self.0, &mut text).expect("twice as many digits as bytes");
        text
    }
}

impl fmt::Display for Digest32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.hex();
        f.write_str(std::str::from_utf8(&hex).expect("digits are ASCII"))
    }
}

impl fmt::Debug for Digest32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_comes_back_from_its_text_and_only_from_that() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest32::of(b"").to_string(), empty);
        assert_eq!(Digest32::parse(empty), Some(Digest32::of(b"")));
        for bad in ["", &empty[1..], &empty.to_uppercase(), &format!("{empty}0")] {
            assert_eq!(Digest32::parse(bad), None, "{bad}");
        }
        assert_eq!(Digest32::parse(&empty.replace('e', "g")), None);
    }
}
