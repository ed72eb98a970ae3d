//! The rows on the disk.

use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{Change, Entry, LeaseId, Revision};
use crate::meta::Op;

/// Key to `created u64, modified u64, lease u64` (0: none), all little-endian, and the value.
const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entries");
/// One row, of the empty key: the last revision.
const REVISION: TableDefinition<'_, &str, u64> = TableDefinition::new("revision");
/// Of a row before its value.
const HEADER_BYTES: usize = 24;

/// A row of [`ENTRIES`].
pub(super) struct Row {
    pub(super) created: Revision,
    pub(super) modified: Revision,
    pub(super) lease: Option<LeaseId>,
    pub(super) value: Vec<u8>,
}

/// The open file.
pub(super) struct Tables {
    database: Database,
    revision: Revision,
}

impl Tables {
    pub(super) fn open(path: &Path) -> Result<Self, redb::Error> {
        let database = Database::create(path)?;
        let txn = database.begin_write()?;
        txn.open_table(ENTRIES)?;
        let revision = txn.open_table(REVISION)?.get("")?.map_or(0, |found| found.value());
        txn.commit()?;
        Ok(Self { database, revision: Revision(revision) })
    }

    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Row>, redb::Error> {
        let table = self.database.begin_read()?.open_table(ENTRIES)?;
        Ok(table.get(key)?.and_then(|found| Row::decode(found.value())))
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<Entry>, redb::Error> {
        let table = self.database.begin_read()?.open_table(ENTRIES)?;
        let mut entries = Vec::new();
        for found in table.range(prefix..)? {
            let (key, row) = found?;
            if !key.value().starts_with(prefix) {
                break;
            }
            let row = Row::decode(row.value());
            entries.extend(row.map(|row| row.into_entry(key.value().to_owned())));
        }
        Ok(entries)
    }

    /// Makes the changes at a new revision, durably; gives what has changed.
    pub(super) fn apply(&mut self, ops: &[Op]) -> Result<Vec<Change>, redb::Error> {
        let revision = Revision(self.revision.0 + 1);
        let mut changes = Vec::new();
        let txn = self.database.begin_write()?;
        {
            let mut table = txn.open_table(ENTRIES)?;
            for op in ops {
                match op {
                    Op::Put { key, value, lease } => {
                        let before = table.get(key.as_str())?;
                        let before = before.and_then(|found| Row::decode(found.value()));
                        let row = Row {
                            created: before.map_or(revision, |row| row.created),
                            modified: revision,
                            lease: *lease,
                            value: value.to_vec(),
                        };
                        table.insert(key.as_str(), row.encode().as_slice())?;
                        changes.push(Change::Put(row.into_entry(key.clone())));
                    }
                    Op::Delete { key } => {
                        if table.remove(key.as_str())?.is_some() {
                            changes.push(Change::Gone { key: key.clone(), revision });
                        }
                    }
                }
            }
            txn.open_table(REVISION)?.insert("", revision.0)?;
        }
        txn.commit()?;
        self.revision = revision;
        Ok(changes)
    }

    /// Removes the keys of a lease, or of all.
    pub(super) fn end_leases(
        &mut self,
        lease: Option<LeaseId>,
    ) -> Result<Vec<Change>, redb::Error> {
        let mut ended = Vec::new();
        for found in self.database.begin_read()?.open_table(ENTRIES)?.iter()? {
            let (key, row) = found?;
            let held = Row::decode(row.value()).and_then(|row| row.lease);
            if held.is_some() && (lease.is_none() || held == lease) {
                ended.push(Op::Delete { key: key.value().to_owned() });
            }
        }
        self.apply(&ended)
    }
}

impl Row {
    pub(super) fn into_entry(self, key: String) -> Entry {
        let Self { created, modified, value, .. } = self;
        Entry { key, value: value.into(), created, modified }
    }

    fn encode(&self) -> Vec<u8> {
        let lease = self.lease.map_or(0, |lease| lease.0);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.value.len());
        for number in [self.created.0, self.modified.0, lease] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.value);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (created, rest) = bytes.split_first_chunk()?;
        let (modified, rest) = rest.split_first_chunk()?;
        let (lease, value) = rest.split_first_chunk()?;
        Some(Self {
            created: Revision(u64::from_le_bytes(*created)),
            modified: Revision(u64::from_le_bytes(*modified)),
            lease: Some(LeaseId(u64::from_le_bytes(*lease))).filter(|lease| lease.0 != 0),
            value: value.to_vec(),
        })
    }
}
