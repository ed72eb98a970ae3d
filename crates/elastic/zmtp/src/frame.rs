//! Frames: flags, length, bytes (ZMTP 3.1 §3.4).

use bytes::BufMut;

use crate::Error;

pub(crate) const MORE: u8 = 0x01;
pub(crate) const LONG: u8 = 0x02;
pub(crate) const COMMAND: u8 = 0x04;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Another part of the same message follows.
    pub more: bool,
    /// It is a command, not a part of a message.
    pub command: bool,
    /// Bytes of the body, as claimed: check them before believing them.
    pub length: u64,
    /// Bytes of this header.
    pub header_bytes: usize,
}

impl Header {
    /// Reads the head at the beginning of `bytes`; `None` if it is not all there.
    ///
    /// # Errors
    /// If reserved flags are set, or a command is said to go on in another frame.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let Some(&flags) = bytes.first() else { return Ok(None) };
        let (more, command) = (flags & MORE != 0, flags & COMMAND != 0);
        if flags & !(MORE | LONG | COMMAND) != 0 || (more && command) {
            return Err(Error::Flags(flags));
        }
        let (length, header_bytes) = if flags & LONG != 0 {
            let Some(length) = bytes.get(1..9) else { return Ok(None) };
            (length.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), 9)
        } else {
            let Some(&length) = bytes.get(1) else { return Ok(None) };
            (u64::from(length), 2)
        };
        Ok(Some(Self { more, command, length, header_bytes }))
    }
}

/// Appends a part of a message as a frame.
pub fn put_frame(out: &mut impl BufMut, more: bool, body: &[u8]) {
    put_header(out, if more { MORE } else { 0 }, body.len());
    out.put_slice(body);
}

/// Appends a command as a frame.
pub(crate) fn put_command(out: &mut impl BufMut, body: &[u8]) {
    put_header(out, COMMAND, body.len());
    out.put_slice(body);
}

/// Appends a frame's head for a body of `length` bytes.
pub(crate) fn put_header(out: &mut impl BufMut, flags: u8, length: usize) {
    if let Ok(short) = u8::try_from(length) {
        out.put_u8(flags);
        out.put_u8(short);
    } else {
        out.put_u8(flags | LONG);
        out.put_u64(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_255_bytes_is_the_last_short_one() {
        for (length, expected) in [(0, 2), (255, 2), (256, 9), (70_000, 9)] {
            let mut out = Vec::new();
            put_frame(&mut out, true, &vec![7; length]);
            let header = Header::parse(&out).unwrap().unwrap();
            assert_eq!((header.more, header.command), (true, false));
            assert_eq!((header.length, header.header_bytes), (length as u64, expected));
            for cut in 0..expected {
                assert_eq!(Header::parse(&out[..cut]), Ok(None), "{length} {cut}");
            }
        }
    }

    #[test]
    fn reserved_flags_and_commands_that_go_on_are_refused() {
        for flags in [0x08, 0x80, 0xff, MORE | COMMAND] {
            assert_eq!(Header::parse(&[flags, 0]), Err(Error::Flags(flags)));
        }
    }
}
