//! What the driver needs of the operating system: two implementations, so that the rest is the same
//! everywhere. `linux` gives whole trains to the kernel; `portable` has only what std has.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use quelea_cmq_proto::Transmit;
use quelea_cmq_proto::endpoint::Buffer;

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "linux")]
mod path;
pub(crate) mod pool;
pub(crate) mod portable;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub(crate) use pool::Pool;

/// Asked of the kernel for the socket's receive buffer; it is what all senders' windows share. Four
/// megabytes are 60 trains, and still fit into a last-level cache.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Asked of the kernel for the send buffer: enough for trains that wait in a device's queue.
pub(crate) const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Buffers of the kernel that one round of receiving takes before they are given to the state machine:
/// its lock is taken once for all of them.
pub(crate) const RECEIVE_BATCH: usize = 8;

/// How often and how long a send waits for room in the kernel before the datagrams count as lost.
pub(crate) const SEND_RETRIES: u32 = 10;
/// One such wait.
pub(crate) const SEND_RETRY: Duration = Duration::from_millis(1);

/// What one look at the socket gave: a datagram, or a train of them.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: Buffer,
    pub(crate) segment_bytes: usize,
}

/// How much to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// What is there, up to [`RECEIVE_BATCH`].
    All,
    /// No more if the first one is a small datagram: likely it is an answer that somebody waits for,
    /// and another look would only delay it.
    One,
}

/// Who waits for the socket; each can be called away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watcher {
    /// A thread of the application.
    Caller,
    /// The thread "cmq-io".
    Background,
}

/// Why datagrams did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
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
    /// Gives all to the kernel, in their order; tells what it did not take.
    fn send(&self, transmits: &[Transmit], refused: &mut dyn FnMut(&Transmit, Refused));

    /// Takes what is there; says whether there may be more.
    fn receive(&self, amount: Amount, pool: &mut Pool, received: &mut Vec<Received>) -> bool;

    /// For the caller that watches: waits until there is something, or `interrupt`, or so long, and
    /// takes it as [`Amount::One`].
    fn receive_next(
        &self,
        within: Option<Duration>,
        pool: &mut Pool,
        received: &mut Vec<Received>,
    ) {
        self.wait(Watcher::Caller, within);
        self.receive(Amount::One, pool, received);
    }

    /// Until there is something to receive, or `interrupt`, or so long.
    fn wait(&self, watcher: Watcher, within: Option<Duration>);

    /// Ends the watcher's wait, or the next one if it is not waiting.
    fn interrupt(&self, watcher: Watcher);

    /// Bytes that a datagram to `address` may have, if that can be known.
    fn path_bytes(&self, address: IpAddr) -> Option<usize>;

    /// The same, asked anew: a datagram was too long.
    fn ask_path_bytes(&self, address: IpAddr) -> Option<usize>;

    /// The socket, for its options.
    fn socket(&self) -> &socket2::Socket;

    /// What was counted.
    fn counters(&self) -> &NetCounters;
}

/// An address as the socket takes it: a socket of IPv6 reaches IPv4 by mapped addresses.
pub(crate) fn for_socket(is_ipv6: bool, address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if is_ipv6 => {
            SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port())
        }
        other => other,
    }
}

/// The address behind a mapped one, so that a peer has one name.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}
