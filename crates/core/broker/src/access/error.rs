//! Why something about users was refused.

/// Why something about users was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No such user.
    #[error("no user '{user}'")]
    NoSuchUser {
        /// The name.
        user: Box<str>,
    },
    /// A pattern is no regular expression, or too large a one.
    #[error("{field} pattern '{pattern}' is not a regular expression: {reason}")]
    Pattern {
        /// `configure`, `write` or `read`.
        field: &'static str,
        /// The text.
        pattern: Box<str>,
        /// Why.
        reason: String,
    },
    /// A name is empty, too long, or holds control characters.
    #[error("user name: {reason}")]
    UserName {
        /// Why.
        reason: String,
    },
    /// More of something than its limit.
    #[error("{what}: the limit of {max} is reached")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}
