//! `[cmq]`.

use quelea_cmq::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::OptionalAddress;
use super::byte_size::{ByteSize, GIB, MIB};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cmq {
    /// Address (UDP) at which CMQ's datagrams are taken and published to exchanges; empty: none.
    /// 4711 is CMQ's port.
    #[schemars(with = "OptionalAddress")]
    pub(crate) listen: String,
    /// File with the secret that CMQ's peers share, 32 bytes or 64 hexadecimal digits; only who has
    /// it is listened to then. Empty: none, nothing is encrypted.
    pub(crate) key_file: String,
    /// User with whose permissions CMQ's messages are published and forwarded. One of
    /// `access.loopback_users` is for datagrams from this machine only.
    pub(crate) user: String,
    /// Virtual host for messages to mailboxes without a route.
    pub(crate) vhost: String,
    /// Exchange for messages to mailboxes without a route. Empty is the default exchange, which
    /// takes them to the queue that has the routing key's name.
    pub(crate) exchange: String,
    /// Routing key of messages to mailboxes without a route; `{mailbox}` stands for the mailbox's
    /// number.
    pub(crate) routing_key: String,
    /// Largest message of CMQ, either way.
    #[schemars(with = "ByteSize", range(min = 1, max = 64 * MIB))]
    pub(crate) message_bytes_max: usize,
    /// Bytes that were taken from CMQ's peers and wait to be published. Their credit ends before.
    #[schemars(with = "ByteSize", range(min = MIB, max = 4 * GIB))]
    pub(crate) waiting_bytes_max: usize,
    /// Where messages to certain mailboxes are published; the first one that fits holds.
    pub(crate) route: Vec<CmqRoute>,
    /// Queues whose messages are pushed to CMQ's peers.
    pub(crate) forward: Vec<CmqForward>,
}

/// `[[cmq.route]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CmqRoute {
    /// Mailboxes that it is for: one, as in `7`, or all from one to another, as in `0-15`.
    pub(crate) mailboxes: String,
    /// Virtual host of the exchange.
    #[serde(default = "super::root_vhost")]
    pub(crate) vhost: String,
    /// Exchange that they are published to.
    #[serde(default)]
    pub(crate) exchange: String,
    /// Their routing key; `{mailbox}` stands for the mailbox's number.
    #[serde(default = "mailbox_key")]
    pub(crate) routing_key: String,
    /// Whether they are persistent. Durable queues keep those, and a reliable sender is
    /// acknowledged when they are safe.
    #[serde(default = "yes")]
    pub(crate) persistent: bool,
}

/// `[[cmq.forward]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CmqForward {
    /// Queue that is consumed from. It need not exist yet.
    pub(crate) queue: String,
    /// Virtual host that the queue is in. `cmq.user` has to have permission there.
    #[serde(default = "super::root_vhost")]
    pub(crate) vhost: String,
    /// Whom its messages are pushed to, `HOST:PORT/MAILBOX`.
    pub(crate) to: String,
    /// `reliable`: in order, and acknowledged to the queue when the peer has acknowledged it.
    /// `unordered`: the same without the order. `lossy`: acknowledged when it is sent. `latest`:
    /// the same, and the peer drops what is older than the newest.
    #[serde(default)]
    pub(crate) mode: ForwardMode,
    /// Most messages that are under way to the peer.
    #[serde(default = "super::prefetch")]
    #[schemars(range(min = 1))]
    pub(crate) prefetch: u16,
    /// How long the peer may be without acknowledging anything, in milliseconds; then what is under
    /// way goes back to the queue, for other consumers too, and the peer is tried again later.
    #[serde(default = "forward_timeout_ms")]
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) timeout_ms: u64,
}

/// What a forward's peer is promised: the [`Mode`]s that need no further number. The names are of the setting; the API and
/// the Python binding have others, which clients know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForwardMode {
    #[default]
    Reliable,
    Unordered,
    Lossy,
    Latest,
}

impl From<ForwardMode> for Mode {
    fn from(mode: ForwardMode) -> Self {
        match mode {
            ForwardMode::Reliable => Self::ReliableOrdered,
            ForwardMode::Unordered => Self::ReliableUnordered,
            ForwardMode::Lossy => Self::Lossy,
            ForwardMode::Latest => Self::LatestOnly,
        }
    }
}

impl Default for Cmq {
    fn default() -> Self {
        Self {
            listen: String::new(),
            key_file: String::new(),
            user: "guest".to_owned(),
            vhost: super::root_vhost(),
            exchange: String::new(),
            routing_key: mailbox_key(),
            message_bytes_max: 1 << 20,
            waiting_bytes_max: 64 << 20,
            route: Vec::new(),
            forward: Vec::new(),
        }
    }
}

fn mailbox_key() -> String {
    "cmq.{mailbox}".to_owned()
}

const fn yes() -> bool {
    true
}

const fn forward_timeout_ms() -> u64 {
    10_000
}
