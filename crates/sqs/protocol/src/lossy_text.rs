//! Bytes that ought to be text.

use std::borrow::Cow;

/// Returns bytes as text; what is none gives U+FFFD.
///
/// Unlike `String::from_utf8_lossy`, which goes through the text a character at a time, it looks at blocks where all is ASCII.
pub(crate) fn lossy_text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_gives_replacement_characters() {
        assert!(matches!(lossy_text(b"text"), Cow::Borrowed("text")));
        assert_eq!(lossy_text("tëxt".as_bytes()), "tëxt");
        assert_eq!(lossy_text(b"a\xffb"), "a\u{fffd}b");
    }
}
