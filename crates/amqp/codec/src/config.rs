//! What a server offers and allows, the same for all its connections.

use quelea_model::{Table, Value, limits};

/// What a server offers in the handshake and what it allows afterwards.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Largest frame offered, in bytes, its 8 bytes of framing included.
    pub frame_max: u32,
    /// Largest channel number offered.
    pub channel_max: u16,
    /// Seconds between heartbeats offered; 0 is none.
    pub heartbeat_s: u16,
    /// Largest body of one message, in bytes.
    pub message_bytes_max: u64,
    /// What `connection.start` says about the server.
    pub server_properties: Table,
    /// Milliseconds from the connection's start within which it must be open.
    pub handshake_timeout_ms: u64,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            frame_max: limits::FRAME_BYTES_MAX,
            channel_max: limits::CHANNELS_MAX,
            heartbeat_s: limits::HEARTBEAT_S,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            server_properties: server_properties(env!("CARGO_PKG_VERSION")),
            handshake_timeout_ms: limits::HANDSHAKE_TIMEOUT_MS,
        }
    }
}

/// Extensions that clients may use when the server names them; all are RabbitMQ's.
const CAPABILITIES: [&str; 9] = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
];

/// Returns Quelea's server properties, for a given version of the product.
#[must_use]
pub fn server_properties(version: &str) -> Table {
    let capabilities = CAPABILITIES.iter().map(|name| (*name, Value::Bool(true))).collect();
    Table::from_iter([
        ("capabilities", Value::Table(capabilities)),
        ("product", Value::text("Quelea")),
        ("version", Value::text(version)),
        ("platform", Value::text("Rust")),
    ])
}
