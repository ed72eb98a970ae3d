//! What clients change of the topology, or the broker by itself, for an audit trail. Whoever runs the broker takes it after each turn.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use quelea_model::VhostName;

/// Changes that wait to be taken; the oldest go where nobody takes them.
const WAITING_MAX: usize = 10_000;

/// Of a queue or an exchange that nothing uses any more.
pub(crate) const AUTO_DELETE: &str = "auto-delete";
/// Of a queue that nobody has used for as long as its `x-expires` says.
pub(crate) const EXPIRES: &str = "x-expires";

/// A change that a client of a connection has made, or the broker by itself. What a client declares that is there already, or deletes that is not
/// there, changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyChange {
    /// Who; empty if it is the broker by itself.
    pub user: Arc<str>,
    /// Where from: the peer's address and port, as text; empty if it is inside the process.
    pub peer: String,
    /// How, for people: `AMQP 0-9-1`; why, if it is the broker by itself: `auto-delete`, `x-expires`.
    pub protocol: &'static str,
    /// In which virtual host.
    pub vhost: VhostName,
    /// What.
    pub action: TopologyAction,
    /// Whether it is of a queue that only its connection sees: such come and go with connections.
    pub is_private: bool,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyAction {
    /// A queue was made.
    DeclareQueue(String),
    /// A queue was deleted.
    DeleteQueue(String),
    /// A queue's ready messages were deleted.
    PurgeQueue(String),
    /// An exchange was made.
    DeclareExchange(String),
    /// An exchange was deleted.
    DeleteExchange(String),
    /// A binding was made.
    Bind(ChangedBinding),
    /// A binding was deleted.
    Unbind(ChangedBinding),
}

/// A binding's two ends, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedBinding {
    /// The exchange.
    pub source: String,
    /// The queue or the exchange.
    pub destination: String,
    /// Whether it is a queue.
    pub to_queue: bool,
    /// The routing key.
    pub routing_key: String,
}

impl TopologyAction {
    /// Returns AMQP's name of the method that does this, such as `queue.declare`.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::DeclareQueue(_) => "queue.declare",
            Self::DeleteQueue(_) => "queue.delete",
            Self::PurgeQueue(_) => "queue.purge",
            Self::DeclareExchange(_) => "exchange.declare",
            Self::DeleteExchange(_) => "exchange.delete",
            Self::Bind(ChangedBinding { to_queue: true, .. }) => "queue.bind",
            Self::Bind(_) => "exchange.bind",
            Self::Unbind(ChangedBinding { to_queue: true, .. }) => "queue.unbind",
            Self::Unbind(_) => "exchange.unbind",
        }
    }
}

/// What was changed, names being escaped: they add no line to a log.
impl fmt::Display for TopologyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeclareQueue(name) | Self::DeleteQueue(name) | Self::PurgeQueue(name) => {
                write!(f, "queue {name:?}")
            }
            Self::DeclareExchange(name) | Self::DeleteExchange(name) => {
                write!(f, "exchange {name:?}")
            }
            Self::Bind(binding) | Self::Unbind(binding) => {
                let ChangedBinding { source, destination, to_queue, routing_key } = binding;
                let kind = if *to_queue { "queue" } else { "exchange" };
                write!(f, "{kind} {destination:?}, exchange {source:?}, key {routing_key:?}")
            }
        }
    }
}

/// Those that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct TopologyChanges(VecDeque<TopologyChange>);

impl TopologyChanges {
    pub(crate) fn add(&mut self, change: TopologyChange) {
        if self.0.len() >= WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(change);
    }

    pub(crate) fn take(&mut self) -> VecDeque<TopologyChange> {
        std::mem::take(&mut self.0)
    }
}
