//! Any system: what std has. One datagram a call, no trains, and the kernel's drops are not known.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quelea_cmq_proto::Transmit;

use super::{
    Amount, Net, NetCounters, Pool, RECEIVE_BATCH, RECEIVE_BUFFER_BYTES, Reader, Received,
    SEND_BUFFER_BYTES, SEND_RETRIES, SEND_RETRY, SendError, canonical, for_socket,
};

/// Loopback's datagrams are not cut on any system that std knows; it is what Windows and macOS carry
/// at the least.
const LOOPBACK_PATH_BYTES: usize = 9_188;

/// "Message too long".
const EMSGSIZE: i32 = if cfg!(windows) {
    10_040
} else if cfg!(target_os = "linux") {
    90
} else {
    40
};

/// The longest wait. The limit belongs to the socket, not to the call, so another reader may have set
/// it in between; no timer is later than this for that.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A UDP socket by std alone.
#[derive(Debug)]
pub(crate) struct Portable {
    socket: socket2::Socket,
    /// The same socket.
    udp: UdpSocket,
    is_ipv6: bool,
    /// Where a datagram to itself must go: it is how a waiting thread is interrupted.
    own: SocketAddr,
    /// Whether receiving waits is a property of the socket; held while it is other than usual.
    blocking_mode: Mutex<()>,
    counters: NetCounters,
}

impl Portable {
    pub(crate) fn new(socket: socket2::Socket) -> io::Result<Self> {
        let udp: UdpSocket = socket.try_clone()?.into();
        let local = udp.local_addr()?;
        udp.set_nonblocking(false)?;
        // The system may give less.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
        let ip = match local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let own = SocketAddr::new(ip, local.port());
        let is_ipv6 = local.is_ipv6();
        Ok(Self {
            socket,
            udp,
            is_ipv6,
            own,
            blocking_mode: Mutex::new(()),
            counters: NetCounters::default(),
        })
    }

    fn send_one(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let mut tries = 0;
        loop {
            self.counters.send_calls.fetch_add(1, Relaxed);
            let Err(error) = self.udp.send_to(datagram, for_socket(self.is_ipv6, to)) else {
                self.counters.sent_datagrams.fetch_add(1, Relaxed);
                self.counters.sent_bytes.fetch_add(datagram.len() as u64, Relaxed);
                return Ok(());
            };
            tries += 1;
            match error.kind() {
                _ if tries > SEND_RETRIES => return Err(error),
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset if tries == 1 => {
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                    std::thread::park_timeout(SEND_RETRY);
                }
                _ => return Err(error),
            }
        }
    }
}

impl Net for Portable {
    fn send(&self, transmits: &[Transmit], failed: &mut dyn FnMut(&Transmit, SendError)) {
        for transmit in transmits {
            let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len()).max(1);
            for datagram in transmit.bytes.chunks(segment_bytes) {
                if let Err(error) = self.send_one(transmit.to, datagram) {
                    failed(transmit, why(&error));
                }
            }
        }
    }

    fn recv(&self, amount: Amount, pool: &mut Pool, received: &mut Vec<Received>) -> bool {
        let _held = self.blocking_mode.lock().unwrap_or_else(PoisonError::into_inner);
        if self.udp.set_nonblocking(true).is_err() {
            return false;
        }
        let mut more = true;
        for _ in 0..RECEIVE_BATCH {
            let mut buffer = pool.take();
            self.counters.receive_calls.fetch_add(1, Relaxed);
            match self.udp.recv_from(&mut buffer) {
                // Nothing but an interrupt has no bytes.
                Ok((0, _)) => pool.put_back(buffer),
                Ok((length, from)) => {
                    self.counters.received_buffers.fetch_add(1, Relaxed);
                    self.counters.received_bytes.fetch_add(length as u64, Relaxed);
                    let bytes = pool.cut(buffer, length);
                    received.push(Received { from: canonical(from), bytes, segment_bytes: length });
                    if amount == Amount::One {
                        break;
                    }
                }
                Err(error) => {
                    pool.put_back(buffer);
                    if error.kind() == io::ErrorKind::WouldBlock {
                        more = false;
                        break;
                    }
                    self.counters.receive_errors.fetch_add(1, Relaxed);
                }
            }
        }
        // It was set a moment ago; if it can't be unset, waiting ends at once, which is slow, not wrong.
        let _ = self.udp.set_nonblocking(false);
        more
    }

    fn wait(&self, _reader: Reader, within: Option<Duration>) {
        // A limit of zero means none to std.
        let within = within.unwrap_or(WAIT_MAX).clamp(Duration::from_micros(1), WAIT_MAX);
        {
            let _held = self.blocking_mode.lock().unwrap_or_else(PoisonError::into_inner);
            if self.udp.set_read_timeout(Some(within)).is_err() {
                return;
            }
        }
        // Woken by a datagram, an error or the time: the caller looks what it was.
        let _ = self.udp.peek_from(&mut [0]);
    }

    fn interrupt(&self, _reader: Reader) {
        // If the system has no room for it, its queue is not empty and the reader wakes anyway.
        let _ = self.udp.send_to(&[], self.own);
    }

    fn path_bytes(&self, address: IpAddr) -> Option<usize> {
        address.is_loopback().then_some(LOOPBACK_PATH_BYTES)
    }

    fn query_path_bytes(&self, _address: IpAddr) -> Option<usize> {
        None
    }

    fn socket(&self) -> &socket2::Socket {
        &self.socket
    }

    fn counters(&self) -> &NetCounters {
        &self.counters
    }
}

fn why(error: &io::Error) -> SendError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => SendError::NoRoom,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::PermissionDenied => SendError::Unreachable,
        // std has no name for it.
        _ if error.raw_os_error() == Some(EMSGSIZE) => SendError::TooLong,
        _ => SendError::Other,
    }
}
