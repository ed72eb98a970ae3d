//! The datagrams of the original library (CMQ-0.0.12 on Hackage), byte for byte.
//!
//! A datagram is what `Data.Serialize.encode` makes of a list: the number of elements, then each of
//! them; no magic, no version, no mailbox, no sequence. An element is a `String`, its number of
//! characters and these in UTF-8, or a strict `ByteString`, its length and bytes. Every number has
//! 64 bits, big-endian. Nothing says which of the two it is: both ends have to agree.

use bytes::BufMut;

use crate::wire::{Malformed, data};

/// Bytes before the first element: how many there are.
pub const LIST_HEAD_BYTES: usize = 8;

/// Bytes before each element: how many characters or bytes it has.
pub const ELEMENT_HEAD_BYTES: usize = 8;

/// The largest datagram that the original takes (`recvFrom 512`): it cuts a larger one off, cannot decode the
/// rest, and its receiver ends for good. So none is ever sent.
pub const DATAGRAM_BYTES_MAX: usize = 512;

/// The longest message, which has a list of its own.
pub const MESSAGE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - LIST_HEAD_BYTES - ELEMENT_HEAD_BYTES;

/// What the list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Haskell's `String`.
    Text,
    /// Haskell's strict `ByteString`.
    Bytes,
}

/// A message that is not UTF-8 cannot be a `String`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is not UTF-8, and a classic queue of String carries nothing else")]
pub struct NotText;

/// Returns how many bytes a message of `length` takes in a list. So the encoded length of a list is
/// known at each push without encoding it again, which the original does.
#[must_use]
pub const fn framed_bytes(length: usize) -> usize {
    ELEMENT_HEAD_BYTES + length
}

/// Returns whether the original would put another message, of `length`, to a list that is encoded
/// in `list_bytes`: `length (encode (m : queue)) < qthresh`; with a greater `qthresh` than its own,
/// whether the original would take it. A list's first message goes in without the question, however
/// large it is.
#[must_use]
pub const fn fits(list_bytes: usize, length: usize, qthresh: usize) -> bool {
    let bytes = list_bytes + framed_bytes(length);
    bytes < qthresh && bytes <= DATAGRAM_BYTES_MAX
}

/// Begins a list. Its length is filled in by [`write_count`].
pub fn begin(list: &mut impl BufMut) {
    list.put_u64(0);
}

/// Appends a message to a list.
///
/// # Errors
/// The list is of `String`s and the message is none. Nothing is appended then.
pub fn write_message(
    list: &mut impl BufMut,
    element: Element,
    message: &[u8],
) -> Result<(), NotText> {
    let length = match element {
        Element::Text => str::from_utf8(message).map_err(|_| NotText)?.chars().count(),
        Element::Bytes => message.len(),
    };
    list.put_u64(length as u64);
    list.put_slice(message);
    Ok(())
}

/// Says how many messages the list has, which is the last thing to do before it is sent. `list`
/// begins where [`begin`] began it.
pub fn write_count(list: &mut [u8], count: u64) {
    list[..LIST_HEAD_BYTES].copy_from_slice(&count.to_be_bytes());
}

/// The messages of a datagram, each as its bytes.
///
/// What the original cannot decode, and what only Haskell's `String` can hold (a lone surrogate), ends
/// in an error; bytes behind the list are ignored, as the original does.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
    left: u64,
    element: Element,
}

impl<'a> Messages<'a> {
    /// Returns the messages of `datagram`.
    ///
    /// # Errors
    /// It has no count, or a greater one than fits in the datagram.
    pub fn new(datagram: &'a [u8], element: Element) -> Result<Self, Malformed> {
        let (left, rest) = number(datagram)?;
        if left > (rest.len() / ELEMENT_HEAD_BYTES) as u64 {
            return Err(Malformed::Classic);
        }
        Ok(Self { rest, left, element })
    }

    fn message(&mut self) -> Result<&'a [u8], Malformed> {
        let (length, rest) = number(self.rest)?;
        let end = match self.element {
            Element::Bytes => usize::try_from(length).map_err(|_| Malformed::Classic)?,
            Element::Text => text_bytes(rest, length)?,
        };
        let (message, rest) = rest.split_at_checked(end).ok_or(Malformed::Classic)?;
        self.rest = rest;
        self.left -= 1;
        Ok(message)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<&'a [u8], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let message = self.message();
        if message.is_err() {
            self.left = 0;
        }
        Some(message)
    }
}

/// Appends the messages of a datagram to `body` as they stand in a DATA (see [`data`]), so that they
/// are delivered as others are. Returns their number.
///
/// # Errors
/// One of them is wrong; then nothing is appended.
pub fn reframe(datagram: &[u8], element: Element, body: &mut Vec<u8>) -> Result<u32, Malformed> {
    let messages = Messages::new(datagram, element)?;
    for message in messages.clone() {
        message?;
    }
    let mut count = 0;
    for message in messages {
        data::write_message(body, message?);
        count += 1;
    }
    Ok(count)
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (number, rest) = bytes.split_first_chunk().ok_or(Malformed::Classic)?;
    Ok((u64::from_be_bytes(*number), rest))
}

/// Returns how many bytes the first `characters` of `text` have, which need not be UTF-8 behind
/// them.
fn text_bytes(text: &[u8], characters: u64) -> Result<usize, Malformed> {
    let mut end = 0;
    for _ in 0..characters {
        // At most the datagram's bytes: each turn takes one or ends in an error.
        let first = *text.get(end).ok_or(Malformed::Classic)?;
        end += match first {
            0..=0x7F => 1,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => return Err(Malformed::Classic),
        };
    }
    let text = text.get(..end).ok_or(Malformed::Classic)?;
    str::from_utf8(text).map_err(|_| Malformed::Classic)?;
    Ok(end)
}
