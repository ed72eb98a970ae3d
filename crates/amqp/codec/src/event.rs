//! What a connection reports to its caller.

use bytes::Bytes;

use crate::method::{Method, basic};
use crate::sasl::Mechanism;
use crate::short_str::ShortStr;

/// What happened on a connection, in the order in which the client caused it.
///
/// Every [`Event::ChannelOpen`] is followed by exactly one [`Event::ChannelClosed`] of that channel
/// or by [`Event::Closed`]; nothing follows `Closed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The client wants to log in: check it and call `authenticated`. No event comes before that.
    Authenticate {
        /// How it sent its credentials.
        mechanism: Mechanism,
        /// User name.
        user: String,
        /// Password.
        password: Bytes,
    },
    /// The client wants to enter a virtual host: check it and call `opened`. No event comes before
    /// that.
    Open {
        /// The virtual host's name.
        vhost: ShortStr,
    },
    /// A channel was opened; its open-ok is queued already.
    ChannelOpen(u16),
    /// A channel is closed: by the client, by `close_channel`, or because the client broke a limit.
    /// Release what it held, then call `channel_close_ok`.
    ChannelClosed(u16),
    /// A method for the broker: neither `basic.publish` nor one of opening and closing.
    Method {
        /// The open channel that it came on.
        channel: u16,
        /// The method, one that a client may send.
        method: Method,
    },
    /// A whole message was published.
    Publish {
        /// The open channel that it came on.
        channel: u16,
        /// Exchange, routing key and flags.
        publish: basic::Publish,
        /// Wire-shaped properties, checked but for the inside of the headers.
        properties: Bytes,
        /// The body.
        body: Bytes,
    },
    /// The client brings a fresh secret: check it, then send `connection.update-secret-ok` on
    /// channel 0, or close.
    UpdateSecret {
        /// The secret; with PLAIN and AMQPLAIN, a password.
        secret: Bytes,
    },
    /// The connection is over, with all its channels, for whatever reason; `close_cause` says which.
    /// Release what it held, then call `connection_close_ok`.
    Closed,
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseCause {
    /// The client closed it.
    Client {
        /// Reply code's number; 200 when all is well.
        code: u16,
        /// The client's words.
        text: ShortStr,
    },
    /// We closed it, with this reply text, `CODE_NAME - detail`.
    Server {
        /// Reply code's number.
        code: u16,
        /// The text as sent.
        text: ShortStr,
    },
    /// It does not speak AMQP 0-9-1.
    WrongProtocol {
        /// Its first eight bytes.
        header: [u8; 8],
    },
    /// The login was refused.
    LoginRefused,
    /// The handshake took too long.
    HandshakeTimeout,
    /// Nothing came from the client for two heartbeat intervals.
    HeartbeatTimeout,
}
