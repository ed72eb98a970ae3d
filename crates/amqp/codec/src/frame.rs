//! Frames (AMQP 0-9-1 §4.2.3): `kind, channel, size, payload, 0xCE`.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes around a payload: kind, channel and size before it, the end octet behind it.
pub const FRAME_OVERHEAD: usize = 8;

/// Bytes before the payload.
pub const FRAME_HEAD: usize = 7;

/// The octet that ends every frame.
pub const FRAME_END: u8 = 0xce;

/// The protocol header with which a client begins, and with which a server answers a wrong one.
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";

/// The header of AMQP 0-9, which some old clients send although they mean 0-9-1.
pub(crate) const PROTOCOL_HEADER_0_9: &[u8; 8] = b"AMQP\x01\x01\x00\x09";

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A method.
    Method = 1,
    /// The size and the properties of a message.
    Header = 2,
    /// A part of a message's body.
    Body = 3,
    /// Nothing: a sign of life.
    Heartbeat = 8,
}

impl FrameKind {
    const fn from_octet(octet: u8) -> Option<Self> {
        match octet {
            1 => Some(Self::Method),
            2 => Some(Self::Header),
            3 => Some(Self::Body),
            8 => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// A whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: FrameKind,
    /// The channel it belongs to; 0 is the connection itself.
    pub channel: u16,
    /// What it holds; a slice of the read buffer unless the frame straddled two reads.
    pub payload: Bytes,
}

/// Why bytes are not frames. Nothing behind such bytes can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No such kind of frame.
    #[error("unknown frame type {octet}")]
    UnknownKind {
        /// The octet that was found.
        octet: u8,
    },
    /// Larger than was negotiated.
    #[error("frame of {size} bytes is larger than the negotiated {max}")]
    TooLarge {
        /// The whole frame's size in bytes.
        size: u64,
        /// The limit in bytes.
        max: u32,
    },
    /// Something else than [`FRAME_END`] where the frame should end.
    #[error("frame ends in 0x{octet:02x} instead of 0xce")]
    BadEnd {
        /// The octet that was found.
        octet: u8,
    },
}

/// Body frames from so many bytes on may be handed on in parts.
const BODY_IN_PARTS_MIN: usize = 16 * 1024;

/// Behind one of so many bytes another one is expected: a read more for it costs less than to copy it.
const BODY_EXPECTED_MIN: usize = 32 * 1024;

/// Takes frames out of what is read. Copies nothing but the beginning of a frame whose end is not
/// there yet, and holds no memory when no bytes wait.
#[derive(Debug)]
pub struct FrameReader {
    /// What has not been looked at.
    input: Bytes,
    /// The beginning of a frame whose end has not arrived.
    partial: BytesMut,
    /// The body frame whose payload is handed on as it arrives.
    body: Option<BodyRest>,
    /// The last body frame was a large one that came in parts, and nothing was pushed since.
    expects_body: bool,
    frame_max: u32,
}

/// What has not arrived of a body frame.
#[derive(Debug)]
struct BodyRest {
    channel: u16,
    /// Bytes of the payload; the frame's end comes behind them.
    missing: usize,
    is_large: bool,
}

impl FrameReader {
    /// Returns a reader that refuses frames of more than `frame_max` bytes, as the negotiation
    /// counts them: with their [`FRAME_OVERHEAD`]. Like RabbitMQ it forgives who counts only the
    /// payload.
    #[must_use]
    pub fn new(frame_max: u32) -> Self {
        let (input, partial) = (Bytes::new(), BytesMut::new());
        Self { input, partial, body: None, expects_body: false, frame_max }
    }

    /// What the negotiation came to; holds for the frames that have not been taken yet.
    pub const fn set_frame_max(&mut self, frame_max: u32) {
        self.frame_max = frame_max;
    }

    /// Adds what was read. Meant to be called when [`FrameReader::next`] has given all it can;
    /// otherwise what still waits is copied together with `data`.
    pub fn push(&mut self, data: Bytes) {
        self.expects_body = false;
        if self.input.is_empty() {
            self.input = data;
        } else {
            let mut joined = BytesMut::with_capacity(self.input.len() + data.len());
            joined.extend_from_slice(&self.input);
            joined.extend_from_slice(&data);
            self.input = joined.freeze();
        }
    }

    /// Returns whether bytes wait that [`FrameReader::next`] has not looked at.
    #[must_use]
    pub const fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Returns how many bytes are held.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.input.len() + self.partial.len()
    }

    /// Takes back what was pushed and not looked at; to go on, push it again.
    pub fn take_input(&mut self) -> Bytes {
        std::mem::take(&mut self.input)
    }

    /// Takes bytes that are not frames: the protocol header. `None` until there are `N`.
    pub fn take_raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.fill_partial(N);
        let raw = *self.partial.first_chunk::<N>()?;
        self.partial = BytesMut::new();
        Some(raw)
    }

    /// Forgets all that waits.
    pub fn clear(&mut self) {
        self.input = Bytes::new();
        self.partial = BytesMut::new();
        self.body = None;
        self.expects_body = false;
    }

    /// Returns the next whole frame; `None` when more must be read.
    ///
    /// # Errors
    /// [`FrameError`]; after one, the reader's position is lost and it must not be used again.
    #[allow(clippy::should_implement_trait, reason = "it fails, and goes on after None")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        if !self.partial.is_empty() {
            return self.next_joined();
        }
        let Some(head) = FrameHead::parse(&self.input, self.frame_max)? else {
            self.keep_rest(FRAME_HEAD);
            return Ok(None);
        };
        if self.input.len() < head.frame_len {
            self.keep_rest(head.frame_len);
            return Ok(None);
        }
        let end = head.frame_len - 1;
        check_end(self.input[end])?;
        let payload = self.input.slice(FRAME_HEAD..end);
        self.skip(head.frame_len);
        Ok(Some(Frame { kind: head.kind, channel: head.channel, payload }))
    }

    /// Returns the whole frame that begins at this offset of what was read, without taking it.
    /// `None` if there is none, or if [`FrameReader::next`] has something to say about it.
    #[inline]
    pub(crate) fn peek(&self, at: usize) -> Option<PeekedFrame> {
        if !self.partial.is_empty() || self.body.is_some() {
            return None;
        }
        let rest = self.input.get(at..)?;
        let head = FrameHead::parse(rest, self.frame_max).ok()??;
        let end = rest.get(head.frame_len - 1)?;
        let (from, to) = (at + FRAME_HEAD, at + head.frame_len - 1);
        (*end == FRAME_END).then_some(PeekedFrame {
            kind: head.kind,
            channel: head.channel,
            from,
            to,
        })
    }

    /// Returns what was read and not taken, as [`FrameReader::peek`] counts offsets.
    #[inline]
    pub(crate) const fn peeked(&self) -> &Bytes {
        &self.input
    }

    /// Takes the frames up to this offset of what was read.
    #[inline]
    pub(crate) fn skip(&mut self, to: usize) {
        if self.input.len() == to {
            self.input = Bytes::new();
        } else {
            self.input.advance(to);
        }
    }

    /// Returns the body frame that is next, if its head has arrived and its end has not: its
    /// channel and the bytes of its payload. Small ones are none, since they are joined at no cost.
    pub(crate) fn begun_body(&self) -> Option<(u16, usize)> {
        if !self.partial.is_empty() || self.body.is_some() {
            return None;
        }
        let head = FrameHead::parse(&self.input, self.frame_max).ok()??;
        let is_begun = head.frame_len >= BODY_IN_PARTS_MIN && self.input.len() < head.frame_len;
        (is_begun && head.kind == FrameKind::Body)
            .then_some((head.channel, head.frame_len - FRAME_OVERHEAD))
    }

    /// Has [`FrameReader::next_part`] hand on the payload of the [`FrameReader::begun_body`] as it arrives:
    /// a body that is put together anyway need not have its frames put together first.
    pub(crate) fn begin_parts(&mut self) {
        if let Some((channel, missing)) = self.begun_body() {
            self.input.advance(FRAME_HEAD);
            self.body = Some(BodyRest { channel, missing, is_large: missing >= BODY_EXPECTED_MIN });
        }
    }

    /// Returns the channel whose body frame is handed on in parts.
    #[inline]
    pub(crate) const fn body_channel(&self) -> Option<u16> {
        match &self.body {
            Some(body) => Some(body.channel),
            None => None,
        }
    }

    /// Returns the next part of the body frame's payload, or its end; `None` when more must be
    /// read, or when there is no such frame.
    ///
    /// # Errors
    /// [`FrameError::BadEnd`], as [`FrameReader::next`].
    pub(crate) fn next_part(&mut self) -> Result<Option<BodyPart>, FrameError> {
        let Some(body) = &mut self.body else { return Ok(None) };
        if body.missing == 0 {
            let Some(&end) = self.input.first() else { return Ok(None) };
            check_end(end)?;
            self.expects_body = body.is_large;
            self.body = None;
            self.skip(1);
            return Ok(Some(BodyPart::End));
        }
        let here = body.missing.min(self.input.len());
        if here == 0 {
            return Ok(None);
        }
        body.missing -= here;
        let payload = self.input.slice(..here);
        self.skip(here);
        Ok(Some(BodyPart::Payload(payload)))
    }

    /// Returns the channel of the body frame that is handed on in parts, and how many bytes of its
    /// payload have to be read, if all that was read is used up.
    pub(crate) const fn awaited_body(&self) -> Option<(u16, usize)> {
        match &self.body {
            Some(BodyRest { channel, missing, .. }) if self.input.is_empty() && *missing > 0 => {
                Some((*channel, *missing))
            }
            _ => None,
        }
    }

    /// Returns whether all that was read is used up, and what is next is the middle of a body frame
    /// that is handed on in parts, or the end of a large one.
    pub(crate) fn is_mid_body_frame(&self) -> bool {
        let body = self.body.as_ref().filter(|_| self.input.is_empty());
        body.is_some_and(|body| body.missing > 0 || body.is_large)
    }

    /// So many bytes of the [`FrameReader::awaited_body`] have come by another way than [`FrameReader::push`].
    ///
    /// # Panics
    /// If fewer were missing.
    pub(crate) fn advance_body(&mut self, bytes: usize) {
        let missing = self.body.as_mut().map(|body| &mut body.missing);
        let missing = missing.filter(|missing| **missing >= bytes).expect("a body is awaited");
        *missing -= bytes;
    }

    /// Returns whether another large body frame is likely to come soon, so that only its head
    /// should be read with what comes before.
    pub(crate) fn expects_body(&self) -> bool {
        let is_at_end = |body: &BodyRest| body.missing == 0 && body.is_large;
        self.expects_body || self.body.as_ref().is_some_and(is_at_end)
    }

    /// Continues a frame that began in an earlier read.
    fn next_joined(&mut self) -> Result<Option<Frame>, FrameError> {
        self.fill_partial(FRAME_HEAD);
        let Some(head) = FrameHead::parse(&self.partial, self.frame_max)? else {
            return Ok(None);
        };
        self.fill_partial(head.frame_len);
        if self.partial.len() < head.frame_len {
            return Ok(None);
        }
        let mut payload = std::mem::take(&mut self.partial).freeze();
        check_end(payload[head.frame_len - 1])?;
        payload.truncate(head.frame_len - 1);
        payload.advance(FRAME_HEAD);
        Ok(Some(Frame { kind: head.kind, channel: head.channel, payload }))
    }

    /// Moves the rest of the input, the beginning of a frame, out of the read buffer.
    fn keep_rest(&mut self, frame_len: usize) {
        if !self.input.is_empty() {
            self.fill_partial(frame_len);
            self.input = Bytes::new();
        }
    }

    /// Moves input to the partial frame until that has `len` bytes, or until there is no more.
    /// Memory grows with what has arrived, not with what the frame's head promises.
    fn fill_partial(&mut self, len: usize) {
        let missing = len.saturating_sub(self.partial.len()).min(self.input.len());
        if missing == 0 {
            return;
        }
        if self.partial.capacity() < self.partial.len() + missing {
            let doubled = (2 * self.partial.capacity()).clamp(self.partial.len() + missing, len);
            self.partial.reserve(doubled - self.partial.len());
        }
        self.partial.extend_from_slice(&self.input[..missing]);
        self.input.advance(missing);
        if self.input.is_empty() {
            self.input = Bytes::new();
        }
    }
}

/// What [`FrameReader::next_part`] hands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyPart {
    /// The next bytes of the payload.
    Payload(Bytes),
    /// The frame was whole.
    End,
}

/// A whole frame that was not taken: offsets of its payload.
#[derive(Clone, Copy)]
pub(crate) struct PeekedFrame {
    pub(crate) kind: FrameKind,
    pub(crate) channel: u16,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl PeekedFrame {
    /// Returns the offset behind the frame.
    pub(crate) const fn next(self) -> usize {
        self.to + 1
    }
}

struct FrameHead {
    kind: FrameKind,
    channel: u16,
    /// The whole frame, with head and end.
    frame_len: usize,
}

impl FrameHead {
    #[inline]
    fn parse(bytes: &[u8], frame_max: u32) -> Result<Option<Self>, FrameError> {
        let Some([octet, channel_high, channel_low, size @ ..]) = bytes.first_chunk::<FRAME_HEAD>()
        else {
            return Ok(None);
        };
        let kind =
            FrameKind::from_octet(*octet).ok_or(FrameError::UnknownKind { octet: *octet })?;
        let payload_len = u32::from_be_bytes(*size);
        // The comparison forgives clients that count only the payload.
        if payload_len > frame_max {
            let size = u64::from(payload_len) + FRAME_OVERHEAD as u64;
            return Err(FrameError::TooLarge { size, max: frame_max });
        }
        let channel = u16::from_be_bytes([*channel_high, *channel_low]);
        Ok(Some(Self { kind, channel, frame_len: payload_len as usize + FRAME_OVERHEAD }))
    }
}

const fn check_end(octet: u8) -> Result<(), FrameError> {
    if octet == FRAME_END { Ok(()) } else { Err(FrameError::BadEnd { octet }) }
}
