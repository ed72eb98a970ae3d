//! Why a program of the exchange gives up.

use quelea_bench::BenchError;
use quelea_bench::shared::ServeStartError;

use crate::messages::Malformed;

/// Why it ended before it was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Options that contradict one another.
    #[error("{0}")]
    Arguments(String),
    /// The broker.
    #[error(transparent)]
    Broker(#[from] BenchError),
    /// The broker sent what is no AMQP 0-9-1, or none that was asked for.
    #[error("the broker broke the protocol: {0}")]
    Protocol(String),
    /// `basic.nack`.
    #[error("the broker has refused a message (basic.nack)")]
    Refused,
    /// `basic.cancel`: somebody has deleted the queue.
    #[error("the broker has cancelled the consumer: its queue is gone")]
    Cancelled,
    /// A message that is none of the exchange's.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A message that does not belong into this queue, is doubled or out of order, or comes where another is lost.
    #[error("the {who} got {what}")]
    Unexpected {
        /// The program.
        who: &'static str,
        /// The message.
        what: String,
    },
    /// Nothing came for long, though something is owed.
    #[error("nothing came for {seconds} s: {missing}")]
    Silence {
        /// So long.
        seconds: u64,
        /// What is owed.
        missing: String,
    },
    /// A program of the run.
    #[error("{program}: {reason}")]
    Program {
        /// Which one.
        program: &'static str,
        /// How it ended.
        reason: String,
    },
    /// The broker that was to be started.
    #[error(transparent)]
    Start(#[from] ServeStartError),
    /// The elastic queue of the feed.
    #[error("the feed: {0}")]
    Elastic(#[from] quelea_elastic_client::Error),
    /// CMQ's destination of the feed.
    #[error("the feed: {0}")]
    Destination(#[from] quelea_cmq::DestinationError),
    /// CMQ's mailbox of the feed.
    #[error("the feed: {0}")]
    Mailbox(#[from] quelea_cmq::MailboxError),
    /// A datagram of the feed.
    #[error("the feed: {0}")]
    Push(#[from] quelea_cmq::PushError),
    /// The elastic queue cannot be made.
    #[error("cannot make the elastic queue of the feed: {0}")]
    Queue(#[from] ureq::Error),
    /// Ctrl-C, SIGTERM, or a terminal that was closed.
    #[error("interrupted")]
    Interrupted,
    /// A file or a process.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns whether a new connection may help: the broker has died, or is restarting.
    #[must_use]
    pub const fn is_disconnect(&self) -> bool {
        matches!(
            self,
            Self::Broker(
                BenchError::Socket(_)
                    | BenchError::Disconnected { .. }
                    | BenchError::Connect { .. }
                    | BenchError::ConnectionClosed { .. }
            )
        )
    }
}
