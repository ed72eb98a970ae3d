//! One socket's state: what it has to send and what it took. The parts stand in files of their own:
//! `outbox` (batches, trains, deadlines), `inbox` (flows, gaps, order, credit), `wire`, `seal`. Here
//! they are put together.

mod answering;
mod peers;
mod receiving;
mod sending;
mod unsealing;

use core::net::IpAddr;
use std::collections::VecDeque;

use crate::Time;
pub use crate::buffer::Buffer;
use crate::classic::Element;
use crate::config::{Config, DestinationOptions};
pub use crate::delivery::{Delivery, DeliveryToken};
pub use crate::destination_id::DestinationId;
pub use crate::error::{DestinationError, MailboxError, PushError};
pub use crate::event::Event;
use crate::inbox::{Groups, Inbox, Receptions};
use crate::key::Key;
use crate::outbox::{DestinationStats, Outbox};
use crate::seal::Salts;
use crate::stats::{Dropped, Stats};
pub use crate::transmit::Transmit;
use unsealing::Opened;

/// The state machine of one socket.
#[derive(Debug)]
pub struct Endpoint {
    outbox: Outbox,
    inbox: Inbox,
    /// The seals of what is sent here.
    receptions: Receptions,
    /// Those of groups.
    groups: Groups,
    /// Whether a group was joined.
    in_group: bool,
    /// CHALLENGEs that wait to be sent.
    challenges: VecDeque<Transmit>,
    /// What was opened of a buffer, while it is looked at.
    opened: Vec<Opened>,
    /// What the lists are of, where the original's datagrams are spoken.
    element: Option<Element>,
    salts: Salts,
    dropped: Dropped,
}

impl Endpoint {
    /// Creates an endpoint. `seed` must be random: session numbers, nonces and cookies come from
    /// it.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        let config = config.bounded();
        let mut salts = Salts::new(&seed);
        let session = salts.session();
        Self {
            outbox: Outbox::new(&config, session, &salts.seed()),
            // What receivers report is no secret; what senders call themselves is one.
            inbox: Inbox::new(&config, salts.session(), salts.seed()),
            receptions: Receptions::new(&config, salts.session()),
            groups: Groups::new(salts.session()),
            in_group: false,
            challenges: VecDeque::new(),
            opened: Vec::new(),
            element: config.wire.element(),
            salts,
            dropped: Dropped::default(),
        }
    }

    /// Returns the destination of `key`, which is made if there is none.
    ///
    /// # Errors
    /// It exists with other options, or cannot be made.
    pub fn destination(
        &mut self,
        key: Key,
        options: DestinationOptions,
    ) -> Result<DestinationId, DestinationError> {
        self.outbox.destination(key, options)
    }

    /// Returns the destination of `key` if there is one: the map's look-up of the paper's `cwPush`.
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

    /// Returns when `on_timer` has something to do; none if nothing is due ever.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        [self.outbox.next_deadline(), self.inbox.next_deadline()].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Time) {
        self.outbox.on_timer(now);
        self.inbox.on_timer(now);
        self.inbox.forget_keys(&mut self.receptions);
    }

    /// The path to `address` carries datagrams of `path_bytes` (after EMSGSIZE, or a probe).
    pub fn set_path_bytes(&mut self, address: IpAddr, path_bytes: usize) {
        self.outbox.set_path_bytes(address, path_bytes);
    }

    /// Returns how many bytes wait here to be sent or acknowledged: at most
    /// `Config::outbox_bytes_max`.
    #[must_use]
    pub const fn outbox_bytes(&self) -> usize {
        self.outbox.held_bytes()
    }

    /// Returns how many bytes came and wait for something missing before them: at most
    /// `Config::reassembly_bytes_max`, or twice the longest message if that is more.
    #[must_use]
    pub const fn reassembly_bytes(&self) -> usize {
        self.inbox.waiting_bytes()
    }

    /// Returns whether an acknowledgement waits until its sender's address is proven.
    #[must_use]
    pub fn awaits_proof(&self) -> bool {
        self.inbox.awaits_proof()
    }

    /// Returns what is known of one destination; none if it is closed and forgotten.
    #[must_use]
    pub fn destination_stats(&self, id: DestinationId) -> Option<DestinationStats> {
        self.outbox.destination_stats(id)
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            sent: self.outbox.counters(),
            received: *self.inbox.counters(),
            dropped: self.dropped,
        }
    }
}
