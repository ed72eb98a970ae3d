//! How messages stand in a byte stream: a line each, or a record with its length before it. Both are
//! binary-safe but for the newline that ends a line.

use std::io::{self, Write};

/// Bytes of a record's length, big-endian.
const LENGTH_BYTES: usize = 4;

/// What separates the messages of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A newline ends each; the last one may lack it.
    Lines,
    /// Each begins with its length, a 32-bit big-endian integer.
    Records,
}

impl Framing {
    /// Writes a message as it will be read.
    pub(crate) fn write(self, out: &mut impl Write, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Lines => {
                out.write_all(message)?;
                out.write_all(b"\n")
            }
            Self::Records => {
                // A message is at most 64 MiB.
                let length = u32::try_from(message.len()).map_err(io::Error::other)?;
                out.write_all(&length.to_be_bytes())?;
                out.write_all(message)
            }
        }
    }
}

/// Why the input cannot be cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("line {line} is longer than {limit} bytes, which is the limit (--message-bytes-max)")]
    LongLine { line: u64, limit: usize },
    #[error(
        "record {record} has {bytes} bytes, more than {limit}, which is the limit \
         (--message-bytes-max)"
    )]
    LongRecord { record: u64, bytes: u32, limit: usize },
    #[error("the input ends within record {record}")]
    CutRecord { record: u64 },
}

/// Cuts chunks of input into messages. Keeps what is unfinished, at most one message.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    framing: Framing,
    message_bytes_max: usize,
    /// The beginning of a message whose end is in a later chunk; of a record with its length.
    kept: Vec<u8>,
    /// What is kept was given out, whole, by the last call.
    is_given: bool,
    /// Messages so far, for errors.
    count: u64,
}

impl FrameDecoder {
    pub(crate) const fn new(framing: Framing, message_bytes_max: usize) -> Self {
        Self { framing, message_bytes_max, kept: Vec::new(), is_given: false, count: 0 }
    }

    /// Takes the first message out of `input`, which is moved on; `None` if all of it is kept for the
    /// next chunk.
    pub(crate) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, FramingError> {
        self.forget_given();
        match self.framing {
            Framing::Lines => self.next_line(input),
            Framing::Records => self.next_record(input),
        }
    }

    /// Returns, at the end of the input, the line that no newline ended; an error if a record is
    /// cut.
    pub(crate) fn finish(&mut self) -> Result<Option<&[u8]>, FramingError> {
        self.forget_given();
        if self.kept.is_empty() {
            return Ok(None);
        }
        self.count += 1;
        match self.framing {
            Framing::Lines => {
                self.is_given = true;
                Ok(Some(&self.kept))
            }
            Framing::Records => Err(FramingError::CutRecord { record: self.count }),
        }
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.kept.clear();
        }
    }

    fn next_line<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, FramingError> {
        let end = memchr::memchr(b'\n', input);
        let part = &input[..end.unwrap_or(input.len())];
        if self.kept.len() + part.len() > self.message_bytes_max {
            let limit = self.message_bytes_max;
            return Err(FramingError::LongLine { line: self.count + 1, limit });
        }
        let Some(end) = end else {
            self.kept.extend_from_slice(part);
            *input = &[];
            return Ok(None);
        };
        *input = &input[end + 1..];
        self.count += 1;
        if self.kept.is_empty() {
            return Ok(Some(part));
        }
        self.kept.extend_from_slice(part);
        self.is_given = true;
        Ok(Some(&self.kept))
    }

    fn next_record<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, FramingError> {
        if self.kept.is_empty()
            && let Some((head, body)) = input.split_first_chunk()
        {
            let length = self.checked_length(*head)?;
            if let Some((message, rest)) = body.split_at_checked(length) {
                *input = rest;
                self.count += 1;
                return Ok(Some(message));
            }
        }
        self.keep_up_to(LENGTH_BYTES, input);
        let Some(head) = self.kept.first_chunk() else { return Ok(None) };
        let whole = LENGTH_BYTES + self.checked_length(*head)?;
        self.keep_up_to(whole, input);
        if self.kept.len() < whole {
            return Ok(None);
        }
        self.count += 1;
        self.is_given = true;
        Ok(Some(&self.kept[LENGTH_BYTES..]))
    }

    /// Moves input to what is kept, until that has `wanted` bytes.
    fn keep_up_to(&mut self, wanted: usize, input: &mut &[u8]) {
        let missing = wanted.saturating_sub(self.kept.len()).min(input.len());
        let (part, rest) = input.split_at(missing);
        self.kept.extend_from_slice(part);
        *input = rest;
    }

    fn checked_length(&self, head: [u8; LENGTH_BYTES]) -> Result<usize, FramingError> {
        let (bytes, limit) = (u32::from_be_bytes(head), self.message_bytes_max);
        match usize::try_from(bytes) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(FramingError::LongRecord { record: self.count + 1, bytes, limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 16;

    /// Cuts a stream that comes in chunks of `chunk` bytes, and returns all its messages.
    fn cut(framing: Framing, stream: &[u8], chunk: usize) -> Result<Vec<Vec<u8>>, FramingError> {
        let mut decoder = FrameDecoder::new(framing, LIMIT);
        let mut messages = Vec::new();
        for mut input in stream.chunks(chunk) {
            while let Some(message) = decoder.next(&mut input)? {
                messages.push(message.to_vec());
            }
            assert!(input.is_empty());
        }
        messages.extend(decoder.finish()?.map(<[u8]>::to_vec));
        Ok(messages)
    }

    fn written(framing: Framing, messages: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for message in messages {
            framing.write(&mut out, message).unwrap();
        }
        out
    }

    #[test]
    fn what_is_written_is_read_however_the_stream_is_cut() {
        let lines: [&[u8]; 6] = [b"one", b"", b"\0\xff\r", b"sixteen bytes 16", b"", b"last"];
        let records: [&[u8]; 6] = [b"one", b"", b"\n\0\n", b"sixteen bytes 16", b"", b""];
        for (framing, messages) in [(Framing::Lines, lines), (Framing::Records, records)] {
            let stream = written(framing, &messages);
            for chunk in 1..=stream.len() {
                assert_eq!(cut(framing, &stream, chunk).unwrap(), messages, "{framing:?} {chunk}");
            }
        }
    }

    #[test]
    fn the_last_line_needs_no_newline() {
        for chunk in 1..4 {
            assert_eq!(cut(Framing::Lines, b"a\nb", chunk).unwrap(), [b"a", b"b"]);
        }
        assert!(cut(Framing::Lines, b"", 1).unwrap().is_empty());
    }

    #[test]
    fn a_message_above_the_limit_is_refused_before_it_is_kept() {
        for chunk in [1, 5, 100] {
            let error = cut(Framing::Lines, b"short\nseventeen bytes17\n", chunk).unwrap_err();
            assert_eq!(error, FramingError::LongLine { line: 2, limit: LIMIT });
            let error = cut(Framing::Records, b"\0\0\0\x01a\0\0\0\x11", chunk).unwrap_err();
            assert_eq!(error, FramingError::LongRecord { record: 2, bytes: 17, limit: LIMIT });
            let error = cut(Framing::Records, b"\xff\xff\xff\xff", chunk).unwrap_err();
            assert!(error.to_string().contains("4294967295 bytes, more than 16"), "{error}");
        }
    }

    #[test]
    fn a_record_that_is_cut_is_an_error() {
        for stream in [&b"\0"[..], b"\0\0\0\x02", b"\0\0\0\x02a"] {
            for chunk in 1..=stream.len() {
                let error = cut(Framing::Records, stream, chunk).unwrap_err();
                assert_eq!(error, FramingError::CutRecord { record: 1 });
            }
        }
    }
}
