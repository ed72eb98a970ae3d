//! Why something was refused.

use crate::key::Mailbox;

/// Why a push was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// It can never be sent.
    #[error("the message has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// The message's.
        bytes: usize,
        /// This destination's.
        limit: usize,
    },
    /// No room now, or no credit; try again when `Endpoint::writable` says so.
    #[error("no room for the message now")]
    WouldBlock,
    /// The destination was closed.
    #[error("the destination is closed")]
    Closed,
    /// It is not text, but the queue is one of the original's `String`s.
    #[error("the message is not UTF-8, and a classic queue of String carries nothing else")]
    NotText,
}

/// Why a destination was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// There are too many.
    #[error("there are {limit} destinations, which is the limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// It exists with other options.
    #[error("the destination exists with other options")]
    Conflict,
    /// The combination makes no sense; says which.
    #[error("{0}")]
    Invalid(&'static str),
}

/// Why a mailbox was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// It is open already.
    #[error("mailbox {0} is open already")]
    Open(Mailbox),
    /// All that have no mailbox of their own are open already.
    #[error("the mailboxes that are not opened by themselves are open already")]
    OthersOpen,
    /// There are too many.
    #[error("there are {limit} mailboxes, which is the limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}
