//! The sender's question.

use bytes::{Buf, BufMut};

use crate::wire::{Malformed, NUMBER_MAX};

/// Bytes of a PROBE's body.
pub const PROBE_BYTES: usize = 32;

/// A PROBE's body: the sender asks for a STATUS, and says how far the flow has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// One past the highest sequence that was sent.
    pub next: u64,
    /// Everything below is given up or done; the receiver need not wait for it. Not above `next`.
    pub floor: u64,
    /// The number of the next message that the flow will have.
    pub next_message: u64,
    /// The sender's clock in microseconds; the STATUS gives it back.
    pub sent_at_us: u64,
}

impl Probe {
    /// Appends the body.
    pub fn write(&self, body: &mut impl BufMut) {
        debug_assert!(self.floor <= self.next && self.next <= NUMBER_MAX + 1, "{self:?}");
        body.put_u64_le(self.next);
        body.put_u64_le(self.floor);
        body.put_u64_le(self.next_message);
        body.put_u64_le(self.sent_at_us);
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It is cut off or contradicts itself.
    pub fn read(mut body: &[u8]) -> Result<Self, Malformed> {
        if body.len() < PROBE_BYTES {
            return Err(Malformed::Probe);
        }
        let probe = Self {
            next: body.get_u64_le(),
            floor: body.get_u64_le(),
            next_message: body.get_u64_le(),
            sent_at_us: body.get_u64_le(),
        };
        if probe.floor > probe.next || probe.next > NUMBER_MAX + 1 {
            return Err(Malformed::Probe);
        }
        // A datagram counts its messages in 16 bits; so the number fits, whatever it is added to.
        if probe.next_message > probe.next * u64::from(u16::MAX) {
            return Err(Malformed::Probe);
        }
        Ok(probe)
    }
}
