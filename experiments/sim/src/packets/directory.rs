//! A directory: the state machine, with its connections as `quelea_elastic_directory::connection` and its driver
//! serve them.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_elastic_core::directory::{
    Address, Directory, Effect, Input, Peer, ProviderOutcome, RelayHandle, Settings,
};
use quelea_elastic_core::ownership::{Answer, Call, Input as OwnershipInput};
use quelea_elastic_proto::frame::{Role, Welcome};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{Frame, FrameBuffer, RelayId, Time};
use quelea_testkit::stream_network::{ConnId, SocketEvent};

use crate::packets::context::{Context, read_into};
use crate::packets::event::{ProviderAnswer, ProviderCall, Signal};
use crate::packets::ownership::Ownership;
use crate::packets::workload::QUEUE;

/// As in the shell, milliseconds.
const HELLO_MS_MAX: u64 = 10_000;
const HEARTBEAT_MS: u32 = 5_000;
const SILENCE_MS_MAX: u64 = 15_000;
/// Numbers of calls to the provider begin here: those below are the ownership's.
const CALLS_FROM: u64 = 1 << 32;

struct AcceptedConnection {
    buffer: FrameBuffer,
    peer: Option<Peer>,
    heard: Time,
}

/// A directory's process: the product's state machine with its connections and its calls.
pub(super) struct DirectoryNode {
    pub(super) core: Directory,
    pub(super) ownership: Ownership,
    lines: BTreeMap<ConnId, AcceptedConnection>,
    peers: BTreeMap<Peer, ConnId>,
    last_peer: u64,
    /// What the provider was asked, and about which relay.
    calls: BTreeMap<u64, RelayId>,
    last_call: u64,
}

impl DirectoryNode {
    pub(super) fn new(settings: Settings, address: String, incarnation: String, now: Time) -> Self {
        Self {
            core: Directory::new(settings),
            ownership: Ownership::new(address, incarnation, now),
            lines: BTreeMap::new(),
            peers: BTreeMap::new(),
            last_peer: 0,
            calls: BTreeMap::new(),
            last_call: CALLS_FROM,
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let silent = |line: &AcceptedConnection| {
            line.heard.plus_ms(if line.peer.is_some() { SILENCE_MS_MAX } else { HELLO_MS_MAX })
        };
        let lines = self.lines.values().map(silent).min();
        let all = [self.core.next_deadline(), Some(self.ownership.deadline()), lines];
        all.into_iter().flatten().min()
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        match signal {
            Signal::Socket(SocketEvent::Accepted(conn)) => {
                let line =
                    AcceptedConnection { buffer: FrameBuffer::new(), peer: None, heard: cx.now };
                self.lines.insert(conn, line);
            }
            Signal::Socket(SocketEvent::Bytes(conn, bytes)) => self.read(cx, conn, &bytes),
            Signal::Socket(SocketEvent::Closed(conn)) => self.gone(cx, conn),
            Signal::Store(call, answer) => self.ownership.answered(cx, call, answer),
            Signal::Changes(changes) => {
                self.ownership.changed(cx, changes);
            }
            Signal::Provider(call, answer) => self.provider_answers(cx, call, answer),
            Signal::Ended(handle, cause) => {
                let outcome = ProviderOutcome::Ended(cause);
                self.report_provider_outcome(cx, handle.relay, outcome);
            }
            Signal::Input(input) => self.core.handle(cx.now, *input),
            Signal::Timer => self.end_the_silent(cx),
            _ => {}
        }
        self.turn(cx);
    }

    fn turn(&mut self, cx: &mut Context<'_>) {
        if self.core.next_deadline().is_some_and(|at| at <= cx.now) {
            self.core.handle(cx.now, Input::Tick);
            if self.core.next_deadline().is_some_and(|at| at <= cx.now) {
                cx.check.wrong(format!("{}: a tick does not set its deadline on", cx.participant));
            }
        }
        loop {
            self.carry_out(cx);
            self.ownership.turn(cx);
            let Some(input) = self.ownership.inputs.pop_front() else { break };
            let owned = matches!(input, Input::Owned { .. });
            self.core.handle(cx.now, input);
            if owned && !self.core.owns(QUEUE) {
                self.ownership.handle(cx, OwnershipInput::Declined { queue: QUEUE.to_owned() });
            }
        }
    }

    fn carry_out(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Send { peer, frame } => {
                    if let Some(conn) = self.peers.get(&peer) {
                        cx.send(*conn, &frame);
                    }
                }
                Effect::Close { peer } => {
                    if let Some(conn) = self.peers.get(&peer).copied() {
                        cx.close(conn);
                        self.gone(cx, conn);
                    }
                }
                Effect::Claim { queue } => {
                    self.ownership.handle(cx, OwnershipInput::Claim { queue });
                }
                Effect::Save { queue, save, fence, record } => {
                    let record = Some(record);
                    self.ownership.handle(cx, OwnershipInput::Write { queue, save, fence, record });
                }
                Effect::Remove { queue, fence } => {
                    let (save, record) = (0, None);
                    self.ownership.handle(cx, OwnershipInput::Write { queue, save, fence, record });
                }
                Effect::StartRelay { spec, .. } => {
                    let relay = spec.relay;
                    self.call(cx, relay, ProviderCall::Start(spec));
                }
                // Only shown: no provider here shows it. Nor does one here know of ends that it did not report.
                Effect::DrainRelay { .. } | Effect::CheckRelay { .. } => {}
                Effect::StopRelay { relay, name, .. } => {
                    let handle = RelayHandle { relay, request: String::new(), name };
                    self.call(cx, relay, ProviderCall::Stop(handle));
                }
                Effect::Event(event) => cx.check.event(cx.participant, cx.now, &event),
            }
        }
    }

    fn call(&mut self, cx: &mut Context<'_>, relay: RelayId, call: ProviderCall) {
        self.last_call += 1;
        self.calls.insert(self.last_call, relay);
        cx.ask_provider(self.last_call, call);
    }

    fn provider_answers(&mut self, cx: &mut Context<'_>, call: u64, answer: ProviderAnswer) {
        let relay = self.calls.remove(&call);
        let outcome = match answer {
            ProviderAnswer::Running(running) => {
                return self.ownership.answered(cx, Call(call), Answer::Running(running));
            }
            ProviderAnswer::Started(handle) => ProviderOutcome::Started(handle),
            ProviderAnswer::Failed(cause) => ProviderOutcome::Failed(cause),
            ProviderAnswer::Stopping { gone: true } => {
                ProviderOutcome::Ended("it was gone already".to_owned())
            }
            ProviderAnswer::Stopping { gone: false } => return,
        };
        if let Some(relay) = relay {
            self.report_provider_outcome(cx, relay, outcome);
        }
    }

    fn report_provider_outcome(
        &mut self,
        cx: &Context<'_>,
        relay: RelayId,
        outcome: ProviderOutcome,
    ) {
        let queue = QUEUE.to_owned();
        self.core.handle(cx.now, Input::Provider { queue, relay, outcome });
    }

    fn read(&mut self, cx: &mut Context<'_>, conn: ConnId, bytes: &Bytes) {
        let Some(line) = self.lines.get_mut(&conn) else { return };
        read_into(&mut line.buffer, bytes);
        line.heard = cx.now;
        loop {
            let Some(line) = self.lines.get_mut(&conn) else { return };
            match line.buffer.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) => self.take(cx, conn, frame),
                Err(error) => {
                    cx.check.wrong(format!(
                        "{}: it was sent what is no frame: {error}",
                        cx.participant
                    ));
                    return;
                }
            }
        }
    }

    fn take(&mut self, cx: &mut Context<'_>, conn: ConnId, frame: Frame) {
        let Some(line) = self.lines.get_mut(&conn) else { return };
        match (line.peer, frame) {
            (None, Frame::Hello(hello)) => {
                self.last_peer += 1;
                let peer = Peer(self.last_peer);
                line.peer = Some(peer);
                line.buffer.greeted();
                self.peers.insert(peer, conn);
                let welcome = Welcome { version: VERSION, heartbeat_ms: HEARTBEAT_MS };
                cx.send(conn, &Frame::Welcome(welcome));
                let role = hello.role;
                if !matches!(role, Role::Client | Role::Relay) {
                    cx.check.wrong(format!("{}: a {role:?} has connected", cx.participant));
                }
                let address = Address(1);
                self.core.handle(cx.now, Input::Connected { peer, role, address });
            }
            (Some(_), Frame::Ping(number)) => cx.send(conn, &Frame::Pong(number)),
            (Some(_), Frame::Pong(_)) => {}
            (_, Frame::Bye(_)) => {
                cx.close(conn);
                self.gone(cx, conn);
            }
            (Some(peer), frame) => {
                self.core.handle(cx.now, Input::Received { peer, frame });
                self.carry_out(cx);
            }
            (None, frame) => {
                let kind = frame.kind().name();
                cx.check.wrong(format!("{}: {kind} came before HELLO", cx.participant));
            }
        }
    }

    fn gone(&mut self, cx: &Context<'_>, conn: ConnId) {
        let Some(peer) = self.lines.remove(&conn).and_then(|line| line.peer) else { return };
        self.peers.remove(&peer);
        self.core.handle(cx.now, Input::Disconnected { peer });
    }

    fn end_the_silent(&mut self, cx: &mut Context<'_>) {
        let silent = |line: &AcceptedConnection| {
            let most = if line.peer.is_some() { SILENCE_MS_MAX } else { HELLO_MS_MAX };
            cx.now.since_ms(line.heard) >= most
        };
        let conns: Vec<ConnId> =
            self.lines.iter().filter(|(_, line)| silent(line)).map(|(conn, _)| *conn).collect();
        for conn in conns {
            cx.close(conn);
            self.gone(cx, conn);
        }
    }
}
