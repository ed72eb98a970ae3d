//! One socket's state: what it has to send and what it took. The parts stand in files of their own:
//! `outbox` (batches, trains, deadlines), `inbox` (flows, gaps, order, credit), `wire`, `seal`. Here
//! they are put together.

mod delivery;
mod event;
mod sending;
mod transmit;

use core::net::{IpAddr, SocketAddr};

use bytes::BytesMut;

use crate::config::{Config, DestinationOptions, MailboxOptions};
pub use crate::error::{DestinationError, MailboxError, PushError};
use crate::key::{Key, Mailbox};
use crate::outbox::Outbox;
use crate::time::Time;
pub use delivery::{Delivery, DeliveryToken};
pub use event::Event;
pub use transmit::Transmit;

/// A destination's place in its endpoint. Stale once the destination is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DestinationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// The state machine of one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    /// This endpoint's number, another after each start.
    session: u64,
    outbox: Outbox,
}

impl Endpoint {
    /// `seed` must be random: session numbers, nonces and cookies come from it.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32], now: Time) -> Self {
        let _ = now;
        let config = config.bounded();
        let (session, rest) = seed.split_at(8);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&rest[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let mut number = [0; 8];
        number.copy_from_slice(session);
        Self {
            outbox: Outbox::new(&config, word(0) as usize, word(8) as u32),
            session: u64::from_le_bytes(number),
            config,
        }
    }

    /// The destination of `key`, which is made if there is none.
    ///
    /// # Errors
    /// It exists with other options, or cannot be made.
    pub fn destination(
        &mut self,
        key: Key,
        options: DestinationOptions,
        now: Time,
    ) -> Result<DestinationId, DestinationError> {
        let _ = now;
        self.outbox.destination(key, options)
    }

    /// The destination of `key` if there is one: the map's look-up of the paper's `cwPush`.
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<DestinationId> {
        self.outbox.find(key)
    }

    /// Appends a message to the destination's batch. `now` is asked for only when a batch begins: it
    /// is a clock read.
    ///
    /// # Errors
    /// The message can never be sent, or not now.
    #[inline]
    pub fn push(
        &mut self,
        id: DestinationId,
        message: &[u8],
        now: impl FnOnce() -> Time,
    ) -> Result<(), PushError> {
        self.outbox.push(id, message, now)
    }

    /// When `on_timer` has something to do; none if nothing is due ever.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.outbox.next_deadline()
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Time) {
        self.outbox.on_timer(now);
    }
}

#[allow(unused_variables, clippy::unused_self, clippy::todo)]
#[allow(missing_docs, clippy::missing_errors_doc, clippy::missing_const_for_fn)]
impl Endpoint {
    /// The path to `address` carries datagrams of `path_bytes` (after EMSGSIZE, or a probe).
    pub fn set_path_bytes(&mut self, address: IpAddr, path_bytes: usize, now: Time) {
        self.outbox.set_path_bytes(address, path_bytes);
    }

    // Receiving.
    pub fn open_mailbox(
        &mut self,
        mailbox: Mailbox,
        options: MailboxOptions,
    ) -> Result<(), MailboxError> {
        todo!()
    }
    /// Opens one mailbox for all that are not opened by themselves; deliveries say which they were
    /// for. The broker's front takes any mailbox that way.
    pub fn open_other_mailboxes(&mut self, options: MailboxOptions) -> Result<(), MailboxError> {
        todo!()
    }
    pub fn close_mailbox(&mut self, mailbox: Mailbox) {
        todo!()
    }
    /// Takes what the kernel gave in one buffer: a datagram, or a GRO train of `segment_bytes` each.
    pub fn on_datagrams(
        &mut self,
        from: SocketAddr,
        bytes: BytesMut,
        segment_bytes: usize,
        now: Time,
    ) {
        todo!()
    }
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        todo!()
    }
    /// The application has taken a delivery out of its mailbox: its room is credit again.
    pub fn popped(&mut self, token: DeliveryToken, now: Time) {
        todo!()
    }
    /// For mailboxes whose application acknowledges: this delivery and, in its flow, all before it.
    pub fn acknowledge(&mut self, token: DeliveryToken, now: Time) {
        todo!()
    }
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }
}
