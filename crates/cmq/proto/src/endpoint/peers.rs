//! What is known of those who send here.

use core::net::SocketAddr;

use super::Endpoint;
use crate::inbox::{Peer, PeerCounts, PeerPage};
use crate::key::Mailbox;

impl Endpoint {
    /// Returns a page of the peers that send here: the first with zero, then with
    /// [`PeerPage::next`]. A page looks at [`PEERS_PAGE`](crate::limits::PEERS_PAGE) places and no
    /// more, so that other work can be done between two. Who is known all the while is in one page;
    /// who comes or goes meanwhile may be in none. The original library's datagrams
    /// (`Wire::Classic`) have no flows, and no peers.
    #[must_use]
    pub fn peers(&self, from: u32) -> PeerPage {
        self.inbox.peers(from)
    }

    /// Returns what is known of `address` as a sender to `mailbox`; none if it never sent, or is
    /// forgotten.
    #[must_use]
    pub fn peer(&self, address: SocketAddr, mailbox: Mailbox) -> Option<Peer> {
        self.inbox.peer(address, mailbox)
    }

    /// Returns the sum of what was counted of peers that are forgotten: they made room for others,
    /// were gone for long, or their mailbox was closed. With the counts of all [`Endpoint::peers`]
    /// it makes the counters of [`Endpoint::stats`].
    #[must_use]
    pub const fn forgotten_peers(&self) -> PeerCounts {
        self.inbox.forgotten_peers()
    }
}
