//! The settings of the front.

use std::sync::Arc;
use std::time::Duration;

use quelea_cmq::{Config, Mode, PreSharedKey};

use crate::peer::Peer;
use crate::route::Route;

/// The settings of the front.
#[derive(Clone, Debug)]
pub struct DatagramSettings {
    /// With whose permissions messages are published and consumed.
    pub user: Arc<str>,
    /// Whether that user may come from this machine only.
    pub loopback_only: bool,
    /// The secret that all peers share.
    pub pre_shared_key: Option<PreSharedKey>,
    /// Largest message that CMQ carries, either way.
    pub message_bytes_max: usize,
    /// Largest body that the broker takes.
    pub body_bytes_max: usize,
    /// Bytes that were taken from peers and wait to be published.
    pub waiting_bytes_max: usize,
    /// Where messages go; the first that fits holds.
    pub routes: Vec<Route>,
    /// Where messages to mailboxes without a route go.
    pub others: Route,
    /// Queues that are pushed to peers.
    pub forwards: Vec<ForwardSettings>,
}

/// A queue that is pushed to a peer.
#[derive(Clone, Debug)]
pub struct ForwardSettings {
    /// The queue.
    pub queue: Arc<str>,
    /// Its virtual host.
    pub vhost: Arc<str>,
    /// Whom to push to.
    pub to: Peer,
    /// What is done about losses.
    pub mode: Mode,
    /// Most messages under way.
    pub prefetch: u16,
    /// How long the peer may be silent before it is taken for gone.
    pub timeout: Duration,
}

impl DatagramSettings {
    /// Returns the settings of every socket of the front.
    pub(crate) fn config(&self) -> Config {
        Config {
            message_bytes_max: self.message_bytes_max,
            pre_shared_key: self.pre_shared_key.clone(),
            ..Config::default()
        }
    }
}
