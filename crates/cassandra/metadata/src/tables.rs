//! The table's statements, and its rows. Everything is in one partition: entries are of kind 0, changes of kind 1, leases of
//! kind 2. The partition's revision counts its transactions; the entry without a name is always there, so that a read of
//! entries finds the revision too.

use std::fmt::Display;

use quelea_cassandra_store::{CassandraSettings, ConnectError, Keyspace, OwnedValues, Prepared};
use quelea_elastic_directory::meta::{Entry, LeaseId, MetaError, Revision};
use uuid::Uuid;

use crate::fault::unavailable;
use crate::limits::{CHANGES_TTL_S, PAGE_ROWS};
use crate::stored::Stored;

/// An entry's row: the partition's revision and who made it, then the key, its value, when it was made and changed, and its
/// lease.
pub(crate) type EntryRow =
    (Option<i64>, Option<Uuid>, String, Option<Vec<u8>>, Option<i64>, Option<i64>, Option<i64>);

/// A change's row: where it stands, the entry's key, its value (none: it is gone), when it was made and changed, its lease.
pub(crate) type ChangeRow =
    (String, Option<String>, Option<Vec<u8>>, Option<i64>, Option<i64>, Option<i64>);

/// A lease's row: its name, its last beat, its time in ms.
pub(crate) type LeaseRow = (String, Option<i64>, Option<i64>);

/// What a lightweight transaction carries out.
pub(crate) type Statement<'a> = (&'a Prepared, OwnedValues);

/// The session with its statements.
pub(crate) struct Tables {
    keyspace: Keyspace,
    read_revision: Prepared,
    read_entries: Prepared,
    list_entries: Prepared,
    read_changes: Prepared,
    read_lease: Prepared,
    list_leases: Prepared,
    begin: Prepared,
    advance: Prepared,
    put: Prepared,
    delete: Prepared,
    log: Prepared,
    new_lease: Prepared,
    beat: Prepared,
    lease_lives: Prepared,
    begin_to_end_lease: Prepared,
    begin_to_revoke_lease: Prepared,
    end_lease: Prepared,
    revoke_lease: Prepared,
}

const ENTRY: &str = "revision, change, key, value, created, modified, lease";
const READ_REVISION: &str = "SELECT DISTINCT slot, revision FROM @elastic_metadata WHERE slot = 0";
const LEASE_ROW: &str = "slot = 0 AND kind = 2 AND key = ?";

impl Tables {
    pub(crate) async fn connect(settings: &CassandraSettings) -> Result<Self, ConnectError> {
        let keyspace = Keyspace::connect(settings).await?;
        let prepare = |cql: String| {
            let keyspace = &keyspace;
            async move { keyspace.prepare(&cql).await }
        };
        let select = |columns: &str, condition: &str| {
            prepare(format!(
                "SELECT {columns} FROM @elastic_metadata WHERE slot = 0 AND {condition}"
            ))
        };
        let page = |columns: &str, condition: &str| {
            select(columns, &format!("{condition} LIMIT {PAGE_ROWS}"))
        };
        let insert = |columns: &str, values: &str| {
            prepare(format!("INSERT INTO @elastic_metadata (slot, {columns}) VALUES (0, {values}"))
        };
        let update = |values: &str| prepare(format!("UPDATE @elastic_metadata SET {values}"));
        let delete = |rows: &str| prepare(format!("DELETE FROM @elastic_metadata WHERE {rows}"));
        Ok(Self {
            read_revision: prepare(READ_REVISION.to_owned()).await?,
            read_entries: select(ENTRY, "kind = 0 AND key IN ?").await?,
            list_entries: page(ENTRY, "kind = 0 AND key >= ?").await?,
            read_changes: page(
                "key, name, value, created, modified, lease",
                "kind = 1 AND key > ?",
            )
            .await?,
            read_lease: select("key, beat, ttl_ms", "kind = 2 AND key = ?").await?,
            list_leases: page("key, beat, ttl_ms", "kind = 2 AND key > ?").await?,
            begin: insert("kind, key, revision", "0, '', 0) IF NOT EXISTS").await?,
            advance: update("revision = ?, change = ? WHERE slot = 0 IF revision = ?").await?,
            put: insert("kind, key, value, created, modified, lease", "0, ?, ?, ?, ?, ?)").await?,
            delete: delete("slot = 0 AND kind = 0 AND key = ?").await?,
            log: insert(
                "kind, key, name, value, created, modified, lease",
                &format!("1, ?, ?, ?, ?, ?, ?) USING TTL {CHANGES_TTL_S}"),
            )
            .await?,
            new_lease: insert("kind, key, beat, ttl_ms", "2, ?, 0, ?) IF NOT EXISTS").await?,
            beat: update(&format!("beat = ? WHERE {LEASE_ROW} IF ttl_ms > 0")).await?,
            lease_lives: update(&format!("value = 0x WHERE {LEASE_ROW} IF ttl_ms > 0")).await?,
            begin_to_end_lease: update(&format!("ttl_ms = 0 WHERE {LEASE_ROW} IF beat = ?"))
                .await?,
            begin_to_revoke_lease: update(&format!("ttl_ms = 0 WHERE {LEASE_ROW} IF EXISTS"))
                .await?,
            end_lease: delete(&format!("{LEASE_ROW} IF beat = ?")).await?,
            revoke_lease: delete(&format!("{LEASE_ROW} IF EXISTS")).await?,
            keyspace,
        })
    }

    /// Returns the partition's revision.
    pub(crate) async fn revision(&self) -> Result<u64, MetaError> {
        let rows = self.keyspace.rows::<(i8, Option<i64>)>(&self.read_revision, &()).await;
        let revision = rows.map_err(failed("read the revision"))?.first().and_then(|row| row.1);
        Ok(unsigned(revision))
    }

    /// Returns the entries of these keys, as far as they are there.
    pub(crate) async fn entries(&self, keys: Vec<String>) -> Result<Vec<EntryRow>, MetaError> {
        let what = format!("read {}", keys.join(", "));
        self.keyspace.rows(&self.read_entries, &(keys,)).await.map_err(failed(&what))
    }

    /// Returns entries in the order of their keys, [`PAGE_ROWS`] at most.
    pub(crate) async fn entries_from(&self, key: &str) -> Result<Vec<EntryRow>, MetaError> {
        self.keyspace.rows(&self.list_entries, &(key,)).await.map_err(failed("list all entries"))
    }

    /// Returns the changes behind that place, [`PAGE_ROWS`] at most.
    pub(crate) async fn changes_after(&self, place: &str) -> Result<Vec<ChangeRow>, MetaError> {
        self.keyspace.rows(&self.read_changes, &(place,)).await.map_err(failed("read changes"))
    }

    /// Returns a lease, if it lives.
    pub(crate) async fn lease(&self, lease: LeaseId) -> Result<Option<LeaseRow>, MetaError> {
        let found = self.keyspace.rows(&self.read_lease, &(lease_key(lease),)).await;
        Ok(found.map_err(failed("read a lease"))?.pop())
    }

    /// Returns leases in the order of their names, [`PAGE_ROWS`] at most.
    pub(crate) async fn leases_after(&self, key: &str) -> Result<Vec<LeaseRow>, MetaError> {
        self.keyspace.rows(&self.list_leases, &(key,)).await.map_err(failed("list leases"))
    }

    /// Carries out a transaction.
    pub(crate) async fn change(
        &self,
        what: &str,
        statements: Vec<Statement<'_>>,
    ) -> Result<quelea_cassandra_store::Change, MetaError> {
        self.keyspace.change(statements).await.map_err(failed(what))
    }

    /// Makes the first revision, unless there is one.
    pub(crate) fn begin(&self) -> Statement<'_> {
        (&self.begin, Box::new(()))
    }

    /// Makes the next revision, if none has come since this one.
    pub(crate) fn advance(&self, from: u64, change: Uuid) -> Statement<'_> {
        (&self.advance, Box::new((signed(from + 1), change, signed(from))))
    }

    pub(crate) fn put(&self, stored: &Stored) -> Statement<'_> {
        let Entry { key, value, created, modified } = &stored.entry;
        let values = (
            key.clone(),
            value.to_vec(),
            signed(created.0),
            signed(modified.0),
            stored.lease.map(|lease| signed(lease.0)),
        );
        (&self.put, Box::new(values))
    }

    pub(crate) fn delete(&self, key: &str) -> Statement<'_> {
        (&self.delete, Box::new((key.to_owned(),)))
    }

    /// Notes an entry's new state for those that watch.
    pub(crate) fn log_put(&self, place: String, stored: &Stored) -> Statement<'_> {
        let Entry { key, value, created, modified } = &stored.entry;
        let values = (
            place,
            key.clone(),
            Some(value.to_vec()),
            signed(created.0),
            signed(modified.0),
            stored.lease.map(|lease| signed(lease.0)),
        );
        (&self.log, Box::new(values))
    }

    /// Notes for those that watch that an entry is gone; one without a name is nobody's.
    pub(crate) fn log_gone(&self, place: String, key: &str, at: Revision) -> Statement<'_> {
        let at = signed(at.0);
        (&self.log, Box::new((place, key.to_owned(), None::<Vec<u8>>, at, at, None::<i64>)))
    }

    pub(crate) fn new_lease(&self, lease: LeaseId, ttl_ms: u64) -> Statement<'_> {
        (&self.new_lease, Box::new((lease_key(lease), signed(ttl_ms))))
    }

    /// Changes a lease's beat, if it lives.
    pub(crate) fn beat(&self, lease: LeaseId, beat: i64) -> Statement<'_> {
        (&self.beat, Box::new((beat, lease_key(lease))))
    }

    /// Checks that the lease lives, and changes nothing.
    pub(crate) fn lease_lives(&self, lease: LeaseId) -> Statement<'_> {
        (&self.lease_lives, Box::new((lease_key(lease),)))
    }

    /// Ends the life of a lease, if it still has this beat; its row stays.
    pub(crate) fn begin_to_end_lease(&self, lease: LeaseId, beat: i64) -> Statement<'_> {
        (&self.begin_to_end_lease, Box::new((lease_key(lease), beat)))
    }

    /// Ends the life of a lease, if there is one; its row stays.
    pub(crate) fn begin_to_revoke_lease(&self, lease: LeaseId) -> Statement<'_> {
        (&self.begin_to_revoke_lease, Box::new((lease_key(lease),)))
    }

    /// Ends a lease, if it still has this beat.
    pub(crate) fn end_lease(&self, lease: LeaseId, beat: i64) -> Statement<'_> {
        (&self.end_lease, Box::new((lease_key(lease), beat)))
    }

    /// Ends a lease, if it lives.
    pub(crate) fn revoke_lease(&self, lease: LeaseId) -> Statement<'_> {
        (&self.revoke_lease, Box::new((lease_key(lease),)))
    }
}

fn failed<E: Display>(what: &str) -> impl Fn(E) -> MetaError {
    move |fault| unavailable(what, fault)
}

fn lease_key(lease: LeaseId) -> String {
    format!("{:016x}", lease.0)
}

/// Returns the lease that the rows of entries have as this number.
pub(crate) fn lease_from(number: i64) -> LeaseId {
    LeaseId(number.max(0).unsigned_abs())
}

/// Returns the lease whose own row has this key.
pub(crate) fn lease_of(key: &str) -> Option<LeaseId> {
    u64::from_str_radix(key, 16).ok().map(LeaseId)
}

/// Converts a number of Cassandra's, which is signed; none of ours is negative.
pub(crate) fn unsigned(number: Option<i64>) -> u64 {
    number.unwrap_or_default().max(0).unsigned_abs()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
