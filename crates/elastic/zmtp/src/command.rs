//! Commands: a name behind its length, then what it says (ZMTP 3.1 §3.5 and 3.6).

use bytes::{BufMut, Bytes, BytesMut};

use crate::Error;
use crate::limits::{CONTEXT_BYTES_MAX, REASON_BYTES_MAX};

/// The commands that come between messages; the handshake's are read by its mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Asks for a PONG; the sender will be heard again within `ttl_ms`, if that is not 0.
    Ping { ttl_ms: u64, context: Bytes },
    /// The answer.
    Pong,
    /// One topic more (3.1).
    Subscribe(Bytes),
    /// One topic less (3.1).
    Cancel(Bytes),
    /// The peer gives up, and says why.
    Error(String),
    /// Of a later version: ignored.
    Unknown,
}

impl Command {
    pub(crate) fn parse(body: Bytes) -> Result<Self, Error> {
        let (name, rest) = split(body)?;
        match &name[..] {
            b"PING" => parse_ping(&rest),
            b"PONG" => Ok(Self::Pong),
            b"SUBSCRIBE" => Ok(Self::Subscribe(rest)),
            b"CANCEL" => Ok(Self::Cancel(rest)),
            b"ERROR" => Ok(Self::Error(reason(&rest)?)),
            _ => Ok(Self::Unknown),
        }
    }
}

/// Splits a command into its name and what follows it.
pub(crate) fn split(mut body: Bytes) -> Result<(Bytes, Bytes), Error> {
    let malformed = Error::malformed("", "its name is longer than the command, or empty");
    let length = usize::from(*body.first().ok_or_else(|| malformed.clone())?);
    if length == 0 || body.len() <= length {
        return Err(malformed);
    }
    let name = body.split_to(1 + length).slice(1..);
    Ok((name, body))
}

/// Returns what follows the name of the handshake's command `expected`, or why the peer sent
/// another one.
pub(crate) fn expect(expected: &'static str, body: Bytes) -> Result<Bytes, Error> {
    let (name, rest) = split(body)?;
    if name == expected {
        return Ok(rest);
    }
    if &name[..] == b"ERROR" {
        return Err(Error::Refused { reason: reason(&rest)? });
    }
    Err(Error::Unexpected { got: format!("the command {:?}", text(&name)), expected })
}

/// Begins the body of a command with this name, to be gone on with.
pub(crate) fn begin(name: &str, room: usize) -> BytesMut {
    let mut body = BytesMut::with_capacity(1 + name.len() + room);
    body.put_u8(u8::try_from(name.len()).expect("our own names are short"));
    body.put_slice(name.as_bytes());
    body
}

/// Returns a command whose body is a name and these bytes.
pub(crate) fn of(name: &str, rest: &[u8]) -> BytesMut {
    let mut body = begin(name, rest.len());
    body.put_slice(rest);
    body
}

/// Returns a PING without a context: which PING a PONG answers is of no use to us.
pub(crate) fn ping(ttl_ms: u64) -> BytesMut {
    let tenths = u16::try_from(ttl_ms.div_ceil(100)).unwrap_or(u16::MAX);
    of("PING", &tenths.to_be_bytes())
}

/// Returns an ERROR with what fits of the reason.
pub(crate) fn error(reason: &str) -> BytesMut {
    let kept = &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)];
    let mut body = begin("ERROR", 1 + kept.len());
    body.put_u8(u8::try_from(kept.len()).expect("cut to 255 bytes"));
    body.put_slice(kept);
    body
}

/// Returns a peer's bytes as text for people: readable, and not too many.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(REASON_BYTES_MAX)]).into_owned()
}

fn parse_ping(rest: &Bytes) -> Result<Command, Error> {
    let Some(&[high, low]) = rest.get(..2) else {
        return Err(Error::malformed("PING", "there is no time to live"));
    };
    let context = rest.slice(2..);
    if context.len() > CONTEXT_BYTES_MAX {
        return Err(Error::malformed("PING", "the context has more than 16 bytes"));
    }
    Ok(Command::Ping { ttl_ms: u64::from(u16::from_be_bytes([high, low])) * 100, context })
}

fn reason(rest: &[u8]) -> Result<String, Error> {
    let malformed = Error::malformed("ERROR", "the reason is longer than the command");
    let (&length, rest) = rest.split_first().ok_or_else(|| malformed.clone())?;
    rest.get(..usize::from(length)).map(text).ok_or(malformed)
}
