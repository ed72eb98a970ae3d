//! Errors that a client is sent.

use quelea_elastic_proto::frame::{ErrorCode, WireError};

/// An error that does not end the connection.
pub(crate) fn refusal(code: ErrorCode, field: &str, text: impl Into<String>) -> WireError {
    WireError { code, field: field.to_owned(), text: text.into(), fatal: false }
}

/// An error after which nothing more is taken from the client.
pub(crate) fn fatal(code: ErrorCode, field: &str, text: impl Into<String>) -> WireError {
    WireError { fatal: true, ..refusal(code, field, text) }
}
