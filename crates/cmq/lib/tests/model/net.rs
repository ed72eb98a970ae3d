//! A network in memory, whose sockets check how they are used: one thread sends at a time, one leader
//! waits at a time.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::BytesMut;
use quelea_cmq_proto::Transmit;
use shuttle::sync::{Condvar, Mutex};

use crate::leadership::TICK;
use crate::sync::thread;

#[path = "../../src/net/datagram_io.rs"]
mod datagram_io;
#[path = "../../src/net/pool.rs"]
mod pool;

pub(crate) use datagram_io::{Amount, Net, NetCounters, Reader, Received, SendError};
pub(crate) use pool::Pool;

#[derive(Clone, Copy, Debug, Default)]
pub enum Backend {
    #[default]
    Native,
}

thread_local! {
    /// All of shuttle's threads run on one of the system's.
    static SOCKETS: RefCell<HashMap<SocketAddr, Weak<Inbound>>> = RefCell::default();
}

pub(crate) fn open(socket: socket2::Socket, _backend: Backend) -> io::Result<Box<dyn Net>> {
    let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
    let inbound = Arc::default();
    SOCKETS.with_borrow_mut(|sockets| sockets.insert(local, Arc::downgrade(&inbound)));
    let (is_sending, counters) = (Mutex::new(false), NetCounters::default());
    Ok(Box::new(Socket { socket, local, inbound, is_sending, counters }))
}

#[derive(Debug)]
struct Socket {
    /// For its address; nothing is sent.
    socket: socket2::Socket,
    local: SocketAddr,
    inbound: Arc<Inbound>,
    is_sending: Mutex<bool>,
    counters: NetCounters,
}

/// What came to a socket, and who waits for it.
#[derive(Debug, Default)]
struct Inbound {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    arrived: VecDeque<(SocketAddr, BytesMut, usize)>,
    interrupted: [bool; 2],
    leader_waits: bool,
}

const fn index(reader: Reader) -> usize {
    match reader {
        Reader::Leader => 0,
        Reader::Background => 1,
    }
}

impl Net for Socket {
    fn send(&self, transmits: &[Transmit], _failed: &mut dyn FnMut(&Transmit, SendError)) {
        for transmit in transmits {
            let before = std::mem::replace(&mut *self.is_sending.lock().unwrap(), true);
            assert!(!before, "two threads send at once");
            let to = SOCKETS.with_borrow(|sockets| sockets.get(&transmit.to).cloned());
            if let Some(to) = to.and_then(|to| to.upgrade()) {
                let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len());
                let datagram = (self.local, BytesMut::from(&transmit.bytes[..]), segment_bytes);
                to.inside.lock().unwrap().arrived.push_back(datagram);
                to.changed.notify_all();
            }
            *self.is_sending.lock().unwrap() = false;
        }
    }

    fn recv(&self, amount: Amount, _pool: &mut Pool, received: &mut Vec<Received>) -> bool {
        let mut inside = self.inbound.inside.lock().unwrap();
        while let Some((from, bytes, segment_bytes)) = inside.arrived.pop_front() {
            received.push(Received { from, bytes: bytes.into(), segment_bytes });
            if amount == Amount::One {
                return false;
            }
        }
        false
    }

    fn wait(&self, reader: Reader, within: Option<Duration>) {
        let mut inside = self.inbound.inside.lock().unwrap();
        if reader == Reader::Leader {
            assert!(!inside.leader_waits, "two leaders wait at once");
            inside.leader_waits = true;
        }
        // As in [`thread::park_timeout`].
        let short = within.filter(|within| *within <= TICK);
        if let Some(within) = short {
            drop(inside);
            thread::park_timeout(within);
            inside = self.inbound.inside.lock().unwrap();
        }
        while short.is_none() && inside.arrived.is_empty() && !inside.interrupted[index(reader)] {
            inside = self.inbound.changed.wait(inside).unwrap();
        }
        inside.interrupted[index(reader)] = false;
        if reader == Reader::Leader {
            inside.leader_waits = false;
        }
    }

    fn interrupt(&self, reader: Reader) {
        self.inbound.inside.lock().unwrap().interrupted[index(reader)] = true;
        self.inbound.changed.notify_all();
    }

    fn path_bytes(&self, _address: IpAddr) -> Option<usize> {
        None
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
