//! Why a connection ends.

use crate::SocketType;

/// What ends a connection; nothing that comes after it is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each text names its fields")]
pub enum Error {
    /// The first bytes are not ZMTP's signature: another protocol, or ZMTP 1.0.
    #[error("not ZMTP 3: byte {at} of the greeting is {byte:#04x}, not {expected:#04x}")]
    Signature { at: usize, byte: u8, expected: u8 },
    /// An older version; its peers cannot be spoken to.
    #[error("ZMTP version {major} is not spoken here, only 3.0 and above")]
    Version { major: u8 },
    /// The peer wants another security mechanism.
    #[error("the mechanism is {ours} here, the peer's is {theirs:?}")]
    Mechanism { ours: &'static str, theirs: String },
    /// Reserved bits of a frame's flags are set, or a command has MORE.
    #[error("a frame's flags are {0:#04x}")]
    Flags(u8),
    /// A command is too long.
    #[error("a command's length is {length}, the limit is {max}")]
    CommandBytes { length: u64, max: usize },
    /// A message is too long.
    #[error("a message's length with its parts' headers is at least {length}, the limit is {max}")]
    MessageBytes { length: u64, max: usize },
    /// A message has too many parts.
    #[error("a message has more parts than the limit of {max}")]
    Parts { max: usize },
    /// A command that is not what the protocol says.
    #[error("the command {command} is malformed: {what}")]
    Malformed { command: &'static str, what: &'static str },
    /// Something else was due.
    #[error("{got} came, but {expected} was due")]
    Unexpected { got: String, expected: &'static str },
    /// The peer's socket has no business with ours.
    #[error("the peer's Socket-Type is {theirs:?}, which a {ours} does not talk to")]
    SocketType { ours: SocketType, theirs: String },
    /// The user, the password or the key is not known here.
    #[error("access denied for {who}")]
    Denied { who: String },
    /// A CURVE box does not open: wrong keys, or a forgery.
    #[error("the box in CURVE's {command} cannot be opened: wrong key, or not from the peer")]
    Box { command: &'static str },
    /// A CURVE nonce is not above the last one: a replay.
    #[error("CURVE's nonce {nonce} is not above {last}")]
    Nonce { nonce: u64, last: u64 },
    /// The peer said ERROR.
    #[error("the peer refuses: {reason:?}")]
    Refused { reason: String },
    /// The handshake takes too long.
    #[error("no complete handshake within {ms} ms")]
    HandshakeTimeout { ms: u64 },
    /// Our PING was not answered.
    #[error("nothing came within {ms} ms of a PING")]
    Silent { ms: u64 },
    /// The peer promised to be heard within its time to live, and was not.
    #[error("nothing came within the peer's own time to live of {ms} ms")]
    Ttl { ms: u64 },
}

impl Error {
    /// Returns the means by which the peer failed to prove that it may be here, or that it tried to
    /// do without; `None` for any other error.
    #[must_use]
    pub const fn failed_sign_in(&self) -> Option<&'static str> {
        match self {
            Self::Denied { .. } => Some("identity"),
            Self::Box { .. } => Some("box"),
            Self::Mechanism { .. } => Some("mechanism"),
            _ => None,
        }
    }

    pub(crate) const fn malformed(command: &'static str, what: &'static str) -> Self {
        Self::Malformed { command, what }
    }
}
