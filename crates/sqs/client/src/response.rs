//! A response as it comes from the socket: its head, and a body of known length or in chunks
//! (RFC 9112 §6, §7).

use std::io::{self, Read};
use std::ops::Range;

/// Longest head of a response.
const HEAD_MAX: usize = 64 * 1024;
/// Longest body: ten messages of 1 MiB, each character of which JSON may write as six.
const BODY_MAX: usize = 72 * 1024 * 1024;
/// Most header lines.
const HEADERS_MAX: usize = 64;
/// What the buffer begins with, and grows by at least.
const BUFFER_STEP: usize = 16 * 1024;

/// What a server sent that is not a response we can read.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// The connection ended before the first byte of the response.
    #[error("the connection ended before the response")]
    NoResponse,
    /// The connection ended within it.
    #[error("the connection ended within the response")]
    Truncated,
    /// No byte came in time.
    #[error("no response in time")]
    TimedOut,
    /// Not HTTP/1.1.
    #[error("not an HTTP/1.1 response: {0}")]
    Malformed(String),
    /// More than a client takes.
    #[error("the response's {what} is longer than {limit} bytes")]
    TooLong {
        /// ResponseHead or body.
        what: &'static str,
        /// The limit, bytes.
        limit: usize,
    },
    /// The socket failed.
    #[error(transparent)]
    Socket(io::Error),
}

/// What a response's first bytes say of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResponseHead {
    status: u16,
    length: usize,
    framing: Framing,
    keeps_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So many bytes follow.
    Length(usize),
    Chunked,
    /// Until the connection ends.
    End,
}

/// Reads responses one after the other; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    /// As long as there is room; the first `filled` bytes are the response's.
    buffer: Vec<u8>,
    filled: usize,
    /// The body of a chunked response.
    joined: Vec<u8>,
    body: Body,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    None,
    Within(Range<usize>),
    Joined,
}

impl ResponseReader {
    /// Reads one response: its status, and whether the connection can be used again.
    pub(crate) fn read(&mut self, stream: &mut impl Read) -> Result<(u16, bool), ResponseError> {
        self.filled = 0;
        self.body = Body::None;
        let mut start = 0;
        let head = loop {
            let head = self.head(stream, start)?;
            if head.status >= 200 {
                break head;
            }
            start += head.length; // An interim response (100 Continue) has no body.
        };
        let begin = start + head.length;
        match head.framing {
            Framing::Length(length) => {
                self.fill_to(stream, begin + length)?;
                self.body = Body::Within(begin..begin + length);
            }
            Framing::Chunked => self.chunks(stream, begin)?,
            Framing::End => {
                while self.fill(stream)? > 0 {}
                self.body = Body::Within(begin..self.filled);
            }
        }
        Ok((head.status, head.keeps_open))
    }

    /// Returns the last response's body.
    pub(crate) fn body(&self) -> &[u8] {
        match &self.body {
            Body::None => &[],
            Body::Within(range) => &self.buffer[range.clone()],
            Body::Joined => &self.joined,
        }
    }

    fn head(
        &mut self,
        stream: &mut impl Read,
        start: usize,
    ) -> Result<ResponseHead, ResponseError> {
        loop {
            if self.filled > start
                && let Some(head) = parse_head(&self.buffer[start..self.filled])?
            {
                return Ok(head);
            }
            if self.filled - start > HEAD_MAX {
                return Err(ResponseError::TooLong { what: "head", limit: HEAD_MAX });
            }
            if self.fill(stream)? == 0 {
                let nothing = self.filled == 0;
                return Err(if nothing {
                    ResponseError::NoResponse
                } else {
                    ResponseError::Truncated
                });
            }
        }
    }

    fn chunks(&mut self, stream: &mut impl Read, begin: usize) -> Result<(), ResponseError> {
        self.joined.clear();
        let mut at = begin;
        loop {
            let (line, size) = loop {
                match httparse::parse_chunk_size(&self.buffer[at..self.filled]) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) => self.fill_some(stream)?,
                    Err(_) => return Err(ResponseError::Malformed("a chunk's size".to_owned())),
                }
            };
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > BODY_MAX - self.joined.len() {
                return Err(ResponseError::TooLong { what: "body", limit: BODY_MAX });
            }
            if size == 0 {
                self.trailers(stream, at + line)?;
                self.body = Body::Joined;
                return Ok(());
            }
            let data = at + line;
            self.fill_to(stream, data + size + 2)?;
            self.joined.extend_from_slice(&self.buffer[data..data + size]);
            at = data + size + 2;
        }
    }

    /// Reads trailer fields, which mean nothing to us; they end with an empty line.
    fn trailers(&mut self, stream: &mut impl Read, begin: usize) -> Result<(), ResponseError> {
        let mut line = begin;
        loop {
            match self.buffer[line..self.filled].windows(2).position(|pair| pair == b"\r\n") {
                Some(0) => return Ok(()),
                Some(length) => line += length + 2,
                None if self.filled - begin > HEAD_MAX => {
                    return Err(ResponseError::TooLong { what: "head", limit: HEAD_MAX });
                }
                None => self.fill_some(stream)?,
            }
        }
    }

    fn fill_to(&mut self, stream: &mut impl Read, end: usize) -> Result<(), ResponseError> {
        while self.filled < end {
            self.fill_some(stream)?;
        }
        Ok(())
    }

    fn fill_some(&mut self, stream: &mut impl Read) -> Result<(), ResponseError> {
        if self.fill(stream)? == 0 { Err(ResponseError::Truncated) } else { Ok(()) }
    }

    /// Reads once, and returns how many bytes there were; 0 is the connection's end.
    fn fill(&mut self, stream: &mut impl Read) -> Result<usize, ResponseError> {
        if self.filled == self.buffer.len() {
            if self.filled > BODY_MAX + HEAD_MAX {
                return Err(ResponseError::TooLong { what: "body", limit: BODY_MAX });
            }
            self.buffer.resize((self.filled * 2).max(BUFFER_STEP), 0);
        }
        loop {
            match stream.read(&mut self.buffer[self.filled..]) {
                Ok(length) => {
                    self.filled += length;
                    return Ok(length);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        return Err(ResponseError::TimedOut);
                    }
                    io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
                        if self.filled == 0 =>
                    {
                        return Err(ResponseError::NoResponse);
                    }
                    _ => return Err(ResponseError::Socket(error)),
                },
            }
        }
    }
}

/// Parses the head if it is complete.
fn parse_head(bytes: &[u8]) -> Result<Option<ResponseHead>, ResponseError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(ResponseError::Malformed(error.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let has_no_body = status < 200 || status == 204 || status == 304;
    let mut framing = if has_no_body { Framing::Length(0) } else { Framing::End };
    let mut keeps_open = response.version == Some(1);
    for header in response.headers.iter() {
        let value = str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = value
                .parse()
                .map_err(|_| ResponseError::Malformed(format!("Content-Length: {value}")))?;
            if length > BODY_MAX {
                return Err(ResponseError::TooLong { what: "body", limit: BODY_MAX });
            }
            // Transfer-Encoding wins over a length (RFC 9112 §6.3).
            if !has_no_body && framing != Framing::Chunked {
                framing = Framing::Length(length);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(ResponseError::Malformed(format!("Transfer-Encoding: {value}")));
            }
            framing = Framing::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            keeps_open &= !value.to_ascii_lowercase().contains("close");
        }
    }
    Ok(Some(ResponseHead {
        status,
        length,
        framing,
        keeps_open: keeps_open && framing != Framing::End,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most `step` bytes a read.
    struct Dripping<'a> {
        rest: &'a [u8],
        step: usize,
    }

    impl Read for Dripping<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.rest.len().min(self.step).min(into.len());
            let (now, later) = self.rest.split_at(length);
            into[..length].copy_from_slice(now);
            self.rest = later;
            Ok(length)
        }
    }

    fn read(bytes: &[u8], step: usize) -> Result<(u16, bool, Vec<u8>), ResponseError> {
        let mut reader = ResponseReader::default();
        let (status, keeps_open) = reader.read(&mut Dripping { rest: bytes, step })?;
        Ok((status, keeps_open, reader.body().to_vec()))
    }

    #[test]
    fn a_response_is_read_however_the_socket_cuts_it() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let cases = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(), 200, true, "hello"),
            (
                "HTTP/1.1 400 Bad\r\nconnection: Close\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
                400,
                false,
                "{}",
            ),
            (format!("{chunked}3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), 200, true, "abcde"),
            (format!("{chunked}1\r\na\r\n0\r\nX-T: 1\r\n\r\n"), 200, true, "a"),
            ("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 No\r\n\r\n".to_owned(), 204, true, ""),
            ("HTTP/1.0 200 OK\r\n\r\nto the end".to_owned(), 200, false, "to the end"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), 200, true, ""),
        ];
        for (text, status, keeps_open, body) in cases {
            for step in [1, 7, 10_000] {
                let found = read(text.as_bytes(), step).unwrap();
                assert_eq!(found, (status, keeps_open, body.as_bytes().to_vec()), "{step}");
            }
        }
    }

    #[test]
    fn what_is_no_response_is_refused() {
        let long = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &vec![b'a'; 2 * HEAD_MAX]].concat();
        let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY_MAX + 1);
        let cases: [(&[u8], &str); 8] = [
            (b"", "before the response"),
            (b"HTTP/1.1 200 OK\r\nConte", "within the response"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "within the response"),
            (b"SSH-2.0-OpenSSH\r\n\r\n", "not an HTTP/1.1 response"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length: -1"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "Transfer-Encoding: gzip"),
            (&long, "head is longer"),
            (huge.as_bytes(), "body is longer"),
        ];
        for (bytes, expected) in cases {
            let error = read(bytes, 10_000).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n";
        assert!(read(chunk, 100).unwrap_err().to_string().contains("body is longer"));
    }

    #[test]
    fn a_reader_reads_one_response_after_the_other() {
        let mut reader = ResponseReader::default();
        for body in ["first", "2"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            reader.read(&mut text.as_bytes()).unwrap();
            assert_eq!(reader.body(), body.as_bytes());
        }
    }
}
