//! One socket's state: what it has to send and what it took. The parts stand in files of their own:
//! `outbox` (batches, windows, repetition), `inbox` (flows, gaps, order, credit), `wire`, `seal`.

use core::net::SocketAddr;

use bytes::{Bytes, BytesMut};

use crate::config::{Config, DestinationOptions, MailboxOptions};
use crate::key::{Key, Mailbox};
use crate::mode::Mode;
use crate::time::Time;

/// A destination's place in its endpoint. Stale once the destination is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DestinationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// What the driver has to give to the kernel in one call.
#[derive(Debug)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// One datagram, or a train of them.
    pub bytes: Bytes,
    /// Each datagram's bytes, if it is a train; the last may be shorter.
    pub segment_bytes: Option<usize>,
}

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
    /// Gives back credit, and acknowledges where the application does that.
    pub token: DeliveryToken,
}

/// What [`Endpoint::popped`] and [`Endpoint::acknowledge`] need of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryToken {
    pub(crate) flow: u32,
    pub(crate) flow_generation: u32,
    pub(crate) sequence: u64,
    pub(crate) bytes: u32,
}

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

/// Why a push was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// It can never be sent.
    #[error("the message has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// The message's.
        bytes: usize,
        /// This destination's.
        limit: usize,
    },
    /// No room now, or no credit; try again when `Endpoint::writable` says so.
    #[error("no room for the message now")]
    WouldBlock,
    /// The destination was closed.
    #[error("the destination is closed")]
    Closed,
    /// It is not text, but the queue is one of the original's `String`s.
    #[error("the message is not UTF-8, and a classic queue of String carries nothing else")]
    NotText,
}

/// Why a destination was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// There are too many.
    #[error("there are {limit} destinations, which is the limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// It exists with other options.
    #[error("the destination exists with other options")]
    Conflict,
    /// The combination makes no sense; says which.
    #[error("{0}")]
    Invalid(&'static str),
}

/// The state machine of one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
}

#[allow(unused_variables, clippy::unused_self, clippy::todo)]
#[allow(missing_docs, clippy::missing_errors_doc, clippy::missing_const_for_fn)]
impl Endpoint {
    /// `seed` must be random: session numbers, nonces and cookies come from it.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32], now: Time) -> Self {
        Self { config }
    }

    // Destinations.
    pub fn destination(
        &mut self,
        key: Key,
        options: DestinationOptions,
        now: Time,
    ) -> Result<DestinationId, DestinationError> {
        todo!()
    }
    /// The destination of `key` if there is one: the map's look-up of the paper's `cwPush`.
    pub fn find(&self, key: &Key) -> Option<DestinationId> {
        todo!()
    }
    /// Flushes, and forgets it once everything is sent (and acknowledged, where it is reliable). The
    /// receiver is told by a PROBE with the flag END, repeated as any PROBE until a STATUS comes.
    pub fn close_destination(&mut self, id: DestinationId, now: Time) {
        todo!()
    }

    // Sending. `now` is asked for only when a batch begins: it is a clock read.
    pub fn push(
        &mut self,
        id: DestinationId,
        message: &[u8],
        now: impl FnOnce() -> Time,
    ) -> Result<(), PushError> {
        todo!()
    }
    pub fn flush(&mut self, id: DestinationId, now: Time) {
        todo!()
    }
    pub fn flush_all(&mut self, now: Time) {
        todo!()
    }
    /// Whether a push that was refused with `WouldBlock` may succeed now.
    pub fn writable(&self, id: DestinationId) -> bool {
        todo!()
    }
    /// Whether everything pushed so far has left (and is acknowledged, where it is reliable).
    pub fn is_settled(&self, id: DestinationId) -> bool {
        todo!()
    }
    /// The next thing to send. Ask until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        todo!()
    }
    /// Whether `poll_transmit` has something.
    pub fn has_transmit(&self) -> bool {
        todo!()
    }
    /// Gives a lossy train's buffer back for the next batch.
    pub fn recycle(&mut self, buffer: BytesMut) {
        todo!()
    }
    /// The path to `address` carries datagrams of `path_bytes` (after EMSGSIZE, or a probe).
    pub fn set_path_bytes(&mut self, address: core::net::IpAddr, path_bytes: usize, now: Time) {
        todo!()
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

    // Time.
    /// When `on_timer` has something to do; none if nothing is due ever.
    pub fn next_deadline(&self) -> Option<Time> {
        todo!()
    }
    pub fn on_timer(&mut self, now: Time) {
        todo!()
    }
}

/// Why a mailbox was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// It is open already.
    #[error("mailbox {0} is open already")]
    Open(Mailbox),
    /// There are too many.
    #[error("there are {limit} mailboxes, which is the limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}
