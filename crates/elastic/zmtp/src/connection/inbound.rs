//! What was read, cut into messages and commands. Nothing is buffered before its size is checked, and
//! nothing is copied but what CURVE seals, and a message that a command has come into.

use bytes::{Buf, Bytes, BytesMut};

use crate::frame::{Header, put_frame};
use crate::limits::{COMMAND_BYTES_MAX, CURVE_BYTES, MESSAGE_BYTES_MAX, PARTS_MAX};
use crate::mechanism::session::CurveSession;
use crate::{Error, SocketType};

#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) buffer: BytesMut,
    /// The beginning of a message whose bytes do not lie in the buffer in one piece.
    apart: BytesMut,
    /// How much of the buffer is parts of the message that is not all there.
    scanned: usize,
    /// Parts of that message so far.
    parts: usize,
    message_bytes_max: usize,
}

#[derive(Debug)]
pub(crate) enum Item {
    /// A command's body.
    Command(Bytes),
    /// A message's frames.
    Message(Bytes),
}

impl Inbound {
    /// Creates what reads from the peer. A socket that publishes gets subscriptions only.
    pub(crate) fn new(socket_type: SocketType) -> Self {
        let message_bytes_max =
            if socket_type.publishes() { COMMAND_BYTES_MAX } else { MESSAGE_BYTES_MAX };
        Self {
            buffer: BytesMut::new(),
            apart: BytesMut::new(),
            scanned: 0,
            parts: 0,
            message_bytes_max,
        }
    }

    /// Takes the handshake's next command: messages are not taken yet, however small.
    pub(crate) fn next_of_handshake(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(header) = Header::parse(&self.buffer)? else { return Ok(None) };
        if !header.command {
            let got = "a message".to_owned();
            return Err(Error::Unexpected { got, expected: "a command of the handshake" });
        }
        let frame = self.frame_bytes(header, 0)?;
        Ok((self.buffer.len() >= frame).then(|| self.take_body(header, frame).freeze()))
    }

    /// Takes the next message or command.
    pub(crate) fn next(
        &mut self,
        session: Option<&mut CurveSession>,
    ) -> Result<Option<Item>, Error> {
        match session {
            None => self.next_open(),
            Some(session) => self.next_sealed(session),
        }
    }

    fn next_open(&mut self) -> Result<Option<Item>, Error> {
        loop {
            let Some(header) = Header::parse(&self.buffer[self.scanned..])? else {
                return Ok(None);
            };
            let frame = self.frame_bytes(header, 0)?;
            if self.buffer.len() - self.scanned < frame {
                return Ok(None);
            }
            if header.command {
                // libzmq's heartbeats come between a message's parts, too.
                self.apart.extend_from_slice(&self.buffer[..self.scanned]);
                self.buffer.advance(self.scanned);
                self.scanned = 0;
                return Ok(Some(Item::Command(self.take_body(header, frame).freeze())));
            }
            self.scanned += frame;
            self.parts += 1;
            if !header.more {
                return Ok(Some(Item::Message(self.take_message())));
            }
        }
    }

    fn next_sealed(&mut self, session: &mut CurveSession) -> Result<Option<Item>, Error> {
        loop {
            let Some(header) = Header::parse(&self.buffer)? else { return Ok(None) };
            let frame = self.frame_bytes(header, CURVE_BYTES)?;
            if self.buffer.len() < frame {
                return Ok(None);
            }
            let mut body = self.take_body(header, frame);
            let opened = session.open(&mut body)?;
            if opened.command {
                check_command(opened.body.len() as u64, COMMAND_BYTES_MAX)?;
                return Ok(Some(Item::Command(Bytes::copy_from_slice(opened.body))));
            }
            put_frame(&mut self.apart, opened.more, opened.body);
            self.parts += 1;
            if !opened.more {
                return Ok(Some(Item::Message(self.take_message())));
            }
        }
    }

    /// Returns a frame's length with its header, if the limits allow it; `sealing` bytes of it are
    /// CURVE's.
    fn frame_bytes(&self, header: Header, sealing: usize) -> Result<usize, Error> {
        if header.command && sealing == 0 {
            check_command(header.length, COMMAND_BYTES_MAX)?;
        } else {
            if self.parts >= PARTS_MAX {
                return Err(Error::Parts { max: PARTS_MAX });
            }
            let before = (self.apart.len() + self.scanned + header.header_bytes) as u64;
            let length = before.saturating_add(header.length).saturating_sub(sealing as u64);
            if length > self.message_bytes_max as u64 {
                return Err(Error::MessageBytes { length, max: self.message_bytes_max });
            }
        }
        Ok(header.header_bytes + usize::try_from(header.length).expect("checked against a limit"))
    }

    fn take_body(&mut self, header: Header, frame: usize) -> BytesMut {
        let mut body = self.buffer.split_to(frame);
        body.advance(header.header_bytes);
        body
    }

    fn take_message(&mut self) -> Bytes {
        let rest = self.buffer.split_to(self.scanned);
        (self.scanned, self.parts) = (0, 0);
        if self.apart.is_empty() {
            return rest.freeze();
        }
        self.apart.extend_from_slice(&rest);
        core::mem::take(&mut self.apart).freeze()
    }
}

const fn check_command(length: u64, max: usize) -> Result<(), Error> {
    if length > max as u64 { Err(Error::CommandBytes { length, max }) } else { Ok(()) }
}
