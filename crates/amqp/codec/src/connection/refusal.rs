//! Why a connection is to be closed because of what the client sent.

use crate::event::Event;
use crate::method::Method;
use crate::reply_code::ReplyCode;
use crate::wire::DecodeError;

/// What a frame results in: an event, nothing to report, or the end of the connection.
pub(super) type Outcome = Result<Option<Event>, Box<Refusal>>;

/// What the close that answers the client's error says.
pub(super) struct Refusal {
    pub(super) code: ReplyCode,
    pub(super) text: String,
    pub(super) class_id: u16,
    pub(super) method_id: u16,
}

impl Refusal {
    /// Returns a refusal without a method to blame.
    pub(super) fn new(code: ReplyCode, text: impl Into<String>) -> Box<Self> {
        Box::new(Self { code, text: text.into(), class_id: 0, method_id: 0 })
    }

    pub(super) fn of_method(
        code: ReplyCode,
        text: impl Into<String>,
        method: &Method,
    ) -> Box<Self> {
        let (class_id, method_id) = (method.class_id(), method.method_id());
        Box::new(Self { code, text: text.into(), class_id, method_id })
    }
}

/// Returns the refusal of a method that cannot be decoded.
#[cold]
pub(super) fn malformed(payload: &[u8], error: &DecodeError) -> Box<Refusal> {
    let code = match error {
        DecodeError::UnknownMethod { .. } => ReplyCode::NotImplemented,
        _ => ReplyCode::SyntaxError,
    };
    let mut refusal = Refusal::new(code, error.to_string());
    if let Some([a, b, c, d]) = payload.first_chunk() {
        refusal.class_id = u16::from_be_bytes([*a, *b]);
        refusal.method_id = u16::from_be_bytes([*c, *d]);
    }
    refusal
}
