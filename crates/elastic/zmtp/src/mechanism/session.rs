//! CURVE's MESSAGEs: each frame sealed by itself, numbered so that none can be repeated.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::curve::{Seal, TAG_BYTES, counted};
use crate::frame::put_header;
use crate::limits::CURVE_BYTES;
use crate::metadata::Metadata;
use crate::{Error, command};

const NAME: &[u8] = b"\x07MESSAGE";
/// Flags inside the box; the frame around it has none of them.
const MORE: u8 = 0x01;
const COMMAND: u8 = 0x02;

type Prefix = &'static [u8; 16];

/// What both ends seal and open with after the handshake.
#[derive(Debug)]
pub(crate) struct CurveSession {
    seal: Seal,
    ours: Prefix,
    theirs: Prefix,
    /// The number of the last box that we sealed.
    sent: u64,
    /// The number of the peer's last box.
    received: u64,
}

/// What was in a box.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) more: bool,
    pub(crate) command: bool,
    pub(crate) body: &'a [u8],
}

impl CurveSession {
    pub(crate) const fn server(seal: Seal, received: u64) -> Self {
        Self { seal, ours: b"CurveZMQMESSAGES", theirs: b"CurveZMQMESSAGEC", sent: 0, received }
    }

    pub(crate) const fn client(seal: Seal, sent: u64) -> Self {
        Self { seal, ours: b"CurveZMQMESSAGEC", theirs: b"CurveZMQMESSAGES", sent, received: 0 }
    }

    /// Returns the server's READY, which is box number 1.
    pub(crate) fn ready(&mut self, ours: &Metadata) -> BytesMut {
        self.sent += 1;
        let mut body = command::of("READY", &self.sent.to_be_bytes());
        self.seal.put(&mut body, &counted(b"CurveZMQREADY---", self.sent), |plain| ours.put(plain));
        body
    }

    /// Opens the server's READY. Returns its metadata.
    pub(crate) fn open_ready(&mut self, mut rest: &[u8]) -> Result<Bytes, Error> {
        if rest.len() < 8 + TAG_BYTES {
            return Err(Error::malformed("READY", "CURVE's has at least 30 bytes"));
        }
        self.received = rest.get_u64();
        let mut sealed = BytesMut::from(rest);
        let nonce = counted(b"CurveZMQREADY---", self.received);
        let plain = self.seal.open(&nonce, &mut sealed).ok_or(Error::Box { command: "READY" })?;
        Ok(Bytes::copy_from_slice(plain))
    }

    /// Appends a part of a message or a command as a sealed frame. libzmq gives the frame no flags, so
    /// that nobody on the way sees where messages end.
    pub(crate) fn put(&mut self, out: &mut BytesMut, more: bool, is_command: bool, body: &[u8]) {
        self.sent += 1;
        let flags = if more { MORE } else { 0 } | if is_command { COMMAND } else { 0 };
        put_header(out, 0, CURVE_BYTES + body.len());
        out.put_slice(NAME);
        out.put_u64(self.sent);
        self.seal.put(out, &counted(self.ours, self.sent), |plain| {
            plain.put_u8(flags);
            plain.put_slice(body);
        });
    }

    /// Opens a frame's body in its place.
    pub(crate) fn open<'a>(&mut self, frame: &'a mut [u8]) -> Result<Opened<'a>, Error> {
        const SEALED_AT: usize = 16;
        if !frame.starts_with(NAME) {
            return Err(Error::Unexpected {
                got: "a frame that is not sealed".to_owned(),
                expected: "MESSAGE",
            });
        }
        if frame.len() < CURVE_BYTES {
            return Err(Error::malformed("MESSAGE", "CURVE's has at least 33 bytes"));
        }
        let nonce = (&frame[NAME.len()..SEALED_AT]).get_u64();
        if nonce <= self.received {
            return Err(Error::Nonce { nonce, last: self.received });
        }
        let plain = self.seal.open(&counted(self.theirs, nonce), &mut frame[SEALED_AT..]);
        let (&flags, body) =
            plain.and_then(<[u8]>::split_first).ok_or(Error::Box { command: "MESSAGE" })?;
        self.received = nonce;
        let (more, command) = (flags & MORE != 0, flags & COMMAND != 0);
        if flags & !(MORE | COMMAND) != 0 || (more && command) {
            return Err(Error::Flags(flags));
        }
        Ok(Opened { more, command, body })
    }
}
