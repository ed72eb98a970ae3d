//! A virtual host: a namespace with its own exchanges and queues.

use quelea_model::{QueueId, QueueName, VhostName};
use rustc_hash::FxHashMap;

use crate::arena::Key;
use crate::report::MessageCounters;
use crate::router::Router;
use crate::topology::StoredVhost;

/// A virtual host, within one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VhostId(pub(crate) Key);

#[derive(Debug)]
pub(crate) struct Vhost {
    pub(crate) name: VhostName,
    pub(crate) description: Box<str>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) router: Router,
    pub(crate) queues: FxHashMap<QueueName, QueueId>,
    /// What queues counted that are gone.
    pub(crate) counters: MessageCounters,
}

impl Vhost {
    pub(crate) fn new(stored: StoredVhost) -> Self {
        Self {
            router: Router::new(stored.name.clone()),
            name: stored.name,
            description: stored.description,
            tags: stored.tags,
            queues: FxHashMap::default(),
            counters: MessageCounters::default(),
        }
    }
}
