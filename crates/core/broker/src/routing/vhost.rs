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

    /// Returns the virtual host as the log keeps it.
    pub(super) fn stored(&self) -> StoredVhost {
        StoredVhost {
            name: self.name.clone(),
            description: self.description.clone(),
            tags: self.tags.clone(),
        }
    }
}
