//! Changes as they come: a look at the revision every so often, and at once after a transaction of this process.

use std::pin::Pin;
use std::sync::Arc;

use quelea_elastic_directory::meta::{Change, MetaError, Revision, Watch};
use tokio::time::Instant;

use crate::changes::{Logged, changes_after};
use crate::fault::timed;
use crate::limits::{ANSWER_MAX, POLL_INTERVAL};
use crate::shared::Shared;

/// Somebody's watch over the keys that begin with a prefix.
pub(crate) struct CassandraWatch {
    shared: Arc<Shared>,
    prefix: String,
    /// The last whose changes were returned.
    revision: Revision,
    /// When it was last known that nothing is missing.
    known_at: Instant,
}

impl CassandraWatch {
    pub(crate) fn new(shared: &Arc<Shared>, prefix: &str, after: Revision) -> Self {
        let (shared, prefix) = (Arc::clone(shared), prefix.to_owned());
        Self { shared, prefix, revision: after, known_at: Instant::now() }
    }

    async fn next_changes(&mut self) -> Result<Vec<Change>, MetaError> {
        let shared = Arc::clone(&self.shared);
        loop {
            let mut changed = std::pin::pin!(shared.changed.notified());
            // From here on: what happens during the look is not missed.
            changed.as_mut().enable();
            match timed("read changes", changes_after(&shared.tables, self.revision)).await {
                Ok(found) => {
                    self.known_at = Instant::now();
                    let has_moved = found.revision != self.revision;
                    // Nothing is lost if this future is dropped: they are returned where this is noted.
                    self.revision = found.revision;
                    let changes = self.of_interest(found.changes);
                    if !changes.is_empty() {
                        return Ok(changes);
                    }
                    if has_moved {
                        continue;
                    }
                }
                Err(error @ MetaError::Unavailable { .. })
                    if self.known_at.elapsed() < ANSWER_MAX =>
                {
                    tracing::debug!(%error, "changes of metadata are looked for again");
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    fn of_interest(&self, logged: Vec<Logged>) -> Vec<Change> {
        let is_of_interest = |change: &Change| match change {
            Change::Put(entry) => entry.key.starts_with(&self.prefix),
            Change::Gone { key, .. } => key.starts_with(&self.prefix),
        };
        logged.into_iter().map(|logged| logged.change).filter(is_of_interest).collect()
    }
}

impl Watch for CassandraWatch {
    fn next(
        &mut self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Change>, MetaError>> + Send + '_>> {
        Box::pin(self.next_changes())
    }
}
