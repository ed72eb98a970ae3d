//! A message's body in an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::GET_BYTES_MAX;

/// The beginning of a body, as JSON can hold it.
pub(crate) struct Payload {
    pub(crate) text: String,
    /// `string`, or `base64` of what is not text.
    pub(crate) encoding: &'static str,
}

impl Payload {
    /// Returns at most so many bytes of a body.
    pub(crate) fn of(body: &[u8], truncate: Option<usize>, is_base64: bool) -> Self {
        let most = truncate.unwrap_or(GET_BYTES_MAX).min(GET_BYTES_MAX);
        let shown = &body[..most.min(body.len())];
        let text = if is_base64 { None } else { std::str::from_utf8(shown).ok() };
        match text {
            Some(text) => Self { text: text.to_owned(), encoding: "string" },
            None => Self { text: STANDARD.encode(shown), encoding: "base64" },
        }
    }
}
