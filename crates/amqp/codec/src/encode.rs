//! Writing frames into an [`Output`], for either side.

use bytes::{BufMut, Bytes};
use quelea_model::Message;

use crate::frame::{FRAME_END, FRAME_HEAD, FRAME_OVERHEAD, FrameKind};
use crate::method::Method;
use crate::output::{Output, SHARED_BYTES_MIN};

/// Class `basic`, the only one with content.
const BASIC: [u8; 2] = 60u16.to_be_bytes();
const DELIVER: [u8; 2] = 60u16.to_be_bytes();
const PUBLISH: [u8; 2] = 40u16.to_be_bytes();

/// A content header's payload before the properties: class, weight, body size.
pub(crate) const CONTENT_HEAD: usize = 12;

/// Room for most methods; a longer one makes its buffer grow.
const METHOD_BYTES_USUAL: usize = 256;

impl Output {
    /// Appends a method frame.
    pub fn method(&mut self, channel: u16, method: &Method) {
        let out = self.buffer(METHOD_BYTES_USUAL);
        let at = out.len();
        out.put_slice(&frame_head(FrameKind::Method, channel, 0));
        method.encode(out);
        let payload_len = (out.len() - at - FRAME_HEAD) as u32;
        out[at + 3..at + FRAME_HEAD].copy_from_slice(&payload_len.to_be_bytes());
        out.put_u8(FRAME_END);
    }

    /// Appends a heartbeat frame.
    pub fn heartbeat(&mut self) {
        let out = self.buffer(FRAME_OVERHEAD);
        out.put_slice(&frame_head(FrameKind::Heartbeat, 0, 0));
        out.put_u8(FRAME_END);
    }

    /// Appends a method that has content, its header, and as many body frames as `frame_max` needs
    /// (in bytes with their framing; 0 is no limit). `properties` are wire-shaped; they cannot be
    /// split, so that the caller sees to it that they fit.
    pub fn content(
        &mut self,
        channel: u16,
        method: &Method,
        properties: &[u8],
        body: Bytes,
        frame_max: u32,
    ) {
        debug_assert!(method.has_content(), "{} has no content", method.name());
        self.method(channel, method);
        let out = self.buffer(FRAME_OVERHEAD + CONTENT_HEAD + properties.len());
        put_content_header(out, channel, properties, body.len());
        out.put_u8(FRAME_END);
        self.body(channel, body, frame_max);
    }

    /// Appends a delivery: what [`Output::content`] does with `basic.deliver`, without building one.
    ///
    /// # Panics
    /// If the tag is longer than a short string.
    #[inline]
    pub fn deliver(
        &mut self,
        channel: u16,
        consumer_tag: &str,
        delivery_tag: u64,
        redelivered: bool,
        message: &Message,
        frame_max: u32,
    ) {
        let (exchange, routing_key) = (message.exchange_bytes(), message.routing_key_bytes());
        let tag = consumer_tag.as_bytes();
        let (tag_len, exchange_len) = (short_len(tag), short_len(exchange));
        let (properties, body) = (message.properties(), message.body());
        let payload_len = 4 + 1 + tag.len() + 9 + 1 + exchange.len() + 1 + routing_key.len();
        let in_line = fits_in_line(body.len(), frame_max);

        let mut out = self.space(content_len(payload_len, properties, body, in_line));
        out.put_slice(&frame_head(FrameKind::Method, channel, payload_len));
        out.put_slice(&[BASIC[0], BASIC[1], DELIVER[0], DELIVER[1], tag_len]);
        out.put_slice(tag);
        out.put_u64(delivery_tag);
        out.put_slice(&[u8::from(redelivered), exchange_len]);
        out.put_slice(exchange);
        out.put_u8(short_len(routing_key));
        out.put_slice(routing_key);
        out.put_u8(FRAME_END);
        put_content_header(&mut out, channel, properties, body.len());
        if in_line {
            put_body_in_line(&mut out, channel, body);
        } else {
            out.put_u8(FRAME_END);
            self.body(channel, message.body_bytes(), frame_max);
        }
    }

    /// Appends a publish: what [`Output::content`] does with `basic.publish`, without building one.
    ///
    /// # Panics
    /// If exchange or routing key is longer than a short string.
    #[allow(clippy::too_many_arguments, reason = "the fields of the wire")]
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: &str,
        routing_key: &str,
        mandatory: bool,
        properties: &[u8],
        body: Bytes,
        frame_max: u32,
    ) {
        let (exchange, routing_key) = (exchange.as_bytes(), routing_key.as_bytes());
        let payload_len = 4 + 2 + 1 + exchange.len() + 1 + routing_key.len() + 1;
        let in_line = fits_in_line(body.len(), frame_max);

        let mut out = self.space(content_len(payload_len, properties, &body, in_line));
        out.put_slice(&frame_head(FrameKind::Method, channel, payload_len));
        out.put_slice(&[BASIC[0], BASIC[1], PUBLISH[0], PUBLISH[1], 0, 0, short_len(exchange)]);
        out.put_slice(exchange);
        out.put_u8(short_len(routing_key));
        out.put_slice(routing_key);
        out.put_slice(&[u8::from(mandatory), FRAME_END]);
        put_content_header(&mut out, channel, properties, body.len());
        if in_line {
            put_body_in_line(&mut out, channel, &body);
        } else {
            out.put_u8(FRAME_END);
            self.body(channel, body, frame_max);
        }
    }

    /// Appends body frames; none for an empty body.
    fn body(&mut self, channel: u16, mut body: Bytes, frame_max: u32) {
        let payload_max = payload_max(frame_max);
        while !body.is_empty() {
            let part = body.split_to(body.len().min(payload_max));
            self.put_slice(&frame_head(FrameKind::Body, channel, part.len()));
            self.put_shared(part);
            self.put_slice(&[FRAME_END]);
        }
    }
}

/// Returns whether a body is copied as one frame.
const fn fits_in_line(body_len: usize, frame_max: u32) -> bool {
    body_len < SHARED_BYTES_MIN && body_len <= payload_max(frame_max)
}

/// Returns the bytes of a method with content, up to the header frame's end octet, or to that of
/// the one body frame.
#[inline]
const fn content_len(payload_len: usize, properties: &[u8], body: &[u8], in_line: bool) -> usize {
    let body_len = if in_line && !body.is_empty() { FRAME_OVERHEAD + body.len() } else { 0 };
    payload_len + 2 * FRAME_OVERHEAD + CONTENT_HEAD + properties.len() + body_len
}

/// Appends a content header without its end octet, which goes along with what follows.
#[inline]
fn put_content_header(out: &mut impl BufMut, channel: u16, properties: &[u8], body_len: usize) {
    out.put_slice(&frame_head(FrameKind::Header, channel, CONTENT_HEAD + properties.len()));
    let mut fixed = [0; CONTENT_HEAD];
    fixed[..2].copy_from_slice(&BASIC);
    fixed[4..].copy_from_slice(&(body_len as u64).to_be_bytes());
    out.put_slice(&fixed);
    out.put_slice(properties);
}

/// Appends the header frame's end, and the body as one frame if there is any.
#[inline]
fn put_body_in_line(out: &mut impl BufMut, channel: u16, body: &[u8]) {
    out.put_u8(FRAME_END);
    if !body.is_empty() {
        out.put_slice(&frame_head(FrameKind::Body, channel, body.len()));
        out.put_slice(body);
        out.put_u8(FRAME_END);
    }
}

#[inline]
fn frame_head(kind: FrameKind, channel: u16, payload_len: usize) -> [u8; FRAME_HEAD] {
    let [channel_high, channel_low] = channel.to_be_bytes();
    let [a, b, c, d] = (payload_len as u32).to_be_bytes();
    [kind as u8, channel_high, channel_low, a, b, c, d]
}

fn short_len(text: &[u8]) -> u8 {
    u8::try_from(text.len()).expect("callers hand over short strings")
}

const fn payload_max(frame_max: u32) -> usize {
    if frame_max as usize <= FRAME_OVERHEAD {
        u32::MAX as usize
    } else {
        frame_max as usize - FRAME_OVERHEAD
    }
}
