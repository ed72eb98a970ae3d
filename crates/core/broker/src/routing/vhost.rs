//! A virtual host: a namespace with its own exchanges and queues.

use quelea_model::VhostName;

use super::router::Router;
use crate::topology::StoredVhost;

#[derive(Debug)]
pub(crate) struct Vhost {
    pub(crate) name: VhostName,
    pub(crate) description: Box<str>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) router: Router,
}

impl Vhost {
    pub(super) fn new(stored: StoredVhost) -> Self {
        Self {
            router: Router::new(stored.name.clone()),
            name: stored.name,
            description: stored.description,
            tags: stored.tags,
        }
    }

    /// Itself as the log keeps it.
    pub(crate) fn into_stored(self) -> StoredVhost {
        StoredVhost { name: self.name, description: self.description, tags: self.tags }
    }
}
