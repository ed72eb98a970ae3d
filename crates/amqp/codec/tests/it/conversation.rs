//! A client with a script, in virtual time.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{basic, channel, connection};
use quelea_amqp_codec::{
    ConnectionConfig, Event, Frame, FrameKind, FrameReader, Method, Output, ServerConnection,
    ShortStr,
};
use quelea_model::{Table, Timestamp, Value};

pub(crate) struct Conversation {
    pub(crate) server: ServerConnection,
    pub(crate) now: Timestamp,
}

/// Returns a configuration with small limits, so that tests reach them.
pub(crate) fn config() -> ConnectionConfig {
    ConnectionConfig {
        frame_max: 8_192,
        channel_max: 10,
        message_bytes_max: 100_000,
        ..ConnectionConfig::default()
    }
}

impl Conversation {
    /// Returns a client that has just connected.
    pub(crate) fn new(config: ConnectionConfig) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self { server: ServerConnection::new(Arc::new(config), now), now }
    }

    /// Returns a client that is logged in, with heartbeats of 60 s.
    pub(crate) fn open() -> Self {
        Self::open_with(config(), tune_ok(8_192, 10, 60))
    }

    pub(crate) fn open_with(config: ConnectionConfig, tune_ok: connection::TuneOk) -> Self {
        let mut talk = Self::new(config);
        talk.write(PROTOCOL_HEADER);
        talk.method(0, start_ok());
        assert!(matches!(talk.events()[..], [Event::Authenticate { .. }]));
        talk.server.authenticated(Ok(()));
        talk.method(0, tune_ok);
        talk.method(0, connection::Open { virtual_host: "/".into() });
        assert!(matches!(talk.events()[..], [Event::Open { .. }]));
        talk.server.opened(Ok(()));
        talk.replies();
        talk
    }

    /// Returns a client that is logged in, with channel 1.
    pub(crate) fn with_channel() -> Self {
        let mut talk = Self::open();
        talk.method(1, channel::Open {});
        assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
        assert_eq!(talk.replies(), [(1, channel::OpenOk {}.into())]);
        talk
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.server.receive(Bytes::copy_from_slice(bytes), self.now);
    }

    pub(crate) fn method(&mut self, channel: u16, method: impl Into<Method>) {
        self.write(&method_frame(channel, method));
    }

    pub(crate) fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        self.write(&raw_frame(kind, channel, payload));
    }

    /// Returns all events that what was written leads to.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.server.poll(self.now)).collect()
    }

    /// Takes what the server wants to write.
    pub(crate) fn output(&mut self) -> Bytes {
        let output = self.server.output();
        let bytes = output.to_bytes();
        output.advance(bytes.len());
        bytes
    }

    /// Takes what the server wants to write, as frames.
    pub(crate) fn frames(&mut self) -> Vec<Frame> {
        frames(self.output())
    }

    /// Takes what the server wants to write, all of it methods.
    pub(crate) fn replies(&mut self) -> Vec<(u16, Method)> {
        self.frames().into_iter().map(method_of).collect()
    }

    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.server.handle_timeout(self.now);
    }

    /// Takes the one reply, which must be `connection.close`, and returns its code and text.
    pub(crate) fn connection_close(&mut self) -> (u16, String) {
        match &self.replies()[..] {
            [(0, Method::ConnectionClose(close))] => {
                (close.reply_code, close.reply_text.to_string())
            }
            other => panic!("expected connection.close, got {other:?}"),
        }
    }

    /// Takes the one reply, which must be `channel.close` on channel 1, and returns its code and
    /// text.
    pub(crate) fn channel_close(&mut self) -> (u16, String) {
        match &self.replies()[..] {
            [(1, Method::ChannelClose(close))] => (close.reply_code, close.reply_text.to_string()),
            other => panic!("expected channel.close, got {other:?}"),
        }
    }
}

pub(crate) fn start_ok() -> connection::StartOk {
    let capabilities = Table::from_iter([
        ("authentication_failure_close", Value::Bool(true)),
        ("basic.nack", Value::Bool(false)),
    ]);
    connection::StartOk {
        client_properties: Table::from_iter([("capabilities", Value::Table(capabilities))]),
        mechanism: ShortStr::from_static("PLAIN"),
        response: Bytes::from_static(b"\0guest\0secret"),
        locale: ShortStr::from_static("en_US"),
    }
}

pub(crate) fn tune_ok(frame_max: u32, channel_max: u16, heartbeat: u16) -> connection::TuneOk {
    connection::TuneOk { channel_max, frame_max, heartbeat }
}

pub(crate) fn publish(exchange: &str, routing_key: &str) -> basic::Publish {
    basic::Publish {
        exchange: exchange.into(),
        routing_key: routing_key.into(),
        ..basic::Publish::default()
    }
}

pub(crate) fn method_frame(channel: u16, method: impl Into<Method>) -> Bytes {
    let mut output = Output::new();
    output.method(channel, &method.into());
    output.to_bytes()
}

pub(crate) fn raw_frame(kind: u8, channel: u16, payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::from(&[kind][..]);
    bytes.extend_from_slice(&channel.to_be_bytes());
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&[0xce]);
    bytes.freeze()
}

/// Returns a content header's payload.
pub(crate) fn content_header(size: u64, properties: &[u8]) -> Bytes {
    let mut bytes = BytesMut::from(&[0, 60, 0, 0][..]);
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(properties);
    bytes.freeze()
}

pub(crate) fn frames(bytes: Bytes) -> Vec<Frame> {
    let len = bytes.len();
    let mut reader = FrameReader::new(u32::MAX);
    reader.push(bytes);
    let frames: Vec<Frame> = std::iter::from_fn(|| reader.next().expect("whole frames")).collect();
    let whole: usize = frames.iter().map(|frame| frame.payload.remaining() + 8).sum();
    assert_eq!(whole, len, "bytes that are no whole frame");
    frames
}

pub(crate) fn method_of(frame: Frame) -> (u16, Method) {
    assert_eq!(frame.kind, FrameKind::Method);
    (frame.channel, Method::decode(&frame.payload).expect("a method"))
}
