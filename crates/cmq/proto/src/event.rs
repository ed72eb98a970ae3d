//! What happened besides messages.

use core::net::SocketAddr;

use crate::key::{Key, Mailbox};

/// What an application may want to know besides its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Messages that were sent to a mailbox here are lost for good (or were given up by their sender).
    Lost {
        /// Who sent them.
        from: SocketAddr,
        /// To which mailbox.
        mailbox: Mailbox,
        /// How many messages.
        messages: u64,
    },
    /// A peer was started anew: what it sent before and is missing will not come.
    Restarted {
        /// Who.
        from: SocketAddr,
        /// The mailbox that it sends to.
        mailbox: Mailbox,
    },
    /// A sender has closed its destination (a PROBE with the flag END, bit 7: nothing follows its
    /// `next`), and all that it sent before was delivered or is lost. Comes behind those deliveries.
    /// `quelea pop --until-end` waits for it.
    Ended {
        /// Who.
        from: SocketAddr,
        /// The session that ended.
        session: u64,
        /// The mailbox that it sent to.
        mailbox: Mailbox,
    },
    /// Messages pushed to a destination here were given up: its deadline passed, or the peer is gone.
    Abandoned {
        /// The destination.
        to: Key,
        /// How many messages.
        messages: u64,
    },
}
