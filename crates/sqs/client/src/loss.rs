//! What tests and experiments have the client lose.

use std::fmt;

/// What a fault loses (BDQS §V-D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The connection ends before the request leaves: the service knows nothing of it.
    Request,
    /// The connection ends before the response is read: the service has done what was asked.
    Response,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Response => "response",
        })
    }
}
