//! A datagram, as its sender counts it.

use bytes::Bytes;

use crate::time::Time;

/// What the kernel takes of a receive buffer for a datagram besides its bytes (research/cmq.md, 3.6).
pub const DATAGRAM_OVERHEAD_BYTES: u32 = 800;

/// A datagram that leaves for the first time.
#[derive(Debug)]
pub struct Sent {
    /// Its sequence: one more than the last one's.
    pub sequence: u64,
    /// Messages that begin in it.
    pub messages: u16,
    /// Its bytes as the receiving kernel counts them: [`charge`].
    pub charge: u32,
    /// The datagram itself, if it may have to be repeated. A slice of its train.
    pub kept: Option<Bytes>,
    /// When it is not worth repeating any more. Never before an earlier datagram's.
    pub expires: Option<Time>,
}

/// What a datagram of `bytes` takes of the receiver's credit.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // A datagram has at most 65,507 bytes.
pub const fn charge(bytes: usize) -> u32 {
    bytes as u32 + DATAGRAM_OVERHEAD_BYTES
}
