//! A socket and everything that is pushed and popped through it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quelea_cmq_proto::endpoint::{DestinationError, MailboxError};
use quelea_cmq_proto::{Config, DestinationOptions, Event, Key, MailboxOptions, PushError};

use crate::dest::Dest;
use crate::queue::Queue;
use crate::stats::Stats;

/// One UDP socket with its destinations and mailboxes. Clones are handles to the same one; when the
/// last one, the last [`Dest`] and the last [`Queue`] are gone, it flushes and closes.
#[derive(Clone, Debug)]
#[allow(dead_code)]
pub struct Endpoint(Arc<()>);

/// By which interface a multicast group is joined or reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// The kernel chooses.
    #[default]
    Any,
    /// The one with this address (IPv4).
    Address(std::net::Ipv4Addr),
    /// The one with this index (IPv6, and IPv4 on Linux).
    Index(u32),
}

/// Messages were still pending (or unacknowledged) when the time to close had passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("closed with messages that were not sent or not acknowledged in time")]
pub struct Unsettled;

#[allow(unused_variables, clippy::todo, clippy::unused_self, clippy::needless_pass_by_value)]
impl Endpoint {
    /// Binds a socket to `address`.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Self> {
        todo!()
    }

    /// Takes a bound socket.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn from_socket(socket: UdpSocket, config: Config) -> io::Result<Self> {
        todo!()
    }

    /// The socket's address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }

    /// Opens the mailbox `mailbox`: what peers push to (this address, `mailbox`) comes out there.
    ///
    /// # Errors
    /// [`MailboxError`]: open already, or too many.
    pub fn queue(&self, mailbox: u64, options: MailboxOptions) -> Result<Queue, MailboxError> {
        todo!()
    }

    /// A handle to the destination `key`, made anew or found. `options.path_bytes` is found out and
    /// need not be set.
    ///
    /// # Errors
    /// [`DestinationError`]: too many, other options than before, or options that make no sense.
    pub fn dest(&self, key: Key, options: DestinationOptions) -> Result<Dest, DestinationError> {
        todo!()
    }

    /// Pushes to the destination of `key`, made with the default options if there is none: the paper's
    /// `cwPush`.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::push`].
    pub fn push(&self, key: Key, message: &[u8]) -> Result<(), PushError> {
        todo!()
    }

    /// Sends what is pending to all destinations now.
    pub fn flush(&self) {
        todo!()
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        todo!()
    }

    /// The next event if there is one.
    #[must_use]
    pub fn try_event(&self) -> Option<Event> {
        todo!()
    }

    /// Waits for the next event at most so long.
    #[must_use]
    pub fn next_event(&self, within: Duration) -> Option<Event> {
        todo!()
    }

    /// Receives what is sent to a multicast group.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn join_multicast(&self, group: IpAddr, interface: Interface) -> io::Result<()> {
        todo!()
    }

    /// Receives it no more.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn leave_multicast(&self, group: IpAddr, interface: Interface) -> io::Result<()> {
        todo!()
    }

    /// By which interface multicasts leave.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_multicast_interface(&self, interface: Interface) -> io::Result<()> {
        todo!()
    }

    /// Whether sockets of this host that joined get what is sent here (as they do by default).
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        todo!()
    }

    /// How many routers a multicast may pass, plus one; 1 by default: it stays in its network.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn set_multicast_ttl(&self, ttl: u32) -> io::Result<()> {
        todo!()
    }

    /// Flushes, waits at most so long until everything is sent (and acknowledged, where it is
    /// reliable), and closes: waiting pops end, later pushes fail.
    ///
    /// # Errors
    /// [`Unsettled`] if it took longer; it is closed then too.
    pub fn close(self, within: Duration) -> Result<(), Unsettled> {
        todo!()
    }
}
