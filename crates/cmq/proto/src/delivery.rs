//! What the application gets.

use core::net::SocketAddr;

use bytes::{Buf, Bytes};

use crate::key::Mailbox;
use crate::mailbox_ref::MailboxRef;
use crate::mode::Mode;
use crate::wire::data::Messages;
use crate::wire::varint;

/// Messages of one datagram (or of one reassembled message), as the application gets them.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The sending socket.
    pub from: SocketAddr,
    /// The sender's session: another after its restart.
    pub session: u64,
    /// The mailbox that they were pushed to.
    pub mailbox: Mailbox,
    /// What their sender does about losses: whether it waits for an acknowledgement.
    pub mode: Mode,
    /// The messages, framed; iterate with `messages()`.
    pub batch: Bytes,
    /// How many.
    pub count: u32,
    /// Returns credit, and acknowledges where the application does that.
    pub token: DeliveryToken,
}

/// What [`Endpoint::popped`] and [`Endpoint::acknowledge`] need of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryToken {
    pub(crate) flow: u32,
    pub(crate) flow_generation: u32,
    pub(crate) mailbox: MailboxRef,
    pub(crate) sequence: u64,
    pub(crate) bytes: u32,
}

impl Delivery {
    /// Returns the messages, in the order in which they were pushed.
    #[must_use]
    pub fn messages(&self) -> Messages<'_> {
        Messages::new(&self.batch, self.count)
    }

    /// Takes the next message off the batch, as a slice of the buffer that it came in.
    #[inline]
    pub fn next_message(&mut self) -> Option<Bytes> {
        if self.count == 0 {
            return None;
        }
        let mut rest = &self.batch[..];
        let bytes = varint::read_u32(&mut rest).ok()? as usize;
        let head = self.batch.len() - rest.len();
        self.batch.advance(head);
        self.count -= 1;
        if self.count == 0 && bytes <= self.batch.len() {
            // The last one takes the batch along, which saves a reference.
            let mut last = core::mem::take(&mut self.batch);
            last.truncate(bytes);
            return Some(last);
        }
        (bytes <= self.batch.len()).then(|| self.batch.split_to(bytes))
    }
}
