//! What is known of those who send here.

use std::net::SocketAddr;
use std::time::Duration;

use quelea_cmq_proto::{self as proto, Mailbox, Mode, PeerCounts, Time};

use crate::driver::Driver;

/// One sender to a mailbox here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The sending socket.
    pub address: SocketAddr,
    /// The mailbox that it sends to.
    pub mailbox: Mailbox,
    /// Its session: another after its restart.
    pub session: u64,
    /// What it does about losses.
    pub mode: Mode,
    /// Whether it has shown that its address is its own, or has the key. Others may be forged.
    pub proven: bool,
    /// How long nothing was heard of it.
    pub silent_for: Duration,
    /// What was counted of it, in its earlier sessions too.
    pub counts: PeerCounts,
}

impl Peer {
    pub(crate) const fn of(peer: &proto::Peer, now: Time) -> Self {
        let proto::Peer { address, mailbox, session, mode, proven, last_heard, counts } = *peer;
        let silent_for = Duration::from_micros(now.since_us(last_heard));
        Self { address, mailbox, session, mode, proven, silent_for, counts }
    }
}

/// Returns all peers, the one heard of last first. The lock is held for a page at a time.
pub(crate) fn all(driver: &Driver) -> Vec<Peer> {
    let mut found = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let page = driver.lock().proto.peers(from);
        found.extend(page.peers);
        next = page.next;
    }
    found.sort_by_key(|peer| core::cmp::Reverse(peer.last_heard));
    let now = driver.clock.now();
    found.iter().map(|peer| Peer::of(peer, now)).collect()
}
