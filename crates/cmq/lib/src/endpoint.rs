//! A socket and everything that is pushed and popped through it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use quelea_cmq_proto::endpoint::{DestinationError, MailboxError};
use quelea_cmq_proto::{self as proto, Config, Event, Mailbox};

use crate::background;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::multicast::{self, Interface};
use crate::net;
pub use crate::net::Backend;
use crate::peer::{self, Peer};
use crate::state::State;
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::thread::JoinHandle;
use crate::until::Until;

/// How long the last messages are seen to after the last handle was dropped without
/// [`Endpoint::close`].
const LINGER: Duration = Duration::from_secs(5);

/// One UDP socket with its destinations and mailboxes. Clones are handles to the same one. When the
/// last of them, of its [`Dest`](crate::Dest)s and of its [`Queue`](crate::Queue)s is dropped, what is pending is sent, and a
/// thread goes on for some seconds until reliable destinations have their acknowledgements; to wait
/// for those, [`close`](Endpoint::close) it.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    driver: Arc<Driver>,
    wire: proto::config::Wire,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why not everything that was pushed is known to have arrived when an endpoint was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsettled {
    /// Messages were still pending (or unacknowledged) when the time had passed.
    #[error("closed with messages that were not sent or not acknowledged in time")]
    TimedOut,
    /// Peers were given up, now or earlier, with what was pushed to them.
    #[error("{messages} messages were given up: their peers did not answer")]
    Abandoned {
        /// How many messages, over the endpoint's life.
        messages: u64,
    },
}

impl Endpoint {
    /// Binds a socket to `address`.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Self> {
        Self::from_socket(UdpSocket::bind(address)?, config)
    }

    /// Takes a bound socket.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn from_socket(socket: UdpSocket, config: Config) -> io::Result<Self> {
        Self::with_backend(socket, config, Backend::Native)
    }

    /// Takes a bound socket, and says how to use it.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn with_backend(
        socket: UdpSocket,
        mut config: Config,
        backend: Backend,
    ) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let net = net::open(socket.into(), backend)?;
        // What the kernel says is what it accounts for; half, because senders start with a window of
        // their own before they hear of ours.
        config.receive_window_bytes = net.socket().recv_buffer_size()? / 2;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let clock = Clock::start();
        let wire = config.wire;
        let state = State::new(proto::Endpoint::new(config, seed));
        let driver = Arc::new(Driver::new(net, clock, local, state));
        let thread = Mutex::new(Some(background::start(&driver)?));
        Ok(Self(Arc::new(Handle { driver, wire, thread })))
    }

    /// Returns the socket's address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.0.driver.local
    }

    /// Sends what is pending to all destinations now.
    pub fn flush(&self) {
        self.0.driver.change(|state, _| state.proto.flush_all());
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.0.driver)
    }

    /// Returns all peers that send here and are known, the one heard of last first: at most
    /// `Config::flows_max` (65,536) that are proven, and 1,024 others. Looks at some hundred bytes for
    /// each, and others may use the endpoint meanwhile: who comes or goes while this looks may be
    /// missing. Of those that made room for others, only [`stats`](Self::stats) still knows.
    #[must_use]
    pub fn peers(&self) -> Vec<Peer> {
        peer::all(&self.0.driver)
    }

    /// Returns what is known of `address` as a sender to `mailbox`: a look-up, where it is proven.
    #[must_use]
    pub fn peer(&self, address: SocketAddr, mailbox: u64) -> Option<Peer> {
        let driver = &self.0.driver;
        let now = driver.clock.now();
        let found = driver.lock().proto.peer(address, Mailbox(mailbox));
        found.map(|found| Peer::of(&found, now))
    }

    /// Returns the next event if there is one.
    #[must_use]
    pub fn try_event(&self) -> Option<Event> {
        self.0.driver.lock().events.pop_front()
    }

    /// Waits for the next event at most so long.
    #[must_use]
    pub fn next_event(&self, within: Duration) -> Option<Event> {
        let driver = &self.0.driver;
        let deadline = driver.clock.after(within);
        loop {
            if let Some(event) = self.try_event() {
                return Some(event);
            }
            if !driver.wait(&Until::Event, Some(deadline)) || driver.lock().closed {
                return self.try_event();
            }
        }
    }

    /// Receives what is sent to a multicast group. What is sealed for groups is taken only by an endpoint that has
    /// joined one here, not on the socket before it was taken over.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn join_multicast(&self, group: IpAddr, interface: Interface) -> io::Result<()> {
        let driver = &self.0.driver;
        // Before the kernel gives the first one.
        driver.lock().join_group();
        let joined = multicast::join(driver.net.socket(), group, interface);
        if joined.is_err() {
            driver.lock().leave_group();
        }
        joined
    }

    /// Receives it no more.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn leave_multicast(&self, group: IpAddr, interface: Interface) -> io::Result<()> {
        let driver = &self.0.driver;
        multicast::leave(driver.net.socket(), group, interface)?;
        driver.lock().leave_group();
        Ok(())
    }

    /// Sets the interface by which multicasts leave.
    ///
    /// # Errors
    /// As the operating system says; of IPv4 sockets also that only an address names an interface.
    pub fn set_multicast_interface(&self, interface: Interface) -> io::Result<()> {
        multicast::set_interface(self.0.driver.net.socket(), self.is_ipv6(), interface)
    }

    /// Sets whether sockets of this host that joined get what is sent here (as they do by default).
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        multicast::set_loop(self.0.driver.net.socket(), self.is_ipv6(), on)
    }

    /// Sets how many routers a multicast may pass, plus one; 1 by default: it stays in its network.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_multicast_ttl(&self, ttl: u32) -> io::Result<()> {
        multicast::set_ttl(self.0.driver.net.socket(), self.is_ipv6(), ttl)
    }

    fn is_ipv6(&self) -> bool {
        self.0.driver.local.is_ipv6()
    }

    /// Flushes, waits at most so long until everything is sent (and acknowledged, where it is
    /// reliable), and closes: waiting pops end, later pushes fail.
    ///
    /// # Errors
    /// [`Unsettled`] if it took longer, or if messages were given up because their peers were gone; it
    /// is closed then too.
    pub fn close(self, within: Duration) -> Result<(), Unsettled> {
        let driver = &self.0.driver;
        let deadline = driver.clock.after(within);
        let settled = driver.wait(&Until::AllSettled, Some(deadline));
        let mut popped = driver.lock().take_done();
        driver.return_credit(&mut popped);
        driver.flush_acknowledgements();
        let mut state = driver.lock();
        let messages = state.proto.stats().sent.abandoned_messages;
        state.close_all();
        driver.release_and_transmit(state);
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It does not panic; if it did, it has ended as well.
            let _ = thread.join();
        }
        match messages {
            _ if !settled => Err(Unsettled::TimedOut),
            0 => Ok(()),
            messages => Err(Unsettled::Abandoned { messages }),
        }
    }

    pub(crate) fn wire(&self) -> proto::config::Wire {
        self.0.wire
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.0.driver
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.driver.flush_acknowledgements();
        let now = self.driver.clock.now();
        let mut state = self.driver.lock();
        if !state.closed {
            state.proto.flush_all();
            state.closing = Some(now.after(LINGER));
            state.leadership.background.wake();
            self.driver.release_and_transmit(state);
        }
    }
}
