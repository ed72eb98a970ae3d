//! A datagram, as its sender counts it.

use bytes::Bytes;

use crate::Time;

/// A datagram that leaves for the first time.
#[derive(Debug)]
pub struct Sent {
    /// Its sequence: one more than the last one's.
    pub sequence: u64,
    /// Messages that begin in it.
    pub messages: u16,
    /// Its bytes as the receiving kernel counts them: [`charge`](crate::charge::charge).
    pub charge: u32,
    /// The datagram itself, if it may have to be repeated. A slice of its train.
    pub kept: Option<Bytes>,
    /// When it is not worth repeating any more. Never before an earlier datagram's.
    pub expires: Option<Time>,
}
