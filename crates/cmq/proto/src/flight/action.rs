//! What comes out of a flight.

use bytes::Bytes;

use crate::Time;

/// What the endpoint has to do for a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this datagram again, as it is.
    Repeat(Bytes),
    /// Send a PROBE with these numbers (and the next message's, which the outbox knows).
    Probe {
        /// One past the highest sequence that was sent.
        next: u64,
        /// Everything below is given up, or received.
        floor: u64,
        /// Now; the answer echoes it.
        sent_at: Time,
    },
    /// The receiver is silent for too long. Reliable: nothing will be repeated any more, the
    /// destination is dead. Lossy: what was under way is forgotten and sending goes on.
    Abandon {
        /// Messages that are not known to have arrived (reliable only).
        messages: u64,
    },
}

/// What a STATUS changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its numbers were impossible; nothing was taken from it. To be counted as malformed.
    pub impossible: bool,
    /// The sender was held back, and is no more: go on with what waits.
    pub opened: bool,
    /// The receiver has lost what it knew of the flow (it was started anew, or forgot). Reliable: call
    /// [`super::Flight::restart`] with a new flow number. Lossy: nothing to do.
    pub restarted: bool,
    /// Datagrams that are acknowledged by this word.
    pub acknowledged: u32,
    /// Messages that the receiver counts as lost beyond what it counted before.
    pub lost_messages: u64,
}
