//! A client's connection: greeting and heartbeats as `quelea_sqs_client`'s elastic connections have them.

use bytes::Bytes;
use quelea_elastic_proto::frame::{Hello, Role};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{Frame, FrameBuffer, Time};

use crate::packets::cx::{Cx, read_into};
use crate::packets::network::ConnId;

/// As in the client library, milliseconds.
const HEARTBEAT_MS: u64 = 1_000;
const SILENT_PERIODS: u64 = 3;
const GREETING_MS_MAX: u64 = 2_000;

/// See the module.
pub(super) struct Line {
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
pub(super) enum Heard {
    /// Nothing whole.
    Nothing,
    /// WELCOME came just now, with these frames.
    Greeted(Bytes),
    /// Whole frames.
    Frames(Bytes),
    /// It is over.
    Lost(String),
}

impl Line {
    pub(super) fn open(cx: &mut Cx<'_>, address: &str) -> Self {
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
    pub(super) fn connected(&mut self, cx: &mut Cx<'_>) {
        self.connected = true;
        self.heard = cx.now;
        let (role, name) = (Role::Client, cx.party.to_string());
        cx.send(
            self.conn,
            &Frame::Hello(Hello { version: VERSION, role, name, key: Bytes::new() }),
        );
        for bytes in std::mem::take(&mut self.early) {
            self.send(cx, bytes);
        }
    }

    pub(super) fn send(&mut self, cx: &mut Cx<'_>, bytes: Bytes) {
        if self.connected {
            cx.net.send(cx.agenda, self.conn, cx.life.node, &bytes);
        } else {
            self.early.push(bytes);
        }
    }

    pub(super) fn read(&mut self, cx: &Cx<'_>, bytes: &Bytes) -> Heard {
        read_into(&mut self.buffer, bytes);
        self.heard = cx.now;
        let greeted = !self.welcomed;
        if greeted {
            match self.buffer.next_frame() {
                Ok(None) => return Heard::Nothing,
                Ok(Some(Frame::Welcome(welcome))) => {
                    self.welcomed = true;
                    self.buffer.greeted();
                    self.heartbeat_ms = u64::from(welcome.heartbeat_ms.max(1));
                }
                Ok(Some(Frame::Error(error))) => return Heard::Lost(error.text),
                Ok(Some(other)) => return Heard::Lost(other.kind().name().to_owned()),
                Err(error) => return Heard::Lost(error.to_string()),
            }
        }
        match self.buffer.take() {
            Ok(frames) if greeted => Heard::Greeted(frames),
            Ok(frames) if frames.is_empty() => Heard::Nothing,
            Ok(frames) => Heard::Frames(frames),
            Err(error) => Heard::Lost(error.to_string()),
        }
    }

    /// Nobody reads from it: its silence says nothing.
    pub(super) const fn unread(&mut self, now: Time) {
        self.heard = now;
    }

    /// Sends a PING if it is time; says why the connection is given up, if it is.
    pub(super) fn heartbeat(&mut self, cx: &mut Cx<'_>) -> Option<&'static str> {
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
