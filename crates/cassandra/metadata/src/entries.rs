//! Entries as they are read: some by their keys, or all.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_elastic_directory::meta::{Change, Entry, MetaError, Revision};
use uuid::Uuid;

use crate::changes::{Logged, changes_after};
use crate::stored::Stored;
use crate::tables::{EntryRow, Tables, lease_from, unsigned};

/// Some entries, as they were after one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntriesRead {
    /// How many transactions there had been.
    pub(crate) revision: u64,
    /// Which the last was.
    pub(crate) change: Option<Uuid>,
    /// By their keys.
    pub(crate) entries: BTreeMap<String, Stored>,
}

impl EntriesRead {
    fn take(&mut self, (revision, change, key, value, created, modified, lease): EntryRow) {
        let revision = unsigned(revision);
        if revision >= self.revision {
            (self.revision, self.change) = (revision, change);
        }
        if key.is_empty() {
            return;
        }
        let entry = Entry {
            key: key.clone(),
            value: Bytes::from(value.unwrap_or_default()),
            created: Revision(unsigned(created)),
            modified: Revision(unsigned(modified)),
        };
        self.entries.insert(key, Stored { entry, lease: lease.map(lease_from) });
    }

    /// What has changed since it was read.
    fn follow(&mut self, changes: Vec<Logged>) {
        for Logged { change, lease } in changes {
            match change {
                Change::Put(entry) => {
                    self.entries.insert(entry.key.clone(), Stored { entry, lease });
                }
                Change::Gone { key, .. } => drop(self.entries.remove(&key)),
            }
        }
    }
}

/// Returns the entries of these keys, as far as they are there.
pub(crate) async fn read(tables: &Tables, mut keys: Vec<String>) -> Result<EntriesRead, MetaError> {
    keys.push(String::new());
    let mut seen = EntriesRead::default();
    for row in tables.entries(keys).await? {
        seen.take(row);
    }
    Ok(seen)
}

/// Returns all entries. They are read page by page: what changed meanwhile is made up for by the
/// changes' own rows.
pub(crate) async fn list(tables: &Tables) -> Result<EntriesRead, MetaError> {
    let mut seen = EntriesRead::default();
    let mut began = None;
    let mut from = String::new();
    loop {
        let rows = tables.entries_from(&from).await?;
        let Some(last) = rows.last() else { break };
        // The smallest key that is greater.
        from = format!("{}\0", last.2);
        rows.into_iter().for_each(|row| seen.take(row));
        began.get_or_insert(seen.revision);
    }
    let last = std::mem::replace(&mut seen.revision, began.unwrap_or_default());
    catch_up(tables, &mut seen, last).await?;
    Ok(seen)
}

/// Follows what has changed since all entries were `seen`, up to some revision at least.
pub(crate) async fn catch_up(
    tables: &Tables,
    seen: &mut EntriesRead,
    to_revision: u64,
) -> Result<(), MetaError> {
    while seen.revision < to_revision {
        let found = changes_after(tables, Revision(seen.revision)).await?;
        seen.follow(found.changes);
        seen.revision = found.revision.0;
    }
    Ok(())
}
