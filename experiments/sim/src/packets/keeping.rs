//! A relay's connection to the keeper, as `quelea_elastic_relay::keeper` keeps it, and the keeper itself: a log
//! that outlives its process.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_elastic_core::relay::Relay;
use quelea_elastic_proto::frame::{Hello, Role, Welcome};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{Frame, FrameBuffer, MessageSeq, Time};
use quelea_testkit::stream_network::{ConnId, SocketEvent};

use crate::packets::context::{Context, read_into};
use crate::packets::event::Signal;
use crate::packets::workload::QUEUE;

/// Where the keeper is.
pub(super) const KEEPER: &str = "keeper:1";
/// As in the shell, milliseconds.
const ANSWER_MS_MAX: u64 = 3_000;
const PAUSE_MS_MIN: u64 = 50;
const PAUSE_MS_MAX: u64 = 2_000;

/// A relay's end of it.
pub(super) struct Keeping {
    conn: Option<ConnId>,
    buffer: FrameBuffer,
    open: bool,
    kept: bool,
    pause_ms: u64,
    /// Until when an answer has to be there, or when the next attempt may begin.
    due: Option<Time>,
}

impl Keeping {
    pub(super) fn new() -> Self {
        Self {
            conn: None,
            buffer: FrameBuffer::new(),
            open: false,
            kept: false,
            pause_ms: PAUSE_MS_MIN,
            due: None,
        }
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        self.due
    }

    pub(super) fn turn(&mut self, cx: &mut Context<'_>, core: &mut Relay) {
        if self.conn.is_none() {
            let wanted = core.keeper().is_some() && core.has_keeps();
            if self.due.is_some_and(|due| due > cx.now) {
                return;
            }
            self.due = None;
            if wanted {
                self.buffer = FrameBuffer::new();
                (self.open, self.kept) = (false, false);
                self.conn = Some(cx.connect(KEEPER));
                self.due = Some(cx.now.plus_ms(ANSWER_MS_MAX));
            }
            return;
        }
        if !self.open && self.due.is_some_and(|due| due <= cx.now) {
            return self.lose(cx, core);
        }
        if self.open && core.keeper().is_none() {
            return self.lose(cx, core);
        }
        if let Some(conn) = self.conn.filter(|_| self.open) {
            while let Some(frame) = core.poll_keep() {
                cx.send(conn, &frame);
            }
        }
    }

    pub(super) fn connected(&self, cx: &mut Context<'_>, conn: ConnId) {
        if self.conn != Some(conn) {
            return;
        }
        let name = "relay".to_owned();
        let hello = Hello { version: VERSION, role: Role::Keeper, name, key: Bytes::new() };
        cx.send(conn, &Frame::Hello(hello));
        let (queue, target) = (QUEUE.to_owned(), "kept".to_owned());
        cx.send(conn, &Frame::KeepOpen { queue, target });
    }

    pub(super) fn read(
        &mut self,
        cx: &mut Context<'_>,
        core: &mut Relay,
        conn: ConnId,
        bytes: &Bytes,
    ) {
        if self.conn != Some(conn) {
            return;
        }
        read_into(&mut self.buffer, bytes);
        loop {
            match self.buffer.next_frame() {
                Ok(Some(Frame::Welcome(_))) => {
                    self.buffer.greeted();
                    self.open = true;
                    self.due = None;
                }
                Ok(Some(Frame::Kept { producer, below })) => {
                    self.kept = true;
                    core.kept(producer, below);
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    cx.check
                        .wrong(format!("{}: the keeper sent no frame: {error}", cx.participant));
                    return;
                }
            }
        }
    }

    pub(super) fn closed(&mut self, cx: &mut Context<'_>, core: &mut Relay, conn: ConnId) {
        if self.conn == Some(conn) {
            self.lose(cx, core);
        }
    }

    fn lose(&mut self, cx: &mut Context<'_>, core: &mut Relay) {
        if let Some(conn) = self.conn.take() {
            cx.close(conn);
        }
        core.resend_keeps();
        self.open = false;
        self.pause_ms = if self.kept { PAUSE_MS_MIN } else { PAUSE_MS_MAX.min(self.pause_ms * 2) };
        self.due = Some(cx.now.plus_ms(self.pause_ms));
    }
}

/// The keeper. What it has stored is with the checks, which outlive it.
#[derive(Default)]
pub(super) struct KeeperNode {
    lines: BTreeMap<ConnId, FrameBuffer>,
}

impl KeeperNode {
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        match signal {
            Signal::Socket(SocketEvent::Accepted(conn)) => {
                self.lines.insert(conn, FrameBuffer::new());
            }
            Signal::Socket(SocketEvent::Closed(conn)) => {
                self.lines.remove(&conn);
            }
            Signal::Socket(SocketEvent::Bytes(conn, bytes)) => {
                let Some(buffer) = self.lines.get_mut(&conn) else { return };
                read_into(buffer, &bytes);
                while let Ok(Some(frame)) = buffer.next_frame() {
                    match frame {
                        Frame::Hello(_) => {
                            buffer.greeted();
                            let welcome = Welcome { version: VERSION, heartbeat_ms: 5_000 };
                            cx.send(conn, &Frame::Welcome(welcome));
                        }
                        Frame::Keep { producer, first, messages } => {
                            let below = first.0 + messages.len() as u64;
                            cx.check.stored(producer, first.0..below);
                            cx.send(conn, &Frame::Kept { producer, below: MessageSeq(below) });
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
