//! What can end a measurement of CMQ early.

use std::io;
use std::net::{IpAddr, SocketAddr};

use quelea_cmq::{DestinationError, MailboxError, PushError};

/// Why a measurement of CMQ ended without its report.
#[derive(Debug, thiserror::Error)]
pub enum CmqError {
    /// No socket.
    #[error("cannot bind {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The multicast group cannot be joined.
    #[error("cannot join {group}: {source}")]
    Join {
        /// Which.
        group: IpAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The library refused the destination.
    #[error("destination: {0}")]
    Destination(#[from] DestinationError),
    /// The library refused the mailbox.
    #[error("mailbox: {0}")]
    Mailbox(#[from] MailboxError),
    /// The library refused a message.
    #[error("push: {0}")]
    Push(#[from] PushError),
    /// A line between the two ends could not be passed.
    #[error("lines between the ends: {0}")]
    Line(#[source] io::Error),
    /// The other end, or whoever gives the orders, said something that is not understood.
    #[error("not understood: {0}")]
    Order(String),
    /// An end could not be started.
    #[error("cannot start the other end: {0}")]
    Start(#[source] io::Error),
    /// An end ended before its time.
    #[error("the {0} ended before its time")]
    Ended(&'static str),
    /// The peer did not acknowledge in time.
    #[error("{messages} messages were not acknowledged within {seconds} s")]
    NotAcknowledged {
        /// Of the run.
        messages: u64,
        /// How long was waited.
        seconds: u64,
    },
    /// A ping had no answer.
    #[error("ping {number} had no answer within {seconds} s")]
    NoAnswer {
        /// Which one of the run.
        number: u64,
        /// How long was waited.
        seconds: u64,
    },
    /// The soak found something.
    #[error("{0}")]
    Soak(String),
}
