//! What an endpoint reports besides its messages.

use quelea_cmq::Event;

use crate::address::QueleaCmqKey;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum QueleaCmqEventKind {
    /// `messages` from the peer will not come.
    Lost = 0,
    /// The peer was started anew: what it sent before and is missing will not come.
    Restarted = 1,
    /// The peer closed its destination, and everything that it pushed there is here.
    Ended = 2,
    /// `messages` pushed to the peer were given up: their deadline passed, or it is gone.
    Abandoned = 3,
}

/// One event.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueleaCmqEvent {
    /// What happened.
    pub kind: QueleaCmqEventKind,
    /// The peer, and the mailbox: of this endpoint, for Abandoned that of the peer.
    pub peer: QueleaCmqKey,
    /// How many messages; zero for Restarted and Ended.
    pub messages: u64,
    /// The session that ended; zero for the others.
    pub session: u64,
}

pub(crate) fn to_c(event: Event) -> QueleaCmqEvent {
    let (kind, address, mailbox, messages, session) = match event {
        Event::Lost { from, mailbox, messages } => {
            (QueleaCmqEventKind::Lost, from, mailbox, messages, 0)
        }
        Event::Restarted { from, mailbox } => (QueleaCmqEventKind::Restarted, from, mailbox, 0, 0),
        Event::Ended { from, session, mailbox } => {
            (QueleaCmqEventKind::Ended, from, mailbox, 0, session)
        }
        Event::Abandoned { to, messages } => {
            (QueleaCmqEventKind::Abandoned, to.address, to.mailbox, messages, 0)
        }
    };
    let peer = QueleaCmqKey { address: address.into(), mailbox: mailbox.0 };
    QueleaCmqEvent { kind, peer, messages, session }
}
