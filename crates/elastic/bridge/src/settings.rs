//! What the bridge needs to know.

use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use quelea_net::SignInFailures;

/// What the bridge needs to know.
#[derive(Debug)]
pub struct BridgeSettings {
    /// Where relays bring what is to be kept; `None`: nothing is kept here.
    pub keep: Option<TcpListener>,
    /// Most relays that bring it at once; further ones wait.
    pub keep_connections_max: usize,
    /// Where relays with a wrong key are counted.
    pub failures: SignInFailures,
    /// Whose permissions the bridge has.
    pub user: Arc<str>,
    /// Whether that user may come from this machine only.
    pub loopback_only: bool,
    /// The virtual host of the durable queues.
    pub vhost: Arc<str>,
    /// What relays and clients have to know; empty if nothing is asked for.
    pub key: Bytes,
    /// The directories that know the elastic queues.
    pub directories: Vec<String>,
    /// Largest body that the broker takes of a delivery.
    pub body_bytes_max: usize,
    /// Exchanges that feed elastic queues.
    pub feeds: Vec<FeedSettings>,
    /// Elastic queues that are delivered to exchanges.
    pub deliveries: Vec<DeliverySettings>,
}

/// An exchange that feeds an elastic queue.
#[derive(Clone, Debug)]
pub struct FeedSettings {
    /// The virtual host of the exchange.
    pub vhost: Arc<str>,
    /// The exchange; empty if nothing is bound, and `through` is fed as it is.
    pub exchange: Arc<str>,
    /// Which of its messages: binding keys.
    pub binding_keys: Vec<Arc<str>>,
    /// The durable queue in which messages wait; declared and bound if it is not there.
    pub through: Arc<str>,
    /// The elastic queue.
    pub queue: Arc<str>,
    /// Most messages under way.
    pub prefetch: u16,
}

/// An elastic queue that is delivered to an exchange.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// The elastic queue.
    pub queue: Arc<str>,
    /// Which of its messages: topic prefixes.
    pub prefixes: Vec<Arc<str>>,
    /// The virtual host of the exchange.
    pub vhost: Arc<str>,
    /// The exchange; empty for the default one.
    pub exchange: Arc<str>,
    /// The routing key; `None`: the topic.
    pub routing_key: Option<Arc<str>>,
}
