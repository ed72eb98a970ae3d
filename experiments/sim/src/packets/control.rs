//! A relay's connection to the directory, as `quelea_elastic_relay::control` keeps it.

use bytes::Bytes;
use quelea_elastic_core::directory::RelaySpec;
use quelea_elastic_core::relay::{Command, Relay};
use quelea_elastic_proto::frame::WireError;
use quelea_elastic_proto::frame::{Hello, Role};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{DirectorySearch, Fence, Frame, FrameBuffer, RelayId, Time};
use quelea_testkit::stream_network::ConnId;

use crate::packets::context::{Context, read_into};

/// As in the shell, milliseconds.
const ANSWER_MS_MAX: u64 = 3_000;
const SILENT_REPORTS_MAX: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Backoff,
    Connecting,
    Greeting,
    Registering,
    Registered { report_ms: u32, silent: u32 },
}

/// Why a connection ended.
enum Lost {
    Any,
    Elsewhere { address: String, retry_after_ms: u64 },
}

/// A relay's connection to the directory, with its phases.
pub(super) struct Control {
    relay: RelayId,
    request: String,
    address: String,
    search: DirectorySearch,
    phase: Phase,
    /// When the phase is over, or the next report is due.
    due: Time,
    conn: Option<ConnId>,
    buffer: FrameBuffer,
    pub(super) alone_since: Option<Time>,
    pub(super) stop_ordered: bool,
    /// The highest that a directory has shown.
    fence: Fence,
}

impl Control {
    pub(super) fn new(
        spec: &RelaySpec,
        address: String,
        directories: &[String],
        now: Time,
    ) -> Self {
        Self {
            relay: spec.relay,
            request: spec.request.clone(),
            address,
            search: DirectorySearch::new(directories.iter().cloned(), spec.relay.0),
            phase: Phase::Backoff,
            due: now,
            conn: None,
            buffer: FrameBuffer::new(),
            alone_since: Some(now),
            stop_ordered: false,
            fence: Fence(0),
        }
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        if self.stop_ordered { None } else { Some(self.due) }
    }

    pub(super) fn owns(&self, conn: ConnId) -> bool {
        self.conn == Some(conn)
    }

    pub(super) fn connected(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if self.conn != Some(conn) {
            return;
        }
        let name = format!("relay {}", self.relay.0);
        let hello = Hello { version: VERSION, role: Role::Relay, name, key: Bytes::new() };
        cx.send(conn, &Frame::Hello(hello));
        self.enter(Phase::Greeting, cx.now);
    }

    pub(super) fn closed(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if self.conn == Some(conn) {
            self.lose(cx, Lost::Any);
        }
    }

    pub(super) fn read(
        &mut self,
        cx: &mut Context<'_>,
        core: &mut Relay,
        conn: ConnId,
        bytes: &Bytes,
    ) {
        read_into(&mut self.buffer, bytes);
        while self.conn == Some(conn) && !self.stop_ordered {
            match self.buffer.next_frame() {
                Ok(Some(frame)) => self.take(cx, core, conn, frame),
                Ok(None) => return,
                Err(error) => {
                    cx.check.wrong(format!(
                        "{}: it was sent what is no frame: {error}",
                        cx.participant
                    ));
                    return self.lose(cx, Lost::Any);
                }
            }
        }
    }

    pub(super) fn turn(&mut self, cx: &mut Context<'_>, core: &mut Relay) {
        if self.stop_ordered || self.due > cx.now {
            return;
        }
        match self.phase {
            Phase::Backoff => {
                self.buffer = FrameBuffer::new();
                self.conn = Some(cx.connect(self.search.address()));
                self.enter(Phase::Connecting, cx.now);
            }
            Phase::Connecting | Phase::Greeting | Phase::Registering => self.lose(cx, Lost::Any),
            Phase::Registered { silent, .. } if silent >= SILENT_REPORTS_MAX => {
                self.lose(cx, Lost::Any);
            }
            Phase::Registered { report_ms, silent } => {
                self.phase = Phase::Registered { report_ms, silent: silent + 1 };
                self.due = cx.now.plus_ms(u64::from(report_ms.max(1)));
                let Some(conn) = self.conn else { return };
                let reports = core.report(0);
                let number = reports.last().map_or(0, |report| report.number);
                for report in reports {
                    cx.send(conn, &Frame::Report(report));
                }
                cx.send(conn, &Frame::Ping(number));
            }
        }
    }

    fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.due = now.plus_ms(ANSWER_MS_MAX);
    }

    fn take(&mut self, cx: &mut Context<'_>, core: &mut Relay, conn: ConnId, frame: Frame) {
        if self.phase == Phase::Greeting {
            let Frame::Welcome(_) = frame else { return self.lose(cx, Lost::Any) };
            self.buffer.greeted();
            let zmtp = (String::new(), String::new());
            let register = core.register(self.relay, &self.request, self.address.clone(), zmtp);
            cx.send(conn, &register);
            return self.enter(Phase::Registering, cx.now);
        }
        if let Phase::Registered { report_ms, .. } = self.phase {
            self.phase = Phase::Registered { report_ms, silent: 0 };
        }
        let fence = fence_of(&frame);
        let kind = frame.kind().name();
        let command = core.command(frame);
        if let Some(fence) = fence {
            let refused = matches!(&command, Command::Answer(Frame::Error(_)));
            if fence < self.fence && !refused {
                cx.check.wrong(format!(
                    "{}: {kind} with fence {} took effect after fence {} was seen",
                    cx.participant, fence.0, self.fence.0
                ));
            }
            self.fence = self.fence.max(fence);
        }
        match command {
            Command::Directories(directories) => self.search.learn(&directories),
            Command::Registered { report_ms } => {
                let before = self.phase;
                if !matches!(before, Phase::Registered { report_ms: of, .. } if of == report_ms) {
                    self.phase = Phase::Registered { report_ms, silent: 0 };
                    self.due = cx.now;
                }
                self.alone_since = None;
            }
            Command::Redirected { address, retry_after_ms } => {
                let retry_after_ms = u64::from(retry_after_ms);
                self.lose(cx, Lost::Elsewhere { address, retry_after_ms });
            }
            Command::Stop => self.stop_ordered = true,
            Command::Refused(error) if is_fatal(&error) => self.lose(cx, Lost::Any),
            Command::Bye(_) => self.lose(cx, Lost::Any),
            Command::Answer(frame) => cx.send(conn, &frame),
            Command::Refused(_) | Command::Done => {}
        }
    }

    fn lose(&mut self, cx: &mut Context<'_>, lost: Lost) {
        if let Some(conn) = self.conn.take() {
            cx.close(conn);
        }
        let registered = self.alone_since.is_none();
        self.alone_since.get_or_insert(cx.now);
        self.phase = Phase::Backoff;
        let redirection = match lost {
            Lost::Elsewhere { address, retry_after_ms } => Some((address, retry_after_ms)),
            Lost::Any => None,
        };
        self.due = cx.now.plus_ms(self.search.lost(registered, redirection));
    }
}

/// Returns the fence of a command.
const fn fence_of(frame: &Frame) -> Option<Fence> {
    match frame {
        Frame::Registered { fence, .. }
        | Frame::Drain { fence, .. }
        | Frame::Stop { fence }
        | Frame::FenceProducer { fence, .. } => Some(*fence),
        _ => None,
    }
}

/// Returns whether an error ends a connection.
pub(super) const fn is_fatal(error: &WireError) -> bool {
    error.fatal
}
