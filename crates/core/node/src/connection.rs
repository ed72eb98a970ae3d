//! One AMQP connection's socket and session, and the task that serves it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{BufMut as _, BytesMut};
use quelea_amqp_session::{Peer, Session, SessionConfig};
use quelea_broker::ConnectionId;
use quelea_model::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

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

    /// Closes our end of the connection.
    pub(crate) fn close_writer(&mut self) {
        self.writer = None;
    }
}

/// Reads into the arena. Gives the bytes, and whether the socket may have more.
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

/// Serves one connection until it is gone.
pub(crate) async fn serve(
    core: SharedCore,
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
) {
    let (mut reader, writer) = stream.into_split();
    let peer = Peer {
        address: peer.to_string(),
        local: local.to_string(),
        loopback: peer.ip().to_canonical().is_loopback(),
    };
    let Some(slot) = core.with(|core| core.connected(writer, peer)) else { return };
    loop {
        match std::future::poll_fn(|cx| core.with(|core| poll(core, slot, &mut reader, cx))).await {
            Step::Read => {}
            // Whoever sends a lot lets the others come first, and the core's turn.
            Step::HasMore => tokio::task::yield_now().await,
            Step::End => break,
        }
    }
    core.with(|core| core.remove(slot));
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

/// One step of a connection.
fn poll(
    core: &mut Core,
    slot: usize,
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    match core.prepare(slot, cx.waker()) {
        Phase::Gone => return Poll::Ready(Step::End),
        Phase::Flushing(_) => return Poll::Pending,
        Phase::Lingering(_) => {}
        Phase::Open => {
            if core.go_on(slot) {
                return Poll::Ready(Step::HasMore);
            }
            if !core.wants_input(slot) {
                return Poll::Pending;
            }
        }
    }
    match poll_read(reader, &mut core.arena, cx) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ok((0, _)) | Err(_)) => {
            core.disconnected(slot);
            Poll::Ready(Step::End)
        }
        Poll::Ready(Ok((_, socket_has_more))) => {
            let has_more = core.received(slot) || socket_has_more;
            Poll::Ready(if has_more { Step::HasMore } else { Step::Read })
        }
    }
}
