//! Datagrams in and out: the trait that each backend implements, and what it takes and returns.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use quelea_cmq_proto::Transmit;
use quelea_cmq_proto::endpoint::Buffer;

use super::Pool;

/// What one receive returned: a datagram, or a train of them.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: Buffer,
    pub(crate) segment_bytes: usize,
}

/// How much to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// What is there, up to a batch.
    All,
    /// No more if the first one is a small datagram: likely it is an answer that somebody waits for,
    /// and another call would only delay it.
    One,
}

/// Who reads the socket; the wait of each can be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A thread of the application: see [`crate::leadership`].
    Leader,
    /// The thread "cmq-io".
    Background,
}

/// Why datagrams did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The path does not carry so large ones (EMSGSIZE).
    TooLong,
    /// No way there, now; or nobody is.
    Unreachable,
    /// The kernel had no room, for longer than a send may take.
    NoRoom,
    /// Something else.
    Other,
}

/// Counted where it happens, without a lock.
#[derive(Debug, Default)]
pub(crate) struct NetCounters {
    pub(crate) kernel_drops: AtomicU64,
    pub(crate) sent_datagrams: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) send_calls: AtomicU64,
    pub(crate) received_buffers: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) receive_calls: AtomicU64,
    pub(crate) receive_errors: AtomicU64,
    pub(crate) train_fallbacks: AtomicU64,
}

/// A socket. Sending and receiving never wait for the network; `wait` does.
pub(crate) trait Net: fmt::Debug + Send + Sync {
    /// Sends all in their order; reports what the kernel did not take.
    fn send(&self, transmits: &[Transmit], failed: &mut dyn FnMut(&Transmit, SendError));

    /// Takes what is there; returns whether there may be more.
    fn recv(&self, amount: Amount, pool: &mut Pool, received: &mut Vec<Received>) -> bool;

    /// For the leader: waits until there is something, or `interrupt`, or so long, and
    /// takes it as [`Amount::One`].
    fn recv_within(&self, within: Option<Duration>, pool: &mut Pool, received: &mut Vec<Received>) {
        self.wait(Reader::Leader, within);
        self.recv(Amount::One, pool, received);
    }

    /// Until there is something to receive, or `interrupt`, or so long.
    fn wait(&self, reader: Reader, within: Option<Duration>);

    /// Ends the reader's wait, or the next one if it is not waiting.
    fn interrupt(&self, reader: Reader);

    /// Returns how many bytes a datagram to `address` may have, if that can be known.
    fn path_bytes(&self, address: IpAddr) -> Option<usize>;

    /// Returns what [`path_bytes`](Self::path_bytes) does, queried anew: a datagram was too long.
    fn query_path_bytes(&self, address: IpAddr) -> Option<usize>;

    /// Returns the socket, for its options.
    fn socket(&self) -> &socket2::Socket;

    /// Returns what was counted.
    fn counters(&self) -> &NetCounters;
}
