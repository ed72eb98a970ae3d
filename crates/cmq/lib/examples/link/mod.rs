//! A link that loses datagrams: the examples send through it what they would send over a network, so
//! that there is something to mend.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Forwards datagrams to one address, and the answers back to the last one that sent.
pub(crate) struct Link {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Towards those who send through the link.
    front: UdpSocket,
    /// Towards the other end.
    back: UdpSocket,
    target: SocketAddr,
    client: Mutex<Option<SocketAddr>>,
    ends: AtomicBool,
    lost: AtomicU64,
}

impl Link {
    /// Starts a link to `target` that loses the datagrams, counted from 0 in each direction, for
    /// which `loses` says so.
    pub(crate) fn to(
        target: SocketAddr,
        loses: impl Fn(u64) -> bool + Copy + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            front: UdpSocket::bind("127.0.0.1:0")?,
            back: UdpSocket::bind("127.0.0.1:0")?,
            target,
            client: Mutex::new(None),
            ends: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        });
        let address = shared.front.local_addr()?;
        let there = Arc::clone(&shared);
        let back = Arc::clone(&shared);
        let threads =
            vec![thread::spawn(move || there.go(loses)), thread::spawn(move || back.come(loses))];
        Ok(Self { shared, address, threads })
    }

    /// Returns the address to send to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of datagrams lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(SeqCst)
    }
}

impl Shared {
    fn go(&self, loses: impl Fn(u64) -> bool) {
        self.forward(&self.front, loses, |datagram, from| {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
            // What can't be sent is one more that is lost.
            let _ = self.back.send_to(datagram, self.target);
        });
    }

    fn come(&self, loses: impl Fn(u64) -> bool) {
        self.forward(&self.back, loses, |datagram, _| {
            let client = *self.client.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(client) = client {
                // As above.
                let _ = self.front.send_to(datagram, client);
            }
        });
    }

    fn forward(
        &self,
        socket: &UdpSocket,
        loses: impl Fn(u64) -> bool,
        send: impl Fn(&[u8], SocketAddr),
    ) {
        let mut buffer = vec![0; 1 << 16];
        let mut number = 0;
        while !self.ends.load(SeqCst) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            if loses(number) {
                self.lost.fetch_add(1, SeqCst);
            } else {
                send(&buffer[..length], from);
            }
            number += 1;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.ends.store(true, SeqCst);
        for socket in [&self.shared.front, &self.shared.back] {
            // A datagram, so that it looks at `ends`.
            let _ = socket.local_addr().and_then(|address| socket.send_to(&[], address));
        }
        for thread in self.threads.drain(..) {
            // If it panicked, it has ended too.
            let _ = thread.join();
        }
    }
}
