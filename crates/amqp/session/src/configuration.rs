//! What a session is made with.

use std::sync::Arc;

use quelea_amqp_codec::ConnectionConfig;

/// Shared by all sessions of a listener. By default no user is bound to this machine.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// Limits and server properties that the handshake offers.
    pub connection: Arc<ConnectionConfig>,
    /// Users who may only connect from this machine's loopback interface.
    pub loopback_users: Vec<String>,
}

/// The two ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The client's address and port, as text.
    pub address: String,
    /// Our own address and port, as text.
    pub local: String,
    /// Whether the client is on this machine's loopback interface.
    pub loopback: bool,
}

impl Peer {
    /// Returns the connection's name, in RabbitMQ's form: `127.0.0.1:54321 -> 127.0.0.1:5672`.
    #[must_use]
    pub fn connection_name(&self) -> String {
        format!("{} -> {}", self.address, self.local)
    }
}
