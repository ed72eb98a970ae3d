//! A message's parts, as ZMTP frames (RFC 23): flags, length in one or eight bytes (big-endian), body.
//!
//! The parts of a message stand in a DATA frame as they would on a ZMTP connection.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::limits::{MESSAGE_BYTES_MAX, PARTS_MAX};

/// Another part follows.
pub const MORE: u8 = 0x01;
/// The length has eight bytes.
pub const LONG: u8 = 0x02;
/// The longest body whose length has one byte.
const SHORT_BODY_BYTES_MAX: usize = 255;

/// Returns how many bytes a part has on the wire.
#[must_use]
pub const fn part_bytes(body_bytes: usize) -> usize {
    if body_bytes > SHORT_BODY_BYTES_MAX { 9 + body_bytes } else { 2 + body_bytes }
}

/// Returns how many bytes a message with these parts has on the wire.
pub fn message_bytes<P: AsRef<[u8]>>(parts: &[P]) -> usize {
    parts.iter().map(|part| part_bytes(part.as_ref().len())).sum()
}

/// Appends one part.
pub fn put_part(out: &mut BytesMut, body: &[u8], more: bool) {
    put_part_header(out, body.len(), more);
    out.put_slice(body);
}

/// Appends a part's flags and length: its body is written by other means.
pub fn put_part_header(out: &mut BytesMut, body_bytes: usize, more: bool) {
    let more = if more { MORE } else { 0 };
    match u8::try_from(body_bytes) {
        Ok(length) => out.put_slice(&[more, length]),
        Err(_) => {
            out.put_u8(more | LONG);
            out.put_u64(body_bytes as u64);
        }
    }
}

/// Appends all parts of one message.
///
/// # Errors
/// If there is no part, or too many, or too large ones; then nothing is appended.
pub fn put_parts<P: AsRef<[u8]>>(out: &mut BytesMut, parts: &[P]) -> Result<(), PartsError> {
    check_sizes(parts)?;
    put_checked(out, parts);
    Ok(())
}

/// Appends all parts of one message that [`check_sizes`] has seen.
pub(crate) fn put_checked<P: AsRef<[u8]>>(out: &mut BytesMut, parts: &[P]) {
    for (index, part) in parts.iter().enumerate() {
        put_part(out, part.as_ref(), index + 1 < parts.len());
    }
}

/// Checks whether these parts make a message.
///
/// # Errors
/// If there is no part, or too many, or too large ones.
pub fn check_sizes<P: AsRef<[u8]>>(parts: &[P]) -> Result<(), PartsError> {
    if parts.is_empty() {
        return Err(PartsError::None);
    }
    if parts.len() > PARTS_MAX {
        return Err(PartsError::TooMany { value: parts.len() });
    }
    let value = message_bytes(parts);
    if value > MESSAGE_BYTES_MAX {
        return Err(PartsError::TooLarge { value });
    }
    Ok(())
}

/// Returns a message's parts as one `Bytes`, in one allocation.
///
/// # Errors
/// As [`put_parts`].
pub fn encode<P: AsRef<[u8]>>(parts: &[P]) -> Result<Bytes, PartsError> {
    check_sizes(parts)?;
    let mut out = BytesMut::with_capacity(message_bytes(parts));
    put_parts(&mut out, parts)?;
    Ok(out.freeze())
}

/// Returns the first part's body: what prefixes are compared with. Looks at no other part.
///
/// # Errors
/// If the first part is not whole or its flags are none.
pub fn first(message: &[u8]) -> Result<&[u8], PartsError> {
    let head = Head::read(message, 0)?;
    Ok(&message[head.begin..head.end])
}

/// Returns what follows the first part, as it is framed; shares its memory. The length of a short
/// part may have eight bytes, so a body's length does not tell where the next part begins.
///
/// # Errors
/// If the first part is not whole or its flags are none.
pub fn rest(message: &Bytes) -> Result<Bytes, PartsError> {
    Ok(message.slice(Head::read(message, 0)?.end..))
}

/// Checks that `message` is exactly one message, and counts its parts.
///
/// # Errors
/// What is wrong with it.
pub fn check(message: &[u8]) -> Result<usize, PartsError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(PartsError::TooLarge { value: message.len() });
    }
    let mut at = 0;
    for count in 1..=PARTS_MAX {
        let head = Head::read(message, at)?;
        at = head.end;
        if !head.more {
            return match message.len() - at {
                0 => Ok(count),
                bytes => Err(PartsError::Trailing { bytes }),
            };
        }
    }
    Err(PartsError::TooMany { value: PARTS_MAX + 1 })
}

/// The bodies of a message's parts. Ends at the last part, or where what follows is no part: messages
/// of a decoded DATA frame are checked and have none of these.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    message: &'a [u8],
    at: Option<usize>,
}

impl<'a> Parts<'a> {
    /// Creates the iterator over the parts of this message.
    #[must_use]
    pub const fn new(message: &'a [u8]) -> Self {
        Self { message, at: Some(0) }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let head = Head::read(self.message, self.at?).ok();
        self.at = head.as_ref().and_then(|head| head.more.then_some(head.end));
        head.map(|head| &self.message[head.begin..head.end])
    }
}

/// Returns the bodies of a message's parts as slices that share its memory.
pub fn slices(message: &Bytes) -> impl Iterator<Item = Bytes> {
    Parts::new(message).map(|part| message.slice_ref(part))
}

/// Where a part's body is.
struct Head {
    begin: usize,
    end: usize,
    more: bool,
}

impl Head {
    #[inline]
    fn read(message: &[u8], at: usize) -> Result<Self, PartsError> {
        let rest = &message[at..];
        let Some((&flags, after)) = rest.split_first() else {
            return Err(PartsError::Short { needed: 2, left: 0 });
        };
        if flags & !(MORE | LONG) != 0 {
            return Err(PartsError::Flags { value: flags });
        }
        let (head_bytes, body_bytes) = if flags & LONG == 0 {
            let Some(&length) = after.first() else {
                return Err(PartsError::Short { needed: 2, left: 1 });
            };
            (2, usize::from(length))
        } else {
            let Some(length) = after.first_chunk::<8>() else {
                return Err(PartsError::Short { needed: 9, left: rest.len() });
            };
            let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
            (9, length)
        };
        let left = rest.len() - head_bytes;
        if body_bytes > left {
            return Err(PartsError::Short { needed: body_bytes, left });
        }
        let begin = at + head_bytes;
        Ok(Self { begin, end: begin + body_bytes, more: flags & MORE != 0 })
    }
}

/// What is wrong with a message's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartsError {
    /// A message has at least one part.
    #[error("message: has no part")]
    None,
    /// More than [`PARTS_MAX`].
    #[error("message: {value} parts are more than the limit of {PARTS_MAX}")]
    TooMany {
        /// How many, or one more than may be.
        value: usize,
    },
    /// More than [`MESSAGE_BYTES_MAX`].
    #[error(
        "message: {value} bytes with all its parts are more than the limit of {MESSAGE_BYTES_MAX}"
    )]
    TooLarge {
        /// How many.
        value: usize,
    },
    /// It ends within a part.
    #[error("message: a part needs {needed} bytes and {left} are left")]
    Short {
        /// Bytes of the part.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// Bytes behind the last part.
    #[error("message: {bytes} bytes are left behind the last part")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// Flags other than MORE and LONG.
    #[error("message: a part's flags are {value:#04x}, only MORE (0x01) and LONG (0x02) are known")]
    Flags {
        /// They.
        value: u8,
    },
}
