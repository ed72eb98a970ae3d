//! A client's end of an AMQP connection: what it sends as bytes, and what it gets as methods with their
//! content.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{Method, basic};
use quelea_amqp_codec::{Frame, FrameKind, FrameReader, Output};
use quelea_model::{Properties, PropertyView};

/// What a client got.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Where.
    pub channel: u16,
    /// The method.
    pub method: Method,
    /// Properties and body, if the method has content.
    pub content: Option<(Bytes, Bytes)>,
}

impl Received {
    /// Returns the content's body as text.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn body(&self) -> &str {
        let (_, body) = self.content.as_ref().expect("a method with content");
        std::str::from_utf8(body).expect("tests send text")
    }
}

/// Frames in both directions. What it gets has to be well-formed.
pub struct AmqpClient {
    /// What it has sent and nobody has read.
    pub sent: Output,
    /// Heartbeats that it got.
    pub heartbeats: usize,
    frame_max: u32,
    reader: FrameReader,
    /// Of each channel: what has not come completely, and how many bytes of the body are missing.
    partial: BTreeMap<u16, (Received, u64)>,
}

impl AmqpClient {
    /// Returns a client that sends and takes frames of up to so many bytes.
    #[must_use]
    pub fn new(frame_max: u32) -> Self {
        let (sent, reader) = (Output::new(), FrameReader::new(frame_max));
        Self { sent, heartbeats: 0, frame_max, reader, partial: BTreeMap::new() }
    }

    /// Sends a message.
    pub fn publish(&mut self, channel: u16, how: basic::Publish, with: &Properties, body: Bytes) {
        let mut wire = BytesMut::new();
        with.encode(&mut wire);
        self.sent.content(channel, &how.into(), &wire, body, self.frame_max);
    }

    /// Takes what one read of the other end gets.
    pub fn take_sent(&mut self, bytes_max: usize) -> Bytes {
        let mut bytes = self.sent.to_bytes();
        bytes.truncate(bytes_max);
        self.sent.advance(bytes.len());
        bytes
    }

    /// Takes these bytes, and returns what is complete with them, in its order.
    ///
    /// # Panics
    /// If the other end breaks the protocol.
    pub fn receive(&mut self, bytes: Bytes) -> Vec<Received> {
        // After anything but its own protocol a server may answer with the one that it speaks.
        if bytes.starts_with(PROTOCOL_HEADER) {
            return Vec::new();
        }
        self.reader.push(bytes);
        let mut complete = Vec::new();
        while let Some(frame) = self.reader.next().expect("the session writes good frames") {
            complete.extend(self.frame(&frame));
        }
        complete
    }

    fn frame(&mut self, Frame { kind, channel, payload }: &Frame) -> Option<Received> {
        if *kind == FrameKind::Heartbeat {
            assert_eq!(*channel, 0, "a heartbeat's channel");
            self.heartbeats += 1;
            return None;
        }
        let (received, left) = match (kind, self.partial.remove(channel)) {
            (FrameKind::Method, None) => {
                let method = Method::decode(payload).expect("a good method");
                let received = Received { channel: *channel, method, content: None };
                if !received.method.has_content() {
                    return Some(received);
                }
                (received, None)
            }
            (FrameKind::Header, Some((mut received @ Received { content: None, .. }, _))) => {
                let size = payload[4..12].try_into().expect("8 bytes");
                let properties = payload.slice(12..);
                assert!(PropertyView::new(&properties).check().is_ok(), "{properties:?}");
                received.content = Some((properties, Bytes::new()));
                (received, Some(u64::from_be_bytes(size)))
            }
            (FrameKind::Body, Some((mut received, left))) => {
                let (_, body) = received.content.as_mut().expect("a header before it");
                *body = Bytes::from([&body[..], &payload[..]].concat());
                let left = left.checked_sub(payload.len() as u64);
                (received, Some(left.expect("no more than the header said")))
            }
            (kind, partial) => panic!("{kind:?} on channel {channel} while at {partial:?}"),
        };
        if left == Some(0) {
            return Some(received);
        }
        self.partial.insert(*channel, (received, left.unwrap_or(0)));
        None
    }
}
