//! Messages that the client publishes: method, content header, body (AMQP 0-9-1 §4.2.6).

use bytes::buf::Limit;
use bytes::{Buf, BufMut as _, Bytes};
use quelea_model::{PropertyView, Timestamp, limits};

use super::channel::{Assembly, Channel, ChannelState, Content};
use super::refusal::{Outcome, Refusal, malformed};
use super::{Phase, ServerConnection};
use crate::encode::CONTENT_HEAD;
use crate::event::Event;
use crate::frame::{BodyPart, FrameKind};
use crate::method::basic::Publish;
use crate::method::shape::Arguments;
use crate::reply_code::ReplyCode;
use crate::wire::Reader;

/// `basic.publish` as it begins a method frame's payload.
pub(super) const BASIC_PUBLISH: [u8; 4] = [0, 60, 0, 40];
/// Bytes that a body grows by for what has not arrived, at least: a frame of the usual size. A connection has one such
/// frame at a time.
const BODY_ROOM_BYTES_MIN: usize = 128 * 1024;
/// Its class and method, for reply texts.
const CLASS_ID: u16 = 60;
const METHOD_ID: u16 = 40;

impl ServerConnection {
    /// Takes the message that is next, if all its frames lie one after the other in what was read,
    /// which is how nearly all come: one look at each, and no state in between. Whatever is not so,
    /// and whatever is wrong, is left to the way frame by frame.
    #[inline]
    pub(super) fn whole_publish(&mut self) -> Option<Event> {
        let method = self.reader.peek(0)?;
        let bytes = self.reader.peeked();
        if method.kind != FrameKind::Method
            || bytes.get(method.from..method.from + 4)? != BASIC_PUBLISH
        {
            return None;
        }
        let header = self.reader.peek(method.next())?;
        let channel = method.channel;
        if header.kind != FrameKind::Header || header.channel != channel {
            return None;
        }
        let size = check_header(&bytes[header.from..header.to]).ok()?;
        let (mut end, mut body) = (header.next(), Bytes::new());
        if size > self.config.message_bytes_max {
            return None;
        }
        if size > 0 {
            let frame = self.reader.peek(header.next())?;
            let is_all = (frame.to - frame.from) as u64 == size;
            if frame.kind != FrameKind::Body || frame.channel != channel || !is_all {
                return None;
            }
            end = frame.next();
            body = bytes.slice(frame.from..frame.to);
        }
        if !matches!(self.channels.get_mut(channel)?.state, ChannelState::Open(Content::None)) {
            return None;
        }
        let publish = read_publish(bytes, method.from, method.to).ok()?;
        let properties = bytes.slice(header.from + CONTENT_HEAD..header.to);
        self.reader.skip(end);
        Some(Event::Publish { channel, publish, properties, body })
    }

    /// Takes a `basic.publish`; its content header is next.
    #[inline]
    pub(super) fn publish(&mut self, number: u16, payload: &Bytes) -> Result<(), Box<Refusal>> {
        let publish = read_publish(payload, 0, payload.len())?;
        self.channels.attach(number);
        if let Some(content) = self.content_of(number) {
            *content = Content::Header(publish);
        }
        Ok(())
    }

    /// Takes the content header; the body is next unless it is empty.
    #[inline]
    pub(super) fn content_header(&mut self, number: u16, mut payload: Bytes) -> Outcome {
        let size = check_header(&payload)?;
        if size > self.config.message_bytes_max {
            let max = self.config.message_bytes_max;
            let text = format!("message size {size} is larger than configured max size {max}");
            let code = ReplyCode::PreconditionFailed;
            self.close_channel(number, code, &text, CLASS_ID, METHOD_ID);
            return Ok(None);
        }
        payload.advance(CONTENT_HEAD);
        self.channels.attach(number);
        let Some(content) = self.content_of(number) else {
            return Ok(None);
        };
        let Content::Header(publish) = std::mem::replace(content, Content::None) else {
            return Ok(None);
        };
        if size == 0 {
            self.channels.finish_content(number);
            let (properties, body) = (payload, Bytes::new());
            return Ok(Some(Event::Publish { channel: number, publish, properties, body }));
        }
        let size = size as usize;
        let body = Vec::new();
        let assembly = Assembly { publish, properties: payload, size, body };
        let bytes = assembly.bytes();
        *content = Content::Body(assembly);
        self.assembling_bytes += bytes;
        self.check_assembling()
    }

    /// Takes a part of the body: all of it, most often, and then it is not copied.
    #[inline]
    pub(super) fn content_body(&mut self, number: u16, payload: Bytes) -> Outcome {
        let Some(content) = self.content_of(number) else {
            return Ok(None);
        };
        let Content::Body(assembly) = content else {
            return Ok(None);
        };
        let arrived = assembly.body.len() + payload.len();
        if arrived > assembly.size {
            let text =
                format!("a body of at least {arrived} bytes, declared were {}", assembly.size);
            return Err(publish_refusal(ReplyCode::UnexpectedFrame, text));
        }
        if arrived < assembly.size {
            return self.append_body(number, &payload);
        }
        if assembly.body.is_empty() {
            return Ok(self.finish_body(number, Some(payload)));
        }
        self.append_body(number, &payload)?;
        Ok(self.finish_body(number, None))
    }

    /// Returns whether this channel takes a body frame of so many bytes in parts: not if there is something to
    /// refuse.
    pub(super) fn takes_parts(&mut self, number: u16, bytes: usize) -> bool {
        let content = self.content_of(number);
        matches!(content, Some(Content::Body(assembly)) if assembly.body.len() + bytes <= assembly.size)
    }

    /// Takes a part of a body frame, or its end. What belongs to a channel that was closed
    /// meanwhile is dropped.
    pub(super) fn content_part(&mut self, number: u16, part: &BodyPart) -> Outcome {
        match (self.content_of(number), part) {
            (Some(Content::Body(_)), BodyPart::Payload(payload)) => {
                self.append_body(number, payload)
            }
            (Some(Content::Body(assembly)), BodyPart::End)
                if assembly.body.len() == assembly.size =>
            {
                Ok(self.finish_body(number, None))
            }
            _ => Ok(None),
        }
    }

    fn append_body(&mut self, number: u16, payload: &[u8]) -> Outcome {
        self.grow_body(number, |assembly| assembly.push(payload))
    }

    /// Counts what a body takes more, and refuses what is too much.
    fn grow_body(&mut self, number: u16, grow: impl FnOnce(&mut Assembly)) -> Outcome {
        let Some(Content::Body(assembly)) = self.content_of(number) else { return Ok(None) };
        let before = assembly.bytes();
        grow(assembly);
        let grown = assembly.bytes() - before;
        self.assembling_bytes += grown;
        self.check_assembling()
    }

    /// Returns the buffer to read on into, if what is missing next is the middle of a large body
    /// frame: behind what has come of the body, up to the frame's end. Whoever reads there says so
    /// by [`ServerConnection::advance_body`]; to read elsewhere, and [`ServerConnection::receive`]
    /// it, costs a copy.
    pub fn body_buffer(&mut self) -> Option<Limit<&mut Vec<u8>>> {
        let (number, missing) = self.reader.awaited_body()?;
        if self.phase != Phase::Running {
            return None;
        }
        let make_room = |assembly: &mut Assembly| {
            let arrived = assembly.body.len();
            if assembly.body.capacity() == arrived {
                assembly.make_room(BODY_ROOM_BYTES_MIN.min(missing), arrived);
            }
        };
        // What is too much is refused with what is received.
        self.grow_body(number, make_room).ok()?;
        let Content::Body(Assembly { body, .. }) = self.content_of(number)? else { return None };
        let room = body.capacity() - body.len();
        Some(body.limit(room.min(missing)))
    }

    /// So many bytes were read into the [`ServerConnection::body_buffer`].
    ///
    /// # Panics
    /// If it had less room.
    pub fn advance_body(&mut self, bytes: usize, now: Timestamp) {
        self.now = now;
        self.heartbeat.received(now);
        self.reader.advance_body(bytes);
    }

    /// Completes the message and returns its event. The body is what was put together, unless it
    /// came in one piece.
    fn finish_body(&mut self, number: u16, whole: Option<Bytes>) -> Option<Event> {
        let content = self.content_of(number)?;
        let Content::Body(assembly) = std::mem::replace(content, Content::None) else {
            return None;
        };
        self.assembling_bytes -= assembly.bytes();
        self.channels.finish_content(number);
        let Assembly { publish, properties, body, .. } = assembly;
        let body = whole.unwrap_or_else(|| Bytes::from(body));
        Some(Event::Publish { channel: number, publish, properties, body })
    }

    fn check_assembling(&self) -> Outcome {
        let one = self.config.message_bytes_max.saturating_add(self.frame_max.into());
        let two = usize::try_from(one.saturating_mul(2));
        let max = two.unwrap_or(usize::MAX).max(limits::UNFINISHED_MESSAGES_BYTES_MAX);
        if self.assembling_bytes <= max {
            return Ok(None);
        }
        let text = format!("unfinished messages of this connection exceed {max} bytes");
        Err(publish_refusal(ReplyCode::ResourceError, text))
    }

    #[inline]
    fn content_of(&mut self, number: u16) -> Option<&mut Content> {
        match self.channels.get_mut(number) {
            Some(Channel { state: ChannelState::Open(content), .. }) => Some(content),
            _ => None,
        }
    }
}

/// Decodes a publish, the payload from `from` to `to`, without the enum of all methods.
#[inline]
fn read_publish(bytes: &Bytes, from: usize, to: usize) -> Result<Publish, Box<Refusal>> {
    let mut reader = Reader::new(bytes, from + 4, to);
    let publish = Publish::read(&mut reader).and_then(|publish| {
        reader.finish()?;
        Ok(publish)
    });
    let publish = publish.map_err(|error| malformed(&bytes[from..to], &error))?;
    if publish.immediate {
        return Err(publish_refusal(ReplyCode::NotImplemented, "immediate=true"));
    }
    Ok(publish)
}

/// Checks a content header and returns the body's size.
#[inline]
fn check_header(payload: &[u8]) -> Result<u64, Box<Refusal>> {
    let Some((head, properties)) = payload.split_first_chunk::<CONTENT_HEAD>() else {
        return Err(publish_refusal(ReplyCode::SyntaxError, "content header ends early"));
    };
    let [class_high, class_low, weight_high, weight_low, size @ ..] = *head;
    let class_id = u16::from_be_bytes([class_high, class_low]);
    if class_id != CLASS_ID {
        let text =
            format!("expected content header for class 60, got one for class {class_id} instead");
        return Err(publish_refusal(ReplyCode::UnexpectedFrame, text));
    }
    if (weight_high, weight_low) != (0, 0) {
        return Err(publish_refusal(
            ReplyCode::UnexpectedFrame,
            "content header's weight is not 0",
        ));
    }
    match PropertyView::new(properties).check() {
        Ok(()) => Ok(u64::from_be_bytes(size)),
        Err(error) => Err(publish_refusal(ReplyCode::SyntaxError, error.to_string())),
    }
}

#[cold]
pub(super) fn publish_refusal(code: ReplyCode, text: impl Into<String>) -> Box<Refusal> {
    Box::new(Refusal { code, text: text.into(), class_id: CLASS_ID, method_id: METHOD_ID })
}
