//! What the log keeps of a message besides the message: from when it may be received, and what has
//! been received and sent before.

use quelea_model::{Seq, Timestamp};

/// From when a message may be received (BDQS §III-B.3: the tuple's T), and how often it has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// The message.
    pub seq: Seq,
    /// It may be received from then on.
    pub visible_at: Timestamp,
    /// When it was received for the first time; zero if it never was.
    pub first_received_at: Timestamp,
    /// How often it has been received. A reception that was undone does not count.
    pub receive_count: u16,
}

/// A message that was sent with a deduplication id: for some minutes another one with that id is
/// taken for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deduplication {
    /// The message.
    pub seq: Seq,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// Hash of the id within its scope.
    pub key: [u64; 2],
    /// The message id that was returned to the sender.
    pub message_id: [u8; 16],
}
