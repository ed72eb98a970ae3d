//! A name is held while a queue of it is made in one of a node's two stores: meanwhile none is made in the other.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use quelea_sqs_protocol::{NameLock, QueueRef};
use rustc_hash::FxHasher;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Names that are held at once at most: those that share a place wait for each other.
const PLACES: usize = 256;

/// Which names are held at this node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct NameLocks(Arc<[Arc<Mutex<()>>]>);

impl Default for NameLocks {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Arc::default()).collect())
    }
}

impl NameLock for NameLocks {
    type Held = OwnedMutexGuard<()>;

    async fn hold(&self, queue: &QueueRef) -> Self::Held {
        let mut hasher = FxHasher::default();
        queue.hash(&mut hasher);
        let place = hasher.finish() as usize % PLACES;
        Arc::clone(&self.0[place]).lock_owned().await
    }
}
