//! The metadata store of a single directory: a redb file in the data directory. Nobody else can hold a
//! lease here, so a lease ends when it is revoked or when the process does: keys with one are removed
//! when the file is opened again, and what is made anew has a higher revision.

mod changes;
mod table;

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::changes::Changes;
use self::table::Tables;
use super::{
    Change, Compare, Entry, LeaseId, Listing, MetaError, MetaStore, Revision, Txn, TxnOutcome,
    Watch,
};
use crate::ResultFuture;

/// As in `elastic.metadata`.
const NAME: &str = "embedded";

/// The store. Its files are used by blocking tasks of the runtime that it lives in.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held over a transaction and the publication of its changes, so that watches see them in order.
    tables: Mutex<Tables>,
    changes: Changes,
    leases: AtomicU64,
}

/// Why the file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the metadata store {path}: {cause}")]
pub struct OpenError {
    path: String,
    cause: String,
}

impl Embedded {
    /// Opens or makes the file.
    ///
    /// # Errors
    /// If it cannot be opened, is no such file, or is open elsewhere.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |cause: String| OpenError { path: path.display().to_string(), cause };
        let mut tables = Tables::open(path).map_err(|error| failed(error.to_string()))?;
        tables.end_leases(None).map_err(|error| failed(error.to_string()))?;
        let changes = Changes::new(tables.revision());
        let shared = Shared { tables: Mutex::new(tables), changes, leases: AtomicU64::new(0) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs `work` on a thread that may wait for the disk.
    async fn with<T: Send + 'static>(
        &self,
        what: impl FnOnce() -> String,
        work: impl FnOnce(&mut Tables, &Changes) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, MetaError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || {
            let mut tables = shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut tables, &shared.changes)
        });
        let failed = |cause: String| MetaError::Unavailable { store: NAME, what: what(), cause };
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl MetaStore for Embedded {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError> {
        let name = key.to_owned();
        Box::pin(self.with(
            move || format!("read {key:?}"),
            move |tables, _| Ok(tables.get(&name)?.map(|row| row.into_entry(name))),
        ))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError> {
        let name = prefix.to_owned();
        Box::pin(self.with(
            move || format!("list {prefix:?}"),
            move |tables, _| {
                Ok(Listing { revision: tables.revision(), entries: tables.list(&name)? })
            },
        ))
    }

    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError> {
        Box::pin(self.with(
            || "commit a transaction".to_owned(),
            move |tables, changes| {
                for compare in &txn.compares {
                    let (key, wanted) = match compare {
                        Compare::Created(key, wanted) | Compare::Modified(key, wanted) => {
                            (key, *wanted)
                        }
                    };
                    let found = tables.get(key)?.map_or(Revision(0), |row| match compare {
                        Compare::Created(..) => row.created,
                        Compare::Modified(..) => row.modified,
                    });
                    if found != wanted {
                        return Ok(TxnOutcome::Refused);
                    }
                }
                let done = tables.apply(&txn.changes)?;
                changes.publish(tables.revision(), done);
                Ok(TxnOutcome::Done(tables.revision()))
            },
        ))
    }

    fn lease(&self, _ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError> {
        let lease = LeaseId(self.shared.leases.fetch_add(1, Ordering::Relaxed) + 1);
        Box::pin(std::future::ready(Ok(lease)))
    }

    fn keep_alive(&self, _lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(self.with(
            move || format!("revoke lease {}", lease.0),
            move |tables, changes| {
                let done = tables.end_leases(Some(lease))?;
                changes.publish(tables.revision(), done);
                Ok(())
            },
        ))
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError> {
        let watch =
            EmbeddedWatch { shared: Arc::clone(&self.shared), prefix: prefix.to_owned(), after };
        Box::pin(std::future::ready(Ok(Box::new(watch) as Box<dyn Watch>)))
    }
}

struct EmbeddedWatch {
    shared: Arc<Shared>,
    prefix: String,
    after: Revision,
}

impl Watch for EmbeddedWatch {
    fn next(
        &mut self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Change>, MetaError>> + Send + '_>> {
        Box::pin(async move {
            loop {
                let (seen, changes) = self.shared.changes.after(self.after).await?;
                self.after = seen;
                let wanted = |change: &Change| match change {
                    Change::Put(entry) => entry.key.starts_with(&self.prefix),
                    Change::Gone { key, .. } => key.starts_with(&self.prefix),
                };
                let changes: Vec<_> = changes.into_iter().filter(wanted).collect();
                if !changes.is_empty() {
                    return Ok(changes);
                }
            }
        })
    }
}
