//! The tasks of AMQP connections: one accepts at each address, one reads each socket and gives the
//! session what it has read. What there is to write the turn writes (`turn.rs`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::buf::Limit;
use bytes::{BufMut, Bytes, BytesMut};
use quelea_amqp_session::Peer;
use quelea_model::limits::EARLY_BYTES_MAX;
use quelea_net::Acceptor;
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::connection::{ARENA_BYTES, Phase};
use crate::connections::Connections;
use crate::core::{Core, SharedCore};

/// Bytes of one read into the arena. Some 800 small publishes: more would keep others waiting for longer than a
/// millisecond, less would cost more system calls.
pub(crate) const READ_BYTES_MAX: usize = 64 * 1024;

/// With less room than this left, a new buffer is begun.
const READ_BYTES_MIN: usize = 32 * 1024;

/// Bytes of a step that reads on and on through large bodies: a few, each with its head. Others wait some 200 µs. With half as many a
/// body of 64 KiB costs a third more, since sender and receiver are woken twice as often; more gives little
/// (docs/benchmarks/amqp.md).
const STEP_BYTES_MAX: usize = 512 * 1024;

/// Bytes of a read before a large body, which is then read to where it stays.
const HEADS_BYTES_MAX: usize = 1024;

/// Accepts connections and starts a task for each, for ever.
pub(crate) async fn accept(core: SharedCore, listener: TcpListener, nodelay: bool) {
    let mut acceptor = Acceptor::new(listener, "AMQP connections");
    loop {
        let failed = || core.with(|core| core.connections.count_accept_error());
        let (stream, peer) = acceptor.accept(failed).await;
        // It is on then, and turning it off fails only if the peer is gone already.
        if quelea_net::prepare_socket(&stream).and_then(|()| stream.set_nodelay(nodelay)).is_ok() {
            start(&core, stream, peer);
        }
    }
}

fn start(core: &SharedCore, stream: TcpStream, peer: SocketAddr) {
    // It fails only if the peer is gone already.
    let Ok(local) = stream.local_addr() else { return };
    let address = peer.ip().to_canonical();
    let peer = Peer {
        address: peer.to_string(),
        local: local.to_string(),
        loopback: address.is_loopback(),
    };
    // The task yields by itself after each read; tokio's budget would stop it mid-turn.
    tokio::task::spawn_local(tokio::task::unconstrained(serve(
        core.clone(),
        stream,
        (peer, address),
    )));
}

/// Serves one connection until it is gone.
async fn serve(core: SharedCore, stream: TcpStream, peer: (Peer, IpAddr)) {
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
fn open(core: &mut Core, writer: OwnedWriteHalf, peer: (Peer, IpAddr)) -> Option<usize> {
    let now = core.schedule.request_turn();
    if core.stop.has_begun() {
        core.connections.refuse(&peer.0, now);
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

/// Carries out one step of a connection: writes are the turn's, reads are done here.
fn poll(
    core: &mut Core,
    slot: usize,
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let connection = &mut core.connections[slot];
    connection.set_waker(cx.waker());
    let phase = connection.phase;
    if connection.write_blocked && phase != Phase::Gone {
        // Woken because the socket may take more: the turn writes.
        core.connections.mark_dirty(slot);
        core.schedule.request_turn();
    }
    match phase {
        Phase::Gone => return Poll::Ready(Step::End),
        Phase::Flushing(_) => return Poll::Pending,
        Phase::Lingering(_) => {}
        Phase::Open if core.connections[slot].is_signing_in() => {
            return poll_signing_in(core, slot, reader, cx);
        }
        Phase::Open => {
            if resume(core, slot) {
                return Poll::Ready(Step::HasMore);
            }
            if !core.connections[slot].wants_input() {
                return Poll::Pending;
            }
        }
    }
    poll_input(core, slot, reader, cx)
}

/// Reads, and hands what was read to the session: once, or on and on through large bodies.
fn poll_input(
    core: &mut Core,
    slot: usize,
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let mut step_bytes = 0;
    loop {
        let room_max = STEP_BYTES_MAX - step_bytes;
        let (read, to) = poll_read(reader, &mut core.connections, (slot, room_max), cx);
        let (bytes, socket_has_more) = match read {
            // It has been asked to wake the task.
            Poll::Pending if step_bytes > 0 => return Poll::Ready(Step::Read),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok((0, _)) | Err(_)) => {
                let now = core.schedule.request_turn();
                core.connections.disconnect(slot, &mut core.broker, now);
                return Poll::Ready(Step::End);
            }
            Poll::Ready(Ok(read)) => read,
        };
        core.connections.count_received(slot, bytes);
        step_bytes += bytes;
        let session_has_more = match to {
            ReadTo::Arena => {
                core.coalescing.count_read(slot, bytes);
                receive(core, slot)
            }
            ReadTo::Body => {
                core.coalescing.count_body(slot, bytes);
                let now = core.schedule.clock_time();
                core.connections[slot].session.advance_body(bytes, now);
                false
            }
        };
        let session = &core.connections[slot].session;
        let goes_on = session.is_mid_body_frame() && step_bytes < STEP_BYTES_MAX;
        if session_has_more || (socket_has_more && !goes_on) {
            return Poll::Ready(Step::HasMore);
        }
        if !goes_on {
            return Poll::Ready(Step::Read);
        }
    }
}

/// Reads while the password of a connection is checked: only the connection's end matters. What
/// comes is kept for later.
fn poll_signing_in(
    core: &mut Core,
    slot: usize,
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    let early = &mut core.connections[slot].early;
    let room = EARLY_BYTES_MAX + 1 - early.len();
    // The future holds nothing between two polls.
    let read = pin!(reader.read_buf(&mut early.limit(room))).poll(cx);
    match read {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ok(bytes @ 1..)) if core.connections[slot].early.len() <= EARLY_BYTES_MAX => {
            core.connections.count_received(slot, bytes);
            Poll::Ready(Step::Read)
        }
        Poll::Ready(_) => {
            let now = core.schedule.request_turn();
            core.connections.disconnect(slot, &mut core.broker, now);
            Poll::Ready(Step::End)
        }
    }
}

/// Hands what the arena holds to the session. Returns whether it has more to do with it.
fn receive(core: &mut Core, slot: usize) -> bool {
    let now = core.schedule.request_turn();
    let at = core.schedule.input_time();
    let data: Bytes = core.connections.arena.split().freeze();
    let connection = &mut core.connections[slot];
    if connection.phase != Phase::Open {
        return false;
    }
    connection.session.set_input_time(at);
    connection.has_more = connection.session.receive(&mut core.broker, data, now);
    let has_more = connection.has_more;
    core.connections.after_input(slot);
    has_more
}

/// Goes on with input that was left, if there is any; returns whether there was.
fn resume(core: &mut Core, slot: usize) -> bool {
    let connection = &mut core.connections[slot];
    let retry = std::mem::take(&mut connection.retry);
    let session = &connection.session;
    let waits = session.is_stalled() || session.awaits_removal();
    if !(connection.has_more || (retry && waits)) {
        return false;
    }
    let now = core.schedule.request_turn();
    connection.has_more = connection.session.process(&mut core.broker, now);
    core.connections.after_input(slot);
    true
}

/// Where something was read to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadTo {
    /// For the session to look at.
    Arena,
    /// Behind what has come of a large body.
    Body,
}

/// Reads the next bytes, `room_max` at most. Returns how many, and whether the socket may have more.
fn poll_read(
    reader: &mut OwnedReadHalf,
    connections: &mut Connections,
    (slot, room_max): (usize, usize),
    cx: &mut Context<'_>,
) -> (Poll<io::Result<(usize, bool)>>, ReadTo) {
    let connection = &mut connections[slot];
    if connection.phase == Phase::Open
        && let Some(mut room) = connection.session.body_buffer()
    {
        room.set_limit(room_max.min(room.remaining_mut()));
        return (poll_read_to(reader, room, cx), ReadTo::Body);
    }
    let bytes_max = match connection.session.expects_body() {
        true => HEADS_BYTES_MAX,
        false => READ_BYTES_MAX,
    };
    let arena = &mut connections.arena;
    if arena.capacity() - arena.len() < READ_BYTES_MIN && !arena.try_reclaim(ARENA_BYTES) {
        *arena = BytesMut::with_capacity(ARENA_BYTES);
    }
    let room = bytes_max.min(room_max).min(arena.capacity() - arena.len());
    (poll_read_to(reader, arena.limit(room), cx), ReadTo::Arena)
}

fn poll_read_to(
    reader: &mut OwnedReadHalf,
    mut buffer: Limit<impl BufMut>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<(usize, bool)>> {
    let room = buffer.remaining_mut();
    // The future holds nothing between two polls, so that the buffer is only lent.
    let read = pin!(reader.read_buf(&mut buffer)).poll(cx);
    read.map_ok(|bytes| (bytes, bytes == room))
}
