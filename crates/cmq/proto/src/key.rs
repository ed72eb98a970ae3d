//! Whom a message is for.

use core::fmt;
use core::net::SocketAddr;

/// The integer of the paper's key: who at an address gets the message. Zero is a mailbox as any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mailbox(pub u64);

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The paper's key tuple (section "cwPush"): an address and an integer. A multicast address reaches
/// all who joined the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The receiving socket, or a multicast group.
    pub address: SocketAddr,
    /// Who there.
    pub mailbox: Mailbox,
}

impl Key {
    /// Returns the mailbox `mailbox` at `address`.
    #[must_use]
    pub const fn new(address: SocketAddr, mailbox: u64) -> Self {
        Self { address, mailbox: Mailbox(mailbox) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.mailbox)
    }
}
