//! The receiver's word on a flow.

use bytes::{Buf, BufMut};

use crate::limits::STATUS_RANGES_MAX;
use crate::wire::{Malformed, NUMBER_MAX, varint};

/// Bytes of a STATUS's body without ranges.
pub const STATUS_BYTES_MIN: usize = 57;

/// Bytes of a STATUS's body at most: each range is two numbers of 48 bits, as varints.
pub const STATUS_BYTES_MAX: usize = STATUS_BYTES_MIN + STATUS_RANGES_MAX * 14;

/// A STATUS's body. The header's session, flow and mailbox are the flow's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The receiver's own session: another after its restart, when the sender repeats everything that
    /// is not acknowledged.
    pub receiver_session: u64,
    /// Everything below was received, or will not be waited for.
    pub received_below: u64,
    /// Everything below may be forgotten by the sender. Not above `received_below`.
    pub acknowledged_below: u64,
    /// One past the highest sequence that arrived.
    pub highest: u64,
    /// Bytes, as the kernel counts them, that may be under way beyond what arrived.
    pub window_bytes: u32,
    /// Messages lost so far, as far as the receiver knows.
    pub lost_messages: u64,
    /// Microseconds between the arrival of what this answers (the PROBE of `echo_us`, or else
    /// `highest - 1`) and this word.
    pub delay_us: u32,
    /// The `sent_at_us` of the PROBE that this answers; 0 if it answers none.
    pub echo_us: u64,
    /// Ranges received above `received_below`, each as (first, one past the last), ascending, with
    /// something missing before each. At most `STATUS_RANGES_MAX`.
    pub ranges: Vec<(u64, u64)>,
}

impl Status {
    /// Appends the body. Of too many ranges it keeps the lowest: what is missing between them is what
    /// the sender has to repeat first.
    pub fn write(&self, body: &mut impl BufMut) {
        debug_assert!(self.acknowledged_below <= self.received_below, "{self:?}");
        body.put_u64_le(self.receiver_session);
        body.put_u64_le(self.received_below);
        body.put_u64_le(self.acknowledged_below);
        body.put_u64_le(self.highest);
        body.put_u32_le(self.window_bytes);
        body.put_u64_le(self.lost_messages);
        body.put_u32_le(self.delay_us);
        body.put_u64_le(self.echo_us);
        let ranges = &self.ranges[..self.ranges.len().min(STATUS_RANGES_MAX)];
        body.put_u8(ranges.len() as u8);
        let mut below = self.received_below;
        for &(first, end) in ranges {
            debug_assert!(below < first && first < end && end <= self.highest, "{self:?}");
            varint::write(body, first - below);
            varint::write(body, end - first);
            below = end;
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It is cut off or contradicts itself.
    pub fn read(mut body: &[u8]) -> Result<Self, Malformed> {
        if body.len() < STATUS_BYTES_MIN {
            return Err(Malformed::Status);
        }
        let mut status = Self {
            receiver_session: body.get_u64_le(),
            received_below: body.get_u64_le(),
            acknowledged_below: body.get_u64_le(),
            highest: body.get_u64_le(),
            window_bytes: body.get_u32_le(),
            lost_messages: body.get_u64_le(),
            delay_us: body.get_u32_le(),
            echo_us: body.get_u64_le(),
            ranges: Vec::new(),
        };
        let ranges = usize::from(body.get_u8());
        if status.acknowledged_below > status.received_below
            || status.received_below.max(status.highest) > NUMBER_MAX + 1
            || ranges > STATUS_RANGES_MAX
        {
            return Err(Malformed::Status);
        }
        status.ranges.reserve_exact(ranges);
        let mut below = status.received_below;
        for _ in 0..ranges {
            let missing = varint::read_u64(&mut body).map_err(|_| Malformed::Status)?;
            let there = varint::read_u64(&mut body).map_err(|_| Malformed::Status)?;
            let first = below.checked_add(missing).ok_or(Malformed::Status)?;
            let end = first.checked_add(there).ok_or(Malformed::Status)?;
            if missing == 0 || there == 0 || end > status.highest {
                return Err(Malformed::Status);
            }
            status.ranges.push((first, end));
            below = end;
        }
        Ok(status)
    }
}
