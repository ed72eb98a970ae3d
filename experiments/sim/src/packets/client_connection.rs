//! A client's connection: greeting and heartbeats as `quelea_sqs_client`'s elastic connections have them.

use bytes::Bytes;
use quelea_elastic_proto::frame::{Hello, Role};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{Frame, FrameBuffer, Time};
use quelea_testkit::stream_network::ConnId;

use crate::packets::context::{Context, read_into};

/// As in the client library, milliseconds.
const HEARTBEAT_MS: u64 = 1_000;
const SILENT_PERIODS: u64 = 3;
const GREETING_MS_MAX: u64 = 2_000;

/// One connection of a client, to a directory or to a relay.
pub(super) struct ClientConnection {
    pub(super) conn: ConnId,
    buffer: FrameBuffer,
    connected: bool,
    welcomed: bool,
    heartbeat_ms: u64,
    begun: Time,
    heard: Time,
    pinged: Time,
    /// Frames that are given before the connection is made.
    early: Vec<Bytes>,
}

/// What came of something that was read.
pub(super) enum Received {
    /// Nothing whole.
    Nothing,
    /// WELCOME came just now, with these frames.
    Greeted(Bytes),
    /// Whole frames.
    Frames(Bytes),
    /// It is over.
    Lost(String),
}

impl ClientConnection {
    pub(super) fn open(cx: &mut Context<'_>, address: &str) -> Self {
        Self {
            conn: cx.connect(address),
            buffer: FrameBuffer::new(),
            connected: false,
            welcomed: false,
            heartbeat_ms: HEARTBEAT_MS,
            begun: cx.now,
            heard: cx.now,
            pinged: cx.now,
            early: Vec::new(),
        }
    }

    /// The connection is made: HELLO goes first.
    pub(super) fn connected(&mut self, cx: &mut Context<'_>) {
        self.connected = true;
        self.heard = cx.now;
        let (role, name) = (Role::Client, cx.participant.to_string());
        cx.send(
            self.conn,
            &Frame::Hello(Hello { version: VERSION, role, name, key: Bytes::new() }),
        );
        for bytes in std::mem::take(&mut self.early) {
            self.send(cx, bytes);
        }
    }

    pub(super) fn send(&mut self, cx: &mut Context<'_>, bytes: Bytes) {
        if self.connected {
            cx.net.send(cx.agenda, self.conn, cx.incarnation.node, &bytes);
        } else {
            self.early.push(bytes);
        }
    }

    pub(super) fn read(&mut self, cx: &Context<'_>, bytes: &Bytes) -> Received {
        read_into(&mut self.buffer, bytes);
        self.heard = cx.now;
        let greeted = !self.welcomed;
        if greeted {
            match self.buffer.next_frame() {
                Ok(None) => return Received::Nothing,
                Ok(Some(Frame::Welcome(welcome))) => {
                    self.welcomed = true;
                    self.buffer.greeted();
                    self.heartbeat_ms = u64::from(welcome.heartbeat_ms.max(1));
                }
                Ok(Some(Frame::Error(error))) => return Received::Lost(error.text),
                Ok(Some(other)) => return Received::Lost(other.kind().name().to_owned()),
                Err(error) => return Received::Lost(error.to_string()),
            }
        }
        match self.buffer.take() {
            Ok(frames) if greeted => Received::Greeted(frames),
            Ok(frames) if frames.is_empty() => Received::Nothing,
            Ok(frames) => Received::Frames(frames),
            Err(error) => Received::Lost(error.to_string()),
        }
    }

    /// Nobody reads from it: its silence says nothing.
    pub(super) const fn unread(&mut self, now: Time) {
        self.heard = now;
    }

    /// Sends a PING if it is time; says why the connection is given up, if it is.
    pub(super) fn heartbeat(&mut self, cx: &mut Context<'_>) -> Option<&'static str> {
        if !self.welcomed {
            return (cx.now.since_ms(self.begun) >= GREETING_MS_MAX)
                .then_some("no WELCOME in time");
        }
        if cx.now.since_ms(self.heard) >= SILENT_PERIODS * self.heartbeat_ms {
            return Some("silent for too long");
        }
        if self.pinged.plus_ms(self.heartbeat_ms) <= cx.now {
            self.pinged = cx.now;
            cx.send(self.conn, &Frame::Ping(0));
        }
        None
    }

    pub(super) fn deadline(&self) -> Time {
        if !self.welcomed {
            return self.begun.plus_ms(GREETING_MS_MAX);
        }
        let silent = self.heard.plus_ms(SILENT_PERIODS * self.heartbeat_ms);
        self.pinged.plus_ms(self.heartbeat_ms).min(silent)
    }
}
