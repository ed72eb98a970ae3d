//! AMQP connections: accepting them, and one connection's socket, session and task. The task reads and
//! gives the session what it read; the turn writes (`connections.rs`).

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use quelea_amqp_session::{Peer, Session, SessionConfig};
use quelea_broker::{Broker, ConnectionId};
use quelea_model::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::core::{Core, SharedCore};
use crate::timers::Armed;

/// Bytes of one read. Some 800 small publishes: more would keep others waiting for longer than a
/// millisecond, less would cost more system calls.
pub(crate) const READ_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the buffer that all connections read into. A connection that waits holds none of it. A
/// body that is shared instead of copied (from 16 KiB on) keeps all of it: at worst, eight times its
/// own size.
pub(crate) const ARENA_BYTES: usize = 128 * 1024;

/// With less room than this left, a new buffer is begun.
const READ_BYTES_MIN: usize = 32 * 1024;

/// Slices of one vectored write: bodies of 8 KiB and more have one of their own.
const SLICES_MAX: usize = 64;

/// How long a connection that we closed may take to read the rest and close its end.
pub(crate) const LINGER_MS: u64 = 5_000;

/// Until accepting is tried again after it failed for want of file descriptors or memory, which last
/// for a while.
const ACCEPT_RETRY_AFTER: Duration = Duration::from_millis(100);

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its session is alive.
    Open,
    /// Its session is over; output is left to be written until the deadline.
    Flushing(Timestamp),
    /// All is written and our end is closed. What the peer still sends is thrown away until it
    /// closes too: closing a socket with unread input would destroy what the peer has not read yet.
    Lingering(Timestamp),
    /// The task may end.
    Gone,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nothing is left.
    All(usize),
    /// The socket takes no more; the task is woken when it does.
    Blocked(usize),
    /// The peer is gone.
    Broken,
}

/// A connection as the core holds it.
pub(crate) struct Connection {
    pub(crate) session: Session,
    pub(crate) phase: Phase,
    /// Its name in the log.
    pub(crate) name: Box<str>,
    /// The broker's name for it, once it was open.
    pub(crate) id: Option<ConnectionId>,
    /// Tells it from a later connection in the same slot.
    pub(crate) generation: u64,
    /// Dropping it closes our end.
    writer: Option<OwnedWriteHalf>,
    /// Of the connection's task.
    waker: Waker,
    pub(crate) armed: Armed,
    /// It is on the list of those to look after at the end of the turn.
    pub(crate) dirty: bool,
    /// It is on the list of those that wait for the store.
    pub(crate) waits: bool,
    /// Its task does not read, because the session takes no input now.
    pub(crate) paused: bool,
    /// Something happened that stalled input may have waited for.
    pub(crate) retry: bool,
    /// It has input left that it may go on with in its next turn.
    pub(crate) has_more: bool,
    /// Output waits for the socket.
    pub(crate) write_blocked: bool,
}

impl Connection {
    pub(crate) fn new(
        config: &Arc<SessionConfig>,
        writer: OwnedWriteHalf,
        peer: Peer,
        generation: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            name: peer.connection_name().into(),
            session: Session::new(Arc::clone(config), peer, now),
            phase: Phase::Open,
            id: None,
            generation,
            writer: Some(writer),
            waker: Waker::noop().clone(),
            armed: Armed::default(),
            dirty: false,
            waits: false,
            paused: false,
            retry: false,
            has_more: false,
            write_blocked: false,
        }
    }

    /// Has the task look at the connection again.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    pub(crate) fn set_waker(&mut self, waker: &Waker) {
        if !self.waker.will_wake(waker) {
            self.waker = waker.clone();
        }
    }

    /// When the task or the session has to act although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Open => self.session.deadline(),
            Phase::Flushing(deadline) | Phase::Lingering(deadline) => Some(deadline),
            Phase::Gone => None,
        }
    }

    /// Writes as much of the output as the socket takes.
    pub(crate) fn write(&mut self) -> Written {
        let Self { session, writer: Some(writer), waker, .. } = self else {
            return Written::Broken;
        };
        let output = session.output();
        let cx = &mut Context::from_waker(waker);
        let mut written = 0;
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = output.slices(&mut slices);
            if count == 0 {
                return Written::All(written);
            }
            match Pin::new(&mut *writer).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0) | Err(_)) => return Written::Broken,
                Poll::Ready(Ok(bytes)) => {
                    output.advance(bytes);
                    written += bytes;
                }
                Poll::Pending => return Written::Blocked(written),
            }
        }
    }

    /// Whether to read from the socket now. If not, the task is woken when that may have changed.
    fn wants_input(&mut self) -> bool {
        let wants = self.session.wants_input();
        if !wants {
            self.paused = true;
        }
        wants
    }

    /// Its deadline has come.
    pub(crate) fn handle_timeout(&mut self, broker: &mut Broker, now: Timestamp) {
        match self.phase {
            Phase::Open => self.session.handle_timeout(broker, now),
            Phase::Flushing(_) | Phase::Lingering(_) => {
                self.phase = Phase::Gone;
                self.wake();
            }
            Phase::Gone => {}
        }
    }

    /// Ends it without a word to the peer.
    pub(crate) fn abandon(&mut self, broker: &mut Broker, now: Timestamp) {
        if self.phase == Phase::Open {
            self.session.disconnected(broker, now);
        }
        self.phase = Phase::Gone;
        self.wake();
    }

    /// When the session has finished: closes our end if all is written, and has the rest done until
    /// the deadline.
    pub(crate) fn close_if_finished(&mut self, deadline: Timestamp) {
        if !matches!(self.phase, Phase::Open | Phase::Flushing(_)) || !self.session.is_finished() {
            return;
        }
        if self.session.output().is_empty() {
            self.writer = None;
            self.phase = Phase::Lingering(deadline);
        } else if self.phase == Phase::Open {
            self.phase = Phase::Flushing(deadline);
        }
        self.wake();
    }
}

/// Reads into the arena. Returns the bytes, and whether the socket may have more.
fn poll_read(
    reader: &mut OwnedReadHalf,
    arena: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<(usize, bool)>> {
    if arena.capacity() - arena.len() < READ_BYTES_MIN && !arena.try_reclaim(ARENA_BYTES) {
        *arena = BytesMut::with_capacity(ARENA_BYTES);
    }
    let room = READ_BYTES_MAX.min(arena.capacity() - arena.len());
    // The future holds nothing between two polls, so that the arena is only lent.
    let read = pin!(reader.read_buf(&mut arena.limit(room))).poll(cx);
    read.map_ok(|bytes| (bytes, bytes == room))
}

/// Accepts connections and starts a task for each, for ever.
pub(crate) async fn accept(core: SharedCore, listener: TcpListener) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                failing = false;
                start(&core, stream, peer);
            }
            Err(error) => {
                core.with(|core| core.connections.count_accept_error());
                // One line for the whole time, which may be long.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "cannot accept connections; trying on");
                }
                tokio::time::sleep(ACCEPT_RETRY_AFTER).await;
            }
        }
    }
}

fn start(core: &SharedCore, stream: TcpStream, peer: SocketAddr) {
    // Both fail only if the peer is gone already.
    let Ok(local) = stream.local_addr() else { return };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let peer = Peer {
        address: peer.to_string(),
        local: local.to_string(),
        loopback: peer.ip().to_canonical().is_loopback(),
    };
    // The task yields by itself after each read; tokio's budget would stop it mid-turn.
    tokio::task::spawn_local(tokio::task::unconstrained(serve(core.clone(), stream, peer)));
}

/// Serves one connection until it is gone.
async fn serve(core: SharedCore, stream: TcpStream, peer: Peer) {
    let (mut reader, writer) = stream.into_split();
    let Some(slot) = core.with(|core| open(core, writer, peer)) else { return };
    loop {
        match std::future::poll_fn(|cx| core.with(|core| poll(core, slot, &mut reader, cx))).await {
            Step::Read => {}
            // A peer that sends a lot lets the others come first, and the core's turn.
            Step::HasMore => tokio::task::yield_now().await,
            Step::End => break,
        }
    }
    core.with(|core| {
        core.schedule.request_turn();
        core.connections.remove(slot);
    });
}

/// Returns the new connection's slot, or nothing if there are too many or the node stops.
fn open(core: &mut Core, writer: OwnedWriteHalf, peer: Peer) -> Option<usize> {
    let now = core.schedule.request_turn();
    if core.stop.has_begun() {
        core.connections.refuse(&peer, now);
        return None;
    }
    core.connections.add(writer, peer, now)
}

/// What a step of a connection's task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// All that the socket had was read: the next step will wait.
    Read,
    /// The socket or the session has more.
    HasMore,
    /// The connection is gone.
    End,
}

/// One step of a connection: writes are the turn's, reads are done here.
fn poll(
    core: &mut Core,
    slot: usize,
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let phase = core.connections.poll_phase(slot, cx.waker());
    if core.connections[slot].write_blocked && phase != Phase::Gone {
        // Woken because the socket may take more: the turn writes.
        core.connections.mark_dirty(slot);
        core.schedule.request_turn();
    }
    match phase {
        Phase::Gone => return Poll::Ready(Step::End),
        Phase::Flushing(_) => return Poll::Pending,
        Phase::Lingering(_) => {}
        Phase::Open => {
            if resume(core, slot) {
                return Poll::Ready(Step::HasMore);
            }
            if !core.connections[slot].wants_input() {
                return Poll::Pending;
            }
        }
    }
    match poll_read(reader, &mut core.connections.arena, cx) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ok((0, _)) | Err(_)) => {
            let now = core.schedule.request_turn();
            core.connections.disconnect(slot, &mut core.broker, now);
            Poll::Ready(Step::End)
        }
        Poll::Ready(Ok((bytes, socket_has_more))) => {
            core.connections.count_received(bytes);
            let has_more = receive(core, slot) || socket_has_more;
            Poll::Ready(if has_more { Step::HasMore } else { Step::Read })
        }
    }
}

/// Hands what the arena holds to the session. Returns whether it has more to do with it.
fn receive(core: &mut Core, slot: usize) -> bool {
    let now = core.schedule.request_turn();
    let data: Bytes = core.connections.arena.split().freeze();
    let connection = &mut core.connections[slot];
    if connection.phase != Phase::Open {
        return false;
    }
    connection.has_more = connection.session.receive(&mut core.broker, data, now);
    let has_more = connection.has_more;
    core.connections.after_input(slot);
    has_more
}

/// Goes on with input that was left, if there is any; returns whether there was.
fn resume(core: &mut Core, slot: usize) -> bool {
    let connection = &mut core.connections[slot];
    let retry = std::mem::take(&mut connection.retry);
    if !(connection.has_more || (retry && connection.session.is_stalled())) {
        return false;
    }
    let now = core.schedule.request_turn();
    connection.has_more = connection.session.process(&mut core.broker, now);
    core.connections.after_input(slot);
    true
}
