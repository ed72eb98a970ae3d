//! The body of DATA: messages, each with its length before it, or one fragment of a message. What
//! follows the last message is padding.

use bytes::BufMut;

use crate::limits;
use crate::wire::{Malformed, varint};

/// Returns how many bytes a message of `length` takes in a body.
#[must_use]
#[inline]
pub const fn framed_bytes(length: usize) -> usize {
    if length < 0x80 { length + 1 } else { length + varint::encoded_bytes(length as u64) }
}

/// Appends a message to a body.
#[inline]
pub fn write_message(body: &mut impl BufMut, message: &[u8]) {
    if message.len() < 0x80 {
        body.put_u8(message.len() as u8);
    } else {
        varint::write(body, message.len() as u64);
    }
    body.put_slice(message);
}

/// Checks that `count` messages stand in `body`, and says where the last one ends. Nothing of a
/// datagram is delivered before.
///
/// # Errors
/// They do not.
#[inline]
pub fn check(body: &[u8], count: u16) -> Result<usize, Malformed> {
    let mut rest = body;
    for _ in 0..count {
        let length = varint::read_u32(&mut rest)? as usize;
        rest = rest.get(length..).ok_or(Malformed::Messages)?;
    }
    Ok(body.len() - rest.len())
}

/// The messages of a body that was checked. Of one that was not, it gives what is whole.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Messages<'a> {
    /// Returns the `count` messages of `body`.
    #[must_use]
    pub const fn new(body: &'a [u8], count: u32) -> Self {
        Self { rest: body, left: count }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        let length = varint::read_u32(&mut self.rest).ok()? as usize;
        let (message, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.left -= 1;
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize))
    }
}

/// What stands before a fragment's bytes.
///
/// A message of `total` bytes in `fragments` datagrams of consecutive sequences is cut evenly: each
/// has ⌈total / fragments⌉ bytes but the last, which has the rest. So a fragment's length follows
/// from its place, and padding behind it does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Which, from 0.
    pub index: u32,
    /// How many the message has.
    pub fragments: u32,
    /// Bytes of the message.
    pub total: u32,
}

impl Fragment {
    /// Returns how many bytes the three numbers take at most for a message of `total` bytes in
    /// `fragments`.
    #[must_use]
    pub const fn head_bytes_max(total: u32, fragments: u32) -> usize {
        2 * varint::encoded_bytes(fragments as u64) + varint::encoded_bytes(total as u64)
    }

    /// Returns in how many fragments a message of `total` bytes goes, so that no body is longer
    /// than `body_bytes`; none if it takes more than `limits::WINDOW_DATAGRAMS_MAX`.
    #[must_use]
    pub fn needed(total: u32, body_bytes: usize) -> Option<u32> {
        let head = Self::head_bytes_max(total, limits::WINDOW_DATAGRAMS_MAX as u32);
        let piece = u32::try_from(body_bytes.checked_sub(head)?).unwrap_or(u32::MAX);
        if piece == 0 {
            return None;
        }
        // As few as do, each full but the last; cut evenly, no one is longer and the last not empty.
        let wanted = total.div_ceil(piece).max(1);
        let fragments = total.div_ceil(total.div_ceil(wanted).max(1)).max(1);
        (fragments as usize <= limits::WINDOW_DATAGRAMS_MAX).then_some(fragments)
    }

    /// Returns where in the message this fragment's bytes are.
    #[must_use]
    pub const fn range(&self) -> core::ops::Range<usize> {
        let piece = self.total.div_ceil(self.fragments) as usize;
        let start = piece * self.index as usize;
        let end =
            if self.index + 1 == self.fragments { self.total as usize } else { start + piece };
        start..end
    }

    /// Appends the fragment of `message` to a body.
    pub fn write(&self, body: &mut impl BufMut, message: &[u8]) {
        debug_assert_eq!(message.len(), self.total as usize, "the whole message, not the piece");
        varint::write(body, u64::from(self.index));
        varint::write(body, u64::from(self.fragments));
        varint::write(body, u64::from(self.total));
        body.put_slice(&message[self.range()]);
    }

    /// Reads a body with one fragment of a datagram whose header says that `count` messages begin in
    /// it. Returns the fragment's bytes too.
    ///
    /// # Errors
    /// It is not what a sender could have cut.
    pub fn read(body: &[u8], count: u16) -> Result<(Self, &[u8]), Malformed> {
        let mut rest = body;
        let index = varint::read_u32(&mut rest)?;
        let fragments = varint::read_u32(&mut rest)?;
        let total = varint::read_u32(&mut rest)?;
        let found = Self { index, fragments, total };
        let begins = u16::from(index == 0);
        if index >= fragments
            || fragments as usize > limits::WINDOW_DATAGRAMS_MAX
            || total as usize > limits::MESSAGE_BYTES_MAX
            || fragments != 1 && (fragments - 1).saturating_mul(total.div_ceil(fragments)) >= total
            || count != begins
        {
            return Err(Malformed::Fragment);
        }
        let piece = rest.get(..found.range().len()).ok_or(Malformed::Fragment)?;
        Ok((found, piece))
    }
}
