//! What the application may know of one sender.

use core::net::SocketAddr;

use crate::Time;
use crate::inbox::flow::Flow;
use crate::inbox::peer_counts::PeerCounts;
use crate::key::Mailbox;
use crate::mode::Mode;

/// One sender's flow to a mailbox here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// When it was heard of last.
    pub last_heard: Time,
    /// What was counted of it.
    pub counts: PeerCounts,
}

/// Some of the peers that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerPage {
    /// At most [`PEERS_PAGE`](crate::limits::PEERS_PAGE) of them, in no order.
    pub peers: Vec<Peer>,
    /// Where the next page begins; none if this is the last.
    pub next: Option<u32>,
}

impl Peer {
    pub(super) const fn of(flow: &Flow) -> Self {
        Self {
            address: flow.key.from,
            mailbox: flow.mailbox,
            session: flow.key.session,
            mode: flow.application_mode(),
            proven: flow.proven,
            last_heard: flow.last_arrival,
            counts: flow.counts,
        }
    }
}
