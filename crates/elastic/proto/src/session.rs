//! A producer and a listener as state machines: they follow moves and failures of relays, send again,
//! drop what came twice, keep each producer's order, and say what is missing.
//!
//! A driver gives them what happens (`handle_*`), and does what they ask for (`poll`), then what they
//! have for the program. Time comes in; they ask to be called again at `next_deadline`.

mod driven;
mod listener;
mod outbox;
mod producer;

pub use driven::Session;
pub use listener::{
    Event, GapNotice, ListenerConfig, ListenerSession, ListenerStats, Message, SubscribeError,
};
pub use producer::{ProducerConfig, ProducerSession, ProducerStats, PublishError};

use bytes::Bytes;

use crate::Frame;
use crate::frame::{NoticeCode, RelayAddress, WireError};

/// A connection to a relay, numbered by the session that asked for it. Never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

/// What a session wants its driver to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Connect to a relay and say HELLO; then `handle_connected` (without waiting for WELCOME), or
    /// `handle_lost`.
    Connect {
        /// The connection's number from now on.
        link: Link,
        /// Where to.
        relay: RelayAddress,
    },
    /// Write these bytes.
    Send {
        /// Where to.
        link: Link,
        /// Whole frames.
        bytes: Bytes,
    },
    /// Close the connection when what was to be sent on it is written. Nothing of it is handled any more.
    Close {
        /// Which.
        link: Link,
    },
    /// A frame for the directory; the session gives none while it knows of no connection to one.
    Directory(Frame),
}

/// An event of a session for its program, beside messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The directory says something about the queue.
    Notice {
        /// What.
        code: NoticeCode,
        /// For people.
        text: String,
    },
    /// A relay or the directory refused something.
    Refused(WireError),
    /// All is acknowledged and the queue was left: the session is over.
    Closed,
}
