//! The options of an endpoint and of its destinations.

use std::time::Duration;

use crate::classic::Element;
use crate::error::DestinationError;
use crate::key::Key;
use crate::limits;
use crate::mode::{Mode, Repair};

/// An endpoint's settings. `Config::default()` is for today's networks; [`Config::classic`] is the
/// paper's.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of a batch: it leaves before the message that would make it larger (paper, section
    /// "cwPush": `qthresh`). From [`limits::SEGMENT_BYTES_MIN`] to [`limits::DATAGRAM_BYTES_MAX`].
    pub qthresh: usize,
    /// The longest that a message waits in a batch, from the batch's first message on.
    pub timeout: Duration,
    /// Whose datagrams to speak.
    pub wire: Wire,
    /// Bytes of one datagram at most, whatever the path allows.
    pub segment_bytes_max: usize,
    /// Bytes of a message at most.
    pub message_bytes_max: usize,
    /// Bytes that wait in this endpoint to be sent or acknowledged, over all destinations.
    pub outbox_bytes_max: usize,
    /// Destinations at most; at most [`limits::DESTINATIONS_MAX`].
    pub destinations_max: usize,
    /// Proven peers' flows that are remembered.
    pub flows_max: usize,
    /// Those of one address, or of one network of 64 bits of IPv6; beyond, it makes room among its own.
    pub flows_per_address_max: usize,
    /// Bytes that wait for what is missing before them, over all flows.
    pub reassembly_bytes_max: usize,
    /// Bytes of datagrams, as the kernel counts them, that may be under way to this socket's receive
    /// buffer; all senders with credit share it. The driver sets it to half the buffer.
    pub receive_window_bytes: usize,
    /// The secret that both ends share; without it nothing is encrypted. Datagrams that are not
    /// sealed with it are dropped and counted.
    pub pre_shared_key: Option<PreSharedKey>,
}

/// Whose datagrams an endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Quelea's, version 1 (docs/formats/cmq.md).
    #[default]
    Quelea,
    /// Those of the original library (CMQ-0.0.12) for a queue of `String`.
    ClassicString,
    /// Those of the original library for a queue of strict `ByteString`.
    ClassicBytes,
}

impl Wire {
    /// Returns what the lists are of, if the wire is the original's.
    pub(crate) const fn element(self) -> Option<Element> {
        match self {
            Self::Quelea => None,
            Self::ClassicString => Some(Element::Text),
            Self::ClassicBytes => Some(Element::Bytes),
        }
    }
}

/// 32 secret bytes, not shown when printed.
#[derive(Clone)]
pub struct PreSharedKey(pub [u8; 32]);

impl core::fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PreSharedKey(..)")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            qthresh: limits::DATAGRAM_BYTES_MAX,
            timeout: Duration::from_millis(1),
            wire: Wire::Quelea,
            segment_bytes_max: limits::SEGMENT_BYTES_MAX_DEFAULT,
            message_bytes_max: limits::MESSAGE_BYTES_MAX_DEFAULT,
            outbox_bytes_max: limits::OUTBOX_BYTES_MAX_DEFAULT,
            destinations_max: limits::DESTINATIONS_MAX,
            flows_max: limits::FLOWS_MAX_DEFAULT,
            flows_per_address_max: limits::FLOWS_PER_ADDRESS_MAX_DEFAULT,
            reassembly_bytes_max: limits::REASSEMBLY_BYTES_MAX_DEFAULT,
            receive_window_bytes: 64 << 10,
            pre_shared_key: None,
        }
    }
}

impl Config {
    /// Returns the same settings within their bounds.
    pub(crate) fn bounded(mut self) -> Self {
        let datagram = limits::SEGMENT_BYTES_MIN..=limits::DATAGRAM_BYTES_MAX;
        let bound = |bytes: usize| bytes.clamp(*datagram.start(), *datagram.end());
        self.qthresh = bound(self.qthresh);
        self.segment_bytes_max = bound(self.segment_bytes_max);
        self.message_bytes_max = self.message_bytes_max.min(limits::MESSAGE_BYTES_MAX);
        self.outbox_bytes_max = self.outbox_bytes_max.max(limits::OUTBOX_BYTES_MIN);
        self.destinations_max = self.destinations_max.min(limits::DESTINATIONS_MAX);
        self
    }

    /// Returns the paper's profile: the original's datagrams, 512 bytes, 200 ms.
    #[must_use]
    pub fn classic() -> Self {
        Self {
            qthresh: 512,
            timeout: Duration::from_millis(200),
            wire: Wire::ClassicString,
            ..Self::default()
        }
    }
}

/// How messages go to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationOptions {
    /// What is done about losses.
    pub mode: Mode,
    /// Parity.
    pub repair: Repair,
    /// Whether the receiver's credit bounds what is under way. Off only for [`Mode::Lossy`] and
    /// [`Mode::LatestOnly`]; always off for multicast.
    pub credit: bool,
    /// Another age than the endpoint's; such destinations take the priority search queue.
    pub timeout: Option<Duration>,
    /// Bytes that one datagram to it may have: the path's MTU less the IP and UDP headers. The driver
    /// finds it out.
    pub path_bytes: usize,
    /// What a push does when the endpoint has no room for it, or the receiver gives no credit.
    pub when_full: WhenFull,
    /// After how long without any answer the receiver is given up, or in a lossy mode what is under
    /// way to it is forgotten: [`DEAD_PEER`](crate::flight::DEAD_PEER) and
    /// [`SILENT_PEER`](crate::flight::SILENT_PEER) if not given.
    pub dead_after: Option<Duration>,
}

impl Default for DestinationOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Lossy,
            repair: Repair::None,
            credit: true,
            timeout: None,
            path_bytes: 1_232,
            when_full: WhenFull::Block,
            dead_after: None,
        }
    }
}

impl DestinationOptions {
    /// Checks the options: returns them if they make sense for `key`.
    pub(crate) fn checked(mut self, key: &Key, config: &Config) -> Result<Self, DestinationError> {
        let invalid = |reason| Err(DestinationError::Invalid(reason));
        let reliable = self.mode.is_reliable();
        if !(limits::SEGMENT_BYTES_MIN..=limits::DATAGRAM_BYTES_MAX).contains(&self.path_bytes) {
            return invalid("a path carries from 128 to 65,507 bytes");
        }
        if key.address.ip().is_multicast() {
            if reliable {
                return invalid("a multicast group has no one to acknowledge: it is lossy");
            }
            self.credit = false;
        }
        if reliable && !self.credit {
            return invalid("a reliable destination needs credit");
        }
        if reliable && self.when_full == WhenFull::DropOldest {
            return invalid("a reliable destination drops nothing that it took");
        }
        if self.dead_after.is_some_and(|dead_after| dead_after.is_zero()) {
            return invalid("a receiver needs some time to answer");
        }
        if !self.repair.is_valid() {
            return invalid("a repair group has 1 to 64 data and 1 to 16 parity datagrams");
        }
        if config.wire != Wire::Quelea {
            if self.mode != Mode::Lossy || self.repair != Repair::None {
                return invalid("the original's datagrams know only the lossy mode");
            }
            self.credit = false;
        }
        Ok(self)
    }
}

/// What a push does when there is no room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// Waits. The state machine refuses with `WouldBlock`; the driver waits and tries again.
    #[default]
    Block,
    /// Refuses with `WouldBlock`.
    Refuse,
    /// Drops the new message and counts it.
    DropNew,
    /// Drops the oldest batch that waits for the same destination and counts its messages. Not for
    /// reliable modes.
    DropOldest,
}

/// How a mailbox takes messages.
#[derive(Clone, Debug)]
pub struct MailboxOptions {
    /// Bytes delivered and not yet popped; credit ends before.
    pub bytes_max: usize,
    /// Whether reliable messages are acknowledged to their sender only when the application says so
    /// (the broker does when they are on disk), not when they are popped. A sender is held back when
    /// [`limits::WINDOW_DATAGRAMS_MAX`] deliveries of its flow are not acknowledged.
    pub acknowledged_by_application: bool,
}

impl Default for MailboxOptions {
    fn default() -> Self {
        Self { bytes_max: limits::MAILBOX_BYTES_MAX_DEFAULT, acknowledged_by_application: false }
    }
}
