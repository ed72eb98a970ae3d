//! What a pop returns.

use std::net::SocketAddr;

use bytes::Bytes;
use quelea_cmq_proto::endpoint::DeliveryToken;
use quelea_cmq_proto::{Mailbox, Mode};

/// A message, and who sent it.
#[derive(Clone, Debug)]
pub struct Message {
    /// The sending socket: push to it to reply.
    pub from: SocketAddr,
    /// The sender's session: another after its restart.
    pub session: u64,
    /// The mailbox that it was pushed to.
    pub mailbox: Mailbox,
    /// What its sender does about losses.
    pub mode: Mode,
    /// The message: a slice of what the kernel gave, not a copy.
    pub bytes: Bytes,
    pub(crate) receipt: Receipt,
}

impl Message {
    /// Returns the receipt that [`crate::Queue::acknowledge`] takes.
    #[must_use]
    pub const fn receipt(&self) -> Receipt {
        self.receipt
    }
}

/// A message that is only lent: see [`crate::Queue::pop_batch`].
#[derive(Clone, Copy, Debug)]
pub struct MessageRef<'a> {
    /// The sending socket.
    pub from: SocketAddr,
    /// The sender's session: another after its restart.
    pub session: u64,
    /// The mailbox that it was pushed to.
    pub mailbox: Mailbox,
    /// What its sender does about losses.
    pub mode: Mode,
    /// The message.
    pub bytes: &'a [u8],
    pub(crate) receipt: Receipt,
}

impl MessageRef<'_> {
    /// Returns the receipt that [`crate::Queue::acknowledge`] takes.
    #[must_use]
    pub const fn receipt(&self) -> Receipt {
        self.receipt
    }
}

/// Acknowledges a message and all before it from the same sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) token: DeliveryToken,
    /// Acknowledgements are for whole datagrams: only the last message of one sends any.
    pub(crate) is_last: bool,
}
