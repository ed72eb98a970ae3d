//! Entry points for fuzzing and for tests over arbitrary input. Not part of the interface.
//!
//! Each panics if something does not hold that should hold for every input.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use quelea_model::{Table, Timestamp};

use crate::config::ConnectionConfig;
use crate::connection::ServerConnection;
use crate::event::Event;
use crate::frame::{Frame, FrameError, FrameReader, PROTOCOL_HEADER};
use crate::method::{Method, connection};
use crate::output::Output;
use crate::reply_code::ReplyCode;
use crate::sample::Entropy;
use crate::short_str::ShortStr;

/// The largest frame in these runs: small, so that limits are reached.
const FRAME_MAX: u32 = 4_096;

/// Returns one of each method, with fields made from `data`.
#[must_use]
pub fn methods_from(data: &[u8]) -> Vec<Method> {
    Method::sample_each(&mut Entropy::new(data))
}

/// Any bytes are read as frames or refused, and the result does not depend on how they are cut.
pub fn fuzz_frames(data: &[u8]) {
    let (cut, data) = data.split_first().map_or((1, data), |(cut, data)| (usize::from(*cut), data));
    let whole = read_frames([data]);
    let in_parts = read_frames(data.chunks(cut.max(1)));
    assert_eq!(whole, in_parts, "frames depend on how the bytes were cut");
}

fn read_frames<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<FrameError>) {
    let mut reader = FrameReader::new(FRAME_MAX);
    let mut frames = Vec::new();
    for part in parts {
        reader.push(Bytes::copy_from_slice(part));
        loop {
            match reader.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(reader.buffered() < FRAME_MAX as usize + 8, "more than one frame is held");
    }
    (frames, None)
}

/// Any bytes are a method or refused, and a method is written as it was read.
pub fn fuzz_method(data: &[u8]) {
    let Ok(method) = Method::decode(&Bytes::copy_from_slice(data)) else {
        return;
    };
    let mut once = BytesMut::new();
    method.encode(&mut once);
    let again = Method::decode(&once.clone().freeze()).expect("what was written can be read");
    let mut twice = BytesMut::new();
    again.encode(&mut twice);
    assert_eq!(once, twice, "{} changes when it is written", method.name());
}

/// Any bytes are a field table or refused, and a table is written as it was read.
pub fn fuzz_table(data: &[u8]) {
    let Ok(table) = Table::decode(data) else {
        return;
    };
    let mut once = BytesMut::new();
    table.encode(&mut once);
    let again = Table::decode(&once[4..]).expect("what was written can be read");
    let mut twice = BytesMut::new();
    again.encode(&mut twice);
    assert_eq!(once, twice, "a table changes when it is written");
}

/// Any bytes after a good handshake (or from the start, if the first one is odd) leave a connection
/// whose events are in order, whose output is frames, and which does not care how they were cut.
pub fn fuzz_connection(data: &[u8]) {
    let (mode, data) = data.split_first().map_or((0, data), |(mode, data)| (*mode, data));
    let whole = run_connection(mode, [data]);
    let in_parts = run_connection(mode, data.chunks(usize::from(mode >> 1).max(1)));
    assert_eq!(whole, in_parts, "events depend on how the bytes were cut");
}

/// Runs a connection. Returns its events, as text because a float may be no number, and its output.
fn run_connection<'a>(
    mode: u8,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<String>, Vec<Frame>) {
    let config = Arc::new(ConnectionConfig {
        frame_max: FRAME_MAX,
        message_bytes_max: 10_000,
        ..ConnectionConfig::default()
    });
    let mut run = Run {
        connection: ServerConnection::new(config, Timestamp::ZERO),
        mode,
        channels: BTreeSet::new(),
        closed: false,
        events: Vec::new(),
    };
    if mode & 1 == 0 {
        run.feed(&client_handshake());
        assert!(run.connection.is_open(), "a good handshake opens");
    }
    for part in parts {
        run.feed(part);
    }
    let frames = run.output();
    (run.events, frames)
}

/// Returns what a client sends up to `connection.open`, for a server that offers [`FRAME_MAX`].
fn client_handshake() -> Bytes {
    let start_ok = connection::StartOk {
        mechanism: ShortStr::from_static("PLAIN"),
        response: Bytes::from_static(b"\0guest\0guest"),
        locale: ShortStr::from_static("en_US"),
        ..connection::StartOk::default()
    };
    let tune_ok = connection::TuneOk { channel_max: 100, frame_max: FRAME_MAX, heartbeat: 60 };
    let open = connection::Open { virtual_host: ShortStr::from_static("/") };
    let mut output = Output::new();
    output.put_slice(PROTOCOL_HEADER);
    output.method(0, &start_ok.into());
    output.method(0, &tune_ok.into());
    output.method(0, &open.into());
    output.to_bytes()
}

struct Run {
    connection: ServerConnection,
    mode: u8,
    channels: BTreeSet<u16>,
    closed: bool,
    events: Vec<String>,
}

impl Run {
    fn feed(&mut self, part: &[u8]) {
        self.connection.receive(Bytes::copy_from_slice(part), Timestamp::ZERO);
        while let Some(event) = self.connection.poll(Timestamp::ZERO) {
            assert!(!self.closed, "nothing follows Closed");
            self.events.push(format!("{event:?}"));
            self.event(event);
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Authenticate { .. } => self.connection.authenticated(Ok(())),
            Event::Open { .. } => self.connection.opened(Ok(())),
            Event::ChannelOpen(channel) => {
                assert!(self.channels.insert(channel), "channel {channel} is opened twice");
            }
            Event::ChannelClosed(channel) => {
                assert!(self.channels.remove(&channel), "channel {channel} is closed twice");
                self.connection.channel_close_ok(channel);
            }
            Event::Method { channel, method } => {
                assert!(self.channels.contains(&channel), "{} on a closed channel", method.name());
                if self.mode & 2 == 2 {
                    self.connection.close_channel(channel, ReplyCode::NotFound, "none", 0, 0);
                }
            }
            Event::Publish { channel, body, .. } => {
                assert!(self.channels.contains(&channel), "a publish on a closed channel");
                assert!(body.len() <= 10_000, "a body above the limit");
            }
            Event::UpdateSecret { .. } => {
                self.connection.send(0, &connection::UpdateSecretOk {}.into());
            }
            Event::Closed => {
                self.closed = true;
                self.connection.connection_close_ok();
            }
        }
    }

    /// Returns all that was written: frames, behind a protocol header perhaps.
    fn output(&mut self) -> Vec<Frame> {
        let mut output = self.connection.output().to_bytes();
        if output.starts_with(PROTOCOL_HEADER) {
            output.advance(PROTOCOL_HEADER.len());
        }
        let (frames, error) = read_frames([&output[..]]);
        assert_eq!(error, None, "output is frames");
        for frame in &frames {
            Method::decode(&frame.payload).expect("every reply is a method");
        }
        frames
    }
}
