//! The last changes, for watches.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::{Change, MetaError, Revision};

/// Changes that are kept for a watch that comes late: what happens from a listing to its first `next`.
const CHANGES_MAX: usize = 4_096;

/// The changes of the last transactions.
pub(super) struct Changes {
    kept: Mutex<Kept>,
    newest: watch::Sender<Revision>,
}

struct Kept {
    /// All changes after this revision are kept.
    floor: Revision,
    changes: VecDeque<(Revision, Change)>,
}

impl Changes {
    pub(super) fn new(revision: Revision) -> Self {
        let kept = Kept { floor: revision, changes: VecDeque::new() };
        Self { kept: Mutex::new(kept), newest: watch::Sender::new(revision) }
    }

    /// Takes the changes of one transaction.
    pub(super) fn publish(&self, revision: Revision, changes: Vec<Change>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.changes.extend(changes.into_iter().map(|change| (revision, change)));
        while kept.changes.len() > CHANGES_MAX {
            if let Some((revision, _)) = kept.changes.pop_front() {
                kept.floor = revision;
            }
        }
        drop(kept);
        self.newest.send_replace(revision);
    }

    /// Waits for changes after a revision. Returns the revision that they lead to, and all of them,
    /// as soon as there is one.
    pub(super) async fn after(
        &self,
        after: Revision,
    ) -> Result<(Revision, Vec<Change>), MetaError> {
        let mut newest = self.newest.subscribe();
        // The sender is here, so it does not fail.
        let newest =
            newest.wait_for(|newest| *newest > after).await.map_or(after, |newest| *newest);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if after < kept.floor {
            return Err(MetaError::Compacted(after));
        }
        let wanted = |revision: Revision| revision > after && revision <= newest;
        let changes = kept.changes.iter().filter(|(revision, _)| wanted(*revision));
        Ok((newest, changes.map(|(_, change)| change.clone()).collect()))
    }
}
