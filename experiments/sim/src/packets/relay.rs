//! A relay process: the core with its connections and turns, as `quelea_elastic_relay::node` has them.

use std::collections::BTreeMap;
use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use quelea_elastic_core::directory::RelaySpec;
use quelea_elastic_core::relay::{Port, Relay, RelayConfig, default_settings};
use quelea_elastic_proto::{Frame, FrameBuffer, Time};
use quelea_testkit::stream_network::{ConnId, SocketEvent};

use crate::packets::context::{Context, read_into};
use crate::packets::control::Control;
use crate::packets::event::Signal;
use crate::packets::keeping::Keeping;
use crate::packets::workload::QUEUE;

/// As in the shell: slices of one write, and milliseconds.
const SLICES_MAX: usize = 64;
const DRAIN_MS: u32 = 10_000;
const STOP_GRACE_MS: u64 = 5_000;
const ORPHAN_MS: u64 = 60_000;

/// Its rings are looked at after so many turns: it takes a step for each client.
const TURNS_LOOKED_AT: u64 = 16;

struct Socket {
    port: Port,
    buffer: FrameBuffer,
    /// Our end is closed: what still comes is thrown away.
    closed: bool,
    blocked: bool,
}

/// A relay's process: the product's state machine, its sockets and its connections to directory and keeper.
pub(super) struct RelayNode {
    core: Relay,
    control: Control,
    keeping: Keeping,
    sockets: BTreeMap<ConnId, Socket>,
    ports: BTreeMap<Port, ConnId>,
    /// It got SIGTERM.
    told_by_signal: bool,
    turns: u64,
    /// Deliveries dropped for full rings, up to the last turn.
    dropped: u64,
}

impl RelayNode {
    pub(super) fn new(
        spec: &RelaySpec,
        address: String,
        directories: Vec<String>,
        now: Time,
    ) -> Self {
        let config = RelayConfig {
            queue: QUEUE.to_owned(),
            relay: spec.relay,
            key: Bytes::new(),
            connections_max: 65_536,
            settings: default_settings(),
        };
        Self {
            core: Relay::new(config, now),
            control: Control::new(spec, address, &directories, now),
            keeping: Keeping::new(),
            sockets: BTreeMap::new(),
            ports: BTreeMap::new(),
            told_by_signal: false,
            turns: 0,
            dropped: 0,
        }
    }

    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        let all = [
            Some(self.core.deadline()),
            self.control.deadline(),
            self.keeping.deadline(),
            self.ends_at(now).1,
        ];
        all.into_iter().flatten().min()
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        self.core.begin_turn(cx.now);
        match signal {
            Signal::Socket(SocketEvent::Accepted(conn)) => self.accept(cx, conn),
            Signal::Socket(SocketEvent::Connected(conn)) => {
                self.control.connected(cx, conn);
                self.keeping.connected(cx, conn);
            }
            Signal::Socket(SocketEvent::Bytes(conn, bytes)) => {
                if self.sockets.contains_key(&conn) {
                    self.read(cx, conn, &bytes);
                } else if self.control.owns(conn) {
                    self.control.read(cx, &mut self.core, conn, &bytes);
                } else {
                    self.keeping.read(cx, &mut self.core, conn, &bytes);
                }
            }
            Signal::Socket(SocketEvent::Closed(conn)) => {
                if let Some(socket) = self.sockets.remove(&conn) {
                    self.ports.remove(&socket.port);
                    self.core.disconnected(socket.port);
                }
                self.control.closed(cx, conn);
                self.keeping.closed(cx, &mut self.core, conn);
            }
            Signal::Socket(SocketEvent::Writable(conn)) => {
                if let Some(socket) = self.sockets.get_mut(&conn) {
                    socket.blocked = false;
                    let port = socket.port;
                    self.core.unblocked(port);
                    self.write(cx, port);
                }
            }
            Signal::Term => {
                if self.told_by_signal {
                    cx.exits = true;
                }
                self.told_by_signal = true;
                self.core.drain(DRAIN_MS);
            }
            _ => {}
        }
        self.control.turn(cx, &mut self.core);
        self.turn(cx);
        self.keeping.turn(cx, &mut self.core);
        if self.ends_at(cx.now).0 {
            cx.exits = true;
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) {
        if self.core.deadline() <= cx.now {
            self.core.tick();
            let overdue: Vec<ConnId> = self
                .sockets
                .iter()
                .filter(|(_, socket)| self.core.is_overdue(socket.port))
                .map(|(conn, _)| *conn)
                .collect();
            for conn in overdue {
                self.end(cx, conn);
            }
        }
        loop {
            while let Some(port) = self.core.poll_writable() {
                self.write(cx, port);
            }
            self.core.settle();
            while self.core.poll_subscription_change().is_some() {}
            if !self.core.has_writable() {
                break;
            }
        }
        self.turns += 1;
        let counters = self.core.counters();
        let dropped = counters.dropped_oldest + counters.dropped_newest;
        let dropped = dropped - std::mem::replace(&mut self.dropped, dropped);
        cx.check.dropped(dropped);
        if dropped > 0 || self.turns.is_multiple_of(TURNS_LOOKED_AT) {
            cx.check.relay_has(cx.participant, self.core.queued_bytes(), dropped > 0);
        }
    }

    fn accept(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        match self.core.connect() {
            Ok(port) => {
                let buffer = FrameBuffer::new();
                let socket = Socket { port, buffer, closed: false, blocked: false };
                self.sockets.insert(conn, socket);
                self.ports.insert(port, conn);
            }
            Err(error) => {
                cx.send(conn, &Frame::Error(error));
                cx.close(conn);
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, conn: ConnId, bytes: &Bytes) {
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        if socket.closed {
            return;
        }
        read_into(&mut socket.buffer, bytes);
        loop {
            match socket.buffer.take() {
                Ok(frames) if frames.is_empty() => return,
                Ok(frames) => {
                    self.core.received(socket.port, frames);
                    if self.core.is_greeted(socket.port) {
                        socket.buffer.greeted();
                    }
                }
                Err(error) => {
                    cx.check.wrong(format!(
                        "{}: it was sent what is no frame: {error}",
                        cx.participant
                    ));
                    self.core.malformed(socket.port, error);
                    return;
                }
            }
        }
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, cx: &mut Context<'_>, port: Port) {
        let Some(conn) = self.ports.get(&port).copied() else { return };
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        if socket.closed || socket.blocked {
            return;
        }
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.core.slices(port, &mut slices);
            if count == 0 {
                break;
            }
            let mut room = cx.net.room(conn, cx.incarnation.node);
            if room == 0 {
                socket.blocked = true;
                return self.core.blocked(port);
            }
            let mut batch = BytesMut::new();
            for slice in &slices[..count] {
                let taken = slice.len().min(room);
                batch.extend_from_slice(&slice[..taken]);
                room -= taken;
            }
            let written = batch.len();
            cx.net.send(cx.agenda, conn, cx.incarnation.node, &batch.freeze());
            self.core.written(port, written);
        }
        if self.core.is_closing(port) {
            socket.closed = true;
            cx.close(conn);
            self.end(cx, conn);
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if let Some(socket) = self.sockets.remove(&conn) {
            self.ports.remove(&socket.port);
            self.core.disconnected(socket.port);
            cx.close(conn);
        }
    }

    /// Returns whether the process ends now, and when it does if nothing happens.
    fn ends_at(&self, now: Time) -> (bool, Option<Time>) {
        if self.control.stop_ordered {
            return (true, None);
        }
        if let Some(until) = self.core.drains_until() {
            let grace = if self.told_by_signal { 0 } else { STOP_GRACE_MS };
            let until = until.plus_ms(grace);
            let drained = self.told_by_signal && self.core.is_drained();
            return (drained || until <= now, Some(until));
        }
        let until = self.control.alone_since.map(|since| since.plus_ms(ORPHAN_MS));
        match until {
            Some(until) if until <= now => (self.core.connections() == 0, None),
            until => (false, until),
        }
    }
}
