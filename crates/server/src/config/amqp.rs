//! `[amqp]`.

use quelea_model::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::Address;
use super::byte_size::{ByteSize, MIB};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Amqp {
    /// Addresses for AMQP clients. Port 0 takes a free one, which the ready line tells.
    #[schemars(with = "Vec<Address>", length(min = 1))]
    pub(crate) listen: Vec<String>,
    /// Largest frame that is offered to clients. A connection may hold this much of an unfinished
    /// frame.
    #[schemars(with = "ByteSize", range(min = limits::FRAME_BYTES_MIN as u64, max = 16 * MIB))]
    pub(crate) frame_max: u32,
    /// Most channels of one connection.
    #[schemars(range(min = 1))]
    pub(crate) channel_max: u16,
    /// Heartbeat that is offered to clients, in seconds; 0 for none. A client that is silent for
    /// twice as long is disconnected.
    pub(crate) heartbeat_s: u16,
    /// Most AMQP connections; further ones are closed at once. The limit of open files, which is
    /// raised as far as it may, lowers this.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub(crate) connections_max: usize,
    /// Whether what is written to clients leaves at once. Without it the kernel gathers small packets until the client has
    /// acknowledged those before (Nagle's algorithm): fewer packets, and answers that come later at low rates.
    pub(crate) tcp_nodelay: bool,
    /// How long a client may take from connecting to `connection.open`, in milliseconds.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) handshake_timeout_ms: u64,
}

impl Default for Amqp {
    fn default() -> Self {
        Self {
            listen: vec!["127.0.0.1:5672".to_owned()],
            frame_max: limits::FRAME_BYTES_MAX,
            channel_max: limits::CHANNELS_MAX,
            heartbeat_s: limits::HEARTBEAT_S,
            connections_max: limits::CONNECTIONS_MAX,
            tcp_nodelay: true,
            handshake_timeout_ms: limits::HANDSHAKE_TIMEOUT_MS,
        }
    }
}
