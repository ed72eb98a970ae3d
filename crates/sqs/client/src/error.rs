//! Why a call failed.

use std::fmt;
use std::io;

use serde::Deserialize;

use crate::loss::Loss;
use crate::response::ResponseError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        /// The endpoint's URL.
        endpoint: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The request could not be written.
    #[error("cannot send the request: {0}")]
    Write(#[source] io::Error),
    /// No response, or none that can be read. Whether the service did what it was asked for is
    /// not known.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// The service refused.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The service's answer is not what the operation answers with.
    #[error("the answer to {action} is not understood: {source}")]
    Answer {
        /// The operation.
        action: &'static str,
        /// The parser's words.
        source: serde_json::Error,
    },
    /// A batch has no entry, or more than ten.
    #[error("a batch has 1 to 10 entries, not {entries}")]
    BatchSize {
        /// How many it has.
        entries: usize,
    },
    /// The call was given up, by another thread's wish.
    #[error("the call was cancelled")]
    Cancelled,
    /// A test made the call fail (see [`crate::Client::inject`]).
    #[error("the {0} was lost on purpose")]
    Lost(Loss),
}

/// An error as the service names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ServiceError {
    /// HTTP status.
    pub status: u16,
    /// Such as `QueueDoesNotExist`, without the prefix.
    pub code: String,
    /// The service's words.
    pub message: String,
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (HTTP {}): {}", self.code, self.status, self.message)
    }
}

/// Codes with which a service asks to come again, whatever the HTTP status.
const COME_AGAIN: [&str; 5] = [
    "InternalFailure",
    "OverLimit",
    "RequestThrottled",
    "ServiceUnavailable",
    "ThrottlingException",
];

impl Error {
    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Write(_) | Self::Lost(_) => true,
            Self::Response(error) => {
                !matches!(error, ResponseError::Malformed(_) | ResponseError::TooLong { .. })
            }
            Self::Service(error) => error.is_transient(),
            Self::Answer { .. } | Self::BatchSize { .. } | Self::Cancelled => false,
        }
    }
}

impl Error {
    /// Returns whether the answer is longer than a client takes. Another answer may not be.
    pub(crate) const fn is_too_long(&self) -> bool {
        matches!(self, Self::Response(ResponseError::TooLong { .. }))
    }
}

impl ServiceError {
    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.status >= 500 || self.status == 429 || COME_AGAIN.contains(&self.code.as_str())
    }

    /// Parses a response's body: `{"__type": "prefix#Code", "message": "…"}`. Some servers write
    /// `Message`, some send no JSON.
    pub(crate) fn parse(status: u16, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Shape {
            #[serde(rename = "__type", default)]
            code: String,
            #[serde(alias = "Message", default)]
            message: String,
        }
        let Ok(shape) = serde_json::from_slice::<Shape>(body) else {
            let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            return Self { status, code: "Unknown".to_owned(), message: text };
        };
        let code = shape.code.rsplit_once('#').map_or(shape.code.as_str(), |(_, code)| code);
        let code = if code.is_empty() { "Unknown" } else { code };
        Self { status, code: code.to_owned(), message: shape.message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_found_behind_its_prefix() {
        let body = br#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}"#;
        let found = ServiceError::parse(400, body);
        assert_eq!((found.code.as_str(), found.message.as_str()), ("QueueDoesNotExist", "gone"));
        assert!(!found.is_transient());
        let capital = ServiceError::parse(400, br#"{"__type":"OverLimit","Message":"full"}"#);
        assert_eq!((capital.code.as_str(), capital.message.as_str()), ("OverLimit", "full"));
        assert!(capital.is_transient());
    }

    #[test]
    fn an_error_without_json_keeps_its_text_and_status() {
        let found = ServiceError::parse(502, b"<html>Bad Gateway</html>");
        assert_eq!(found.to_string(), "Unknown (HTTP 502): <html>Bad Gateway</html>");
        assert!(found.is_transient());
        assert!(!ServiceError::parse(403, b"").is_transient());
    }
}
