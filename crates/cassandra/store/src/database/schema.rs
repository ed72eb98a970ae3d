//! The tables, and how a keyspace comes to have them: docs/cassandra/schema.md. Versions only ever add, or say how a table is
//! stored; a front-end of an earlier version goes on working beside a later one.
//!
//! Front-ends that start at once take turns by a lock, since Cassandra lets two nodes make one table with two identities.
//! The lock's own table has its identity from here, so that it is the same whoever makes it.

use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::unprepared::Statement;
use scylla::value::{CqlValue, Row};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::database::connect::Connected;
use crate::database::connect_error::ConnectError;
use crate::database::driver;
use crate::database::fault::RequestFailure;
use crate::database::preparing::in_keyspace;
use crate::database::settings::CassandraSettings;

/// The version that this Quelea needs.
pub(crate) const VERSION: i32 = VERSIONS.len() as i32;

/// The statements of each version, which may be carried out again; they name each table as `@table`.
const VERSIONS: [&[&str]; 6] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6];

/// From this version on front-ends read further shards of a second, which are levels of buckets.
pub(crate) const VERSION_OF_SHARDS: i32 = 6;

const VERSION_1: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS @queue (
        account text, name text, id uuid, generation uuid, attributes frozen<map<text, text>>,
        tags frozen<map<text, text>>, created_at bigint, modified_at bigint, purged_at bigint,
        revision bigint, change uuid, deleted_at bigint,
        PRIMARY KEY ((account), name))",
    "CREATE TABLE IF NOT EXISTS @message (
        generation uuid, shard smallint, start bigint, level tinyint, message uuid, body blob,
        attributes frozen<map<text, frozen<tuple<text, blob>>>>, sender text, trace_header text,
        group_id text, deduplication_id text, source frozen<tuple<text, text>>,
        earlier_receives int, lease_visible_at bigint, lease_written_at bigint, lease_start bigint,
        lease_level tinyint,
        PRIMARY KEY ((generation, shard, start, level), message))
        WITH gc_grace_seconds = 10800 AND compaction = {'class': 'TimeWindowCompactionStrategy',
            'compaction_window_unit': 'HOURS', 'compaction_window_size': 12}",
    "CREATE TABLE IF NOT EXISTS @entry (
        generation uuid, shard smallint, start bigint, level tinyint, visible_at bigint, message uuid,
        body_start bigint, body_level tinyint, bytes int, receive_count int, first_received_at bigint,
        written_at bigint,
        PRIMARY KEY ((generation, shard, start, level), visible_at, message))
        WITH gc_grace_seconds = 10800 AND compaction = {'class': 'UnifiedCompactionStrategy',
            'scaling_parameters': 'L4'}",
    "CREATE TABLE IF NOT EXISTS @bucket (
        generation uuid, shard smallint, start bigint, level tinyint,
        PRIMARY KEY ((generation, shard), start, level)) WITH gc_grace_seconds = 10800",
    "CREATE TABLE IF NOT EXISTS @low_water_mark (
        generation uuid, shard smallint, visible_at bigint,
        PRIMARY KEY ((generation, shard)))",
    "CREATE TABLE IF NOT EXISTS @move_task (
        queue uuid, handle uuid, state text, source frozen<tuple<text, text>>,
        destination frozen<tuple<text, text>>, per_second int, moved bigint, to_move bigint,
        failure text, started_at bigint,
        PRIMARY KEY ((queue), handle)) WITH CLUSTERING ORDER BY (handle DESC)",
    "CREATE TABLE IF NOT EXISTS @running_move_task (
        slot tinyint, queue uuid, handle uuid, holder uuid, held_until bigint,
        is_cancelled boolean, PRIMARY KEY ((slot), queue)) WITH gc_grace_seconds = 10800",
    "CREATE TABLE IF NOT EXISTS @account (
        slot tinyint, account text, created_at bigint, PRIMARY KEY ((slot), account))",
    "CREATE TABLE IF NOT EXISTS @user (
        slot tinyint, name text, password_hash text, tags frozen<list<text>>,
        PRIMARY KEY ((slot), name))",
    "CREATE TABLE IF NOT EXISTS @permission (
        slot tinyint, account text, user text, configure text, write text, read text,
        PRIMARY KEY ((slot), account, user))",
    "CREATE TABLE IF NOT EXISTS @access_key (
        slot tinyint, id text, account text, user text, secret text, is_enabled boolean,
        created_at bigint, PRIMARY KEY ((slot), id))",
];

/// Front-ends find each other, and own FIFO queues.
const VERSION_2: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS @fifo_owner (
        generation uuid PRIMARY KEY, epoch bigint, holder uuid, address text, held_until bigint,
        sealed frozen<map<bigint, bigint>>, sealed_to bigint, oldest_epoch bigint,
        oldest_first bigint)",
    "CREATE TABLE IF NOT EXISTS @fifo_segment (
        generation uuid, epoch bigint, first bigint, began_at bigint,
        PRIMARY KEY ((generation), epoch, first)) WITH gc_grace_seconds = 10800",
    "CREATE TABLE IF NOT EXISTS @fifo_message (
        generation uuid, epoch bigint, segment bigint, kind tinyint, number bigint,
        last bigint static, message uuid, bytes int, visible_at bigint, body blob,
        attributes frozen<map<text, frozen<tuple<text, blob>>>>, sender text, trace_header text,
        group_id text, deduplication_id text, origin frozen<tuple<text, text, int>>,
        deduplication_key blob,
        PRIMARY KEY ((generation, epoch, segment), kind, number))
        WITH gc_grace_seconds = 10800 AND compaction = {'class': 'UnifiedCompactionStrategy',
            'scaling_parameters': 'L4'}",
    "CREATE TABLE IF NOT EXISTS @cluster_key (slot tinyint PRIMARY KEY, secret blob)",
    "CREATE TABLE IF NOT EXISTS @front_end (
        slot tinyint, id uuid, address text, beat bigint, PRIMARY KEY ((slot), id))
        WITH gc_grace_seconds = 3600",
    "CREATE TABLE IF NOT EXISTS @cluster (name text PRIMARY KEY, value blob)",
];

/// Fair queues, and what directories of elastic queues agree on.
const VERSION_3: &[&str] = &[
    "ALTER TABLE @entry ADD IF NOT EXISTS message_group bigint",
    "ALTER TABLE @fifo_owner ADD IF NOT EXISTS received blob",
    "CREATE TABLE IF NOT EXISTS @elastic_metadata (
        slot tinyint, kind tinyint, key text, revision bigint static, change uuid static, name text,
        value blob, created bigint, modified bigint, lease bigint, ttl_ms bigint, beat bigint,
        PRIMARY KEY ((slot), kind, key)) WITH gc_grace_seconds = 10800",
];

/// Changes of accounts, users, permissions and keys name the revision that they were made for.
const VERSION_4: &[&str] = &[
    "ALTER TABLE @account ADD IF NOT EXISTS (revision uuid static, change uuid, maker text)",
    "ALTER TABLE @user ADD IF NOT EXISTS (revision uuid static, change uuid)",
    "ALTER TABLE @permission ADD IF NOT EXISTS (revision uuid static, change uuid)",
    "ALTER TABLE @access_key ADD IF NOT EXISTS (revision uuid static, change uuid)",
];

/// What is left of deleted queues goes after hours and not after days: whoever lists an account's queues reads across it.
const VERSION_5: &[&str] = &["ALTER TABLE @queue WITH gc_grace_seconds = 10800
        AND compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4'}"];

/// Front-ends say which version they know.
const VERSION_6: &[&str] = &["ALTER TABLE @front_end ADD IF NOT EXISTS version int"];

/// How long a front-end that died may keep the others from going on.
const LOCK_TTL_S: i32 = 60;

/// How often the lock is renewed while tables are made: twice, should one fail.
const LOCK_RENEWED_EVERY: Duration = Duration::from_secs(15);
/// How long a renewal may take, and the release.
const LOCK_RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for the lock, and between two looks at it.
const LOCK_ATTEMPTS: usize = 600;
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// For how long a node may not know the keyspace or a table that another one has just made: one that was cut off asks the others
/// again after a minute. Less than others wait for the lock meanwhile.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(90);

/// How long to wait until all nodes have a change. One that was cut off asks the others again after a minute
/// (`cassandra.migration_delay_ms`).
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(100);
const AGREEMENT_PAUSE: Duration = Duration::from_millis(100);

/// Makes the keyspace and its tables, as far as they are missing.
pub(crate) async fn bring_up_to_date(
    connected: &Connected,
    settings: &CassandraSettings,
) -> Result<(), ConnectError> {
    let migration = Migration { connected, settings, holder: Uuid::from_u128(fastrand::u128(..)) };
    migration.make_keyspace().await?;
    migration.make_lock_table().await?;
    if migration.version().await? < VERSION {
        migration.lock().await?;
        let done = tokio::select! {
            done = migration.migrate() => done,
            lost = migration.keep_lock() => Err(lost),
        };
        migration.unlock().await;
        done?;
    }
    let session = &connected.session;
    session.refresh_metadata().await.map_err(|error| ConnectError::NotYet {
        what: "read which tables there are".to_owned(),
        reason: error.to_string(),
    })
}

struct Migration<'a> {
    connected: &'a Connected,
    settings: &'a CassandraSettings,
    holder: Uuid,
}

impl Migration<'_> {
    fn session(&self) -> &Session {
        &self.connected.session
    }

    async fn make_keyspace(&self) -> Result<(), ConnectError> {
        let keyspace = &self.settings.keyspace;
        let query = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
        let found = self.query("read the schema", query, (keyspace,)).await?;
        if !found.is_empty() {
            return Ok(());
        }
        let Connected { datacenter, nodes_in_datacenter, .. } = self.connected;
        let replication = self.settings.replication;
        if replication > *nodes_in_datacenter {
            return Err(ConnectError::TooFewNodes {
                replication,
                datacenter: datacenter.clone(),
                nodes: *nodes_in_datacenter,
            });
        }
        let datacenter = datacenter.replace('\'', "''");
        let replication =
            format!("{{'class': 'NetworkTopologyStrategy', '{datacenter}': {replication}}}");
        let query =
            format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}");
        self.define(&format!("create the keyspace {keyspace}"), &query).await
    }

    async fn make_lock_table(&self) -> Result<(), ConnectError> {
        let keyspace = &self.settings.keyspace;
        let query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'schema_version'";
        if !self.query("read the schema", query, (keyspace,)).await?.is_empty() {
            return Ok(());
        }
        let id = lock_table_id(keyspace);
        let query = format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.schema_version (
                name text PRIMARY KEY, version int, holder uuid) WITH id = '{id}'"
        );
        self.define("create tables", &query).await
    }

    /// Returns the version that the keyspace has; 0: none.
    async fn version(&self) -> Result<i32, ConnectError> {
        let keyspace = &self.settings.keyspace;
        let query = format!("SELECT version FROM {keyspace}.schema_version WHERE name = 'version'");
        let rows = self
            .rows("read the schema's version", self.execute_patiently(&query, is_behind).await)?;
        let version = match rows.first().and_then(|row| row.columns.first()) {
            Some(Some(CqlValue::Int(version))) => *version,
            _ => 0,
        };
        if version > VERSION {
            return Err(ConnectError::SchemaTooNew { found: version, known: VERSION });
        }
        Ok(version)
    }

    async fn migrate(&self) -> Result<(), ConnectError> {
        // Somebody may have done it while we waited for the lock.
        let from = self.version().await?;
        for (statements, version) in VERSIONS.iter().zip(1..).skip(from.max(0) as usize) {
            for statement in *statements {
                let in_keyspace = in_keyspace(statement, &self.settings.keyspace);
                self.define("create tables", &in_keyspace).await?;
            }
            let query = format!(
                "UPDATE {}.schema_version SET version = {version} WHERE name = 'version'",
                self.settings.keyspace
            );
            self.query("write the schema's version", &query, ()).await?;
            tracing::info!(version, keyspace = %self.settings.keyspace, "the schema was brought up to date");
        }
        Ok(())
    }

    async fn lock(&self) -> Result<(), ConnectError> {
        let insert = format!(
            "INSERT INTO {}.schema_version (name, holder) VALUES ('lock', ?) IF NOT EXISTS USING TTL {LOCK_TTL_S}",
            self.settings.keyspace
        );
        let look = format!(
            "SELECT holder FROM {}.schema_version WHERE name = 'lock'",
            self.settings.keyspace
        );
        let mut look = Statement::new(look);
        look.set_consistency(Consistency::LocalSerial);
        for _ in 0..LOCK_ATTEMPTS {
            // Its outcome may be unknown: two front-ends disturb each other, and then a look says who has it.
            match driver::query(self.session(), insert.as_str(), &(self.holder,)).await {
                Err(error) if is_unauthorized(&error) => {
                    return Err(self.no_right("write to tables", &error));
                }
                Ok(_) | Err(_) => {}
            }
            if let Ok(result) = driver::query(self.session(), look.clone(), &()).await
                && let Ok(rows) = result.into_rows_result()
                && let Ok(Some((holder,))) = rows.maybe_first_row::<(Option<Uuid>,)>()
                && holder == Some(self.holder)
            {
                return Ok(());
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        let reason = "another front-end holds the lock".to_owned();
        Err(ConnectError::Schema { version: VERSION, reason })
    }

    /// Renews the lock as long as it is held; returns when it is not any more.
    async fn keep_lock(&self) -> ConnectError {
        let query = format!(
            "UPDATE {}.schema_version USING TTL {LOCK_TTL_S} SET holder = ? WHERE name = 'lock' IF holder = ?",
            self.settings.keyspace
        );
        let lost =
            |reason: &str| ConnectError::Schema { version: VERSION, reason: reason.to_owned() };
        let lock_ttl = Duration::from_secs(LOCK_TTL_S as u64);
        let mut held_since = Instant::now();
        loop {
            tokio::time::sleep(LOCK_RENEWED_EVERY).await;
            let began = Instant::now();
            let values = (self.holder, self.holder);
            let renewing = self.query("write to tables", &query, values);
            let Ok(renewed) = tokio::time::timeout(LOCK_RENEWAL_TIMEOUT, renewing).await else {
                if held_since.elapsed() + LOCK_RENEWED_EVERY + LOCK_RENEWAL_TIMEOUT >= lock_ttl {
                    return lost("the lock could not be renewed in time");
                }
                continue;
            };
            match renewed {
                Ok(rows) if !is_applied(&rows) => {
                    return lost("another front-end has taken the lock");
                }
                Ok(_) => held_since = began,
                // Its outcome is not known.
                Err(error) => {
                    tracing::debug!(%error, "the schema's lock was not renewed");
                    if held_since.elapsed() + LOCK_RENEWED_EVERY + LOCK_RENEWAL_TIMEOUT >= lock_ttl
                    {
                        return lost("the lock could not be renewed in time");
                    }
                }
            }
        }
    }

    /// Releases the lock. One that stays held ends by itself, so that it is no reason not to start; others wait for that long.
    async fn unlock(&self) {
        let query = format!(
            "DELETE FROM {}.schema_version WHERE name = 'lock' IF holder = ?",
            self.settings.keyspace
        );
        let release = async {
            // Its outcome may be unknown: two front-ends disturb each other.
            while let Err(error) = self.query("write to tables", &query, (self.holder,)).await {
                tracing::debug!(%error, "the schema's lock was not released");
                tokio::time::sleep(LOCK_PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(LOCK_RENEWAL_TIMEOUT, release).await;
    }

    /// Changes the schema, and waits until all nodes have it.
    async fn define(&self, what: &str, query: &str) -> Result<(), ConnectError> {
        self.rows(what, self.execute_patiently(query, is_invalid).await)?;
        let agreed = async {
            while !matches!(self.session().check_schema_agreement().await, Ok(Some(_))) {
                tokio::time::sleep(AGREEMENT_PAUSE).await;
            }
        };
        let late = |_| ConnectError::Schema {
            version: VERSION,
            reason: format!(
                "the nodes did not agree on it within {} s",
                AGREEMENT_TIMEOUT.as_secs()
            ),
        };
        tokio::time::timeout(AGREEMENT_TIMEOUT, agreed).await.map_err(late)
    }

    async fn query(
        &self,
        what: &str,
        query: &str,
        values: impl SerializeRow + Sync,
    ) -> Result<Vec<Row>, ConnectError> {
        let result = self.execute(query, values).await;
        // Not so what `define` asks for: it may have been made, at a node that the others do not hear, and whoever makes it again
        // must not be in a hurry.
        if let Err(error) = &result
            && let RequestFailure { reason, lasting: None } = RequestFailure::of(error)
        {
            return Err(ConnectError::NotYet { what: what.to_owned(), reason });
        }
        self.rows(what, result)
    }

    async fn execute(
        &self,
        query: &str,
        values: impl SerializeRow + Sync,
    ) -> Result<QueryResult, ExecutionError> {
        let mut statement = Statement::new(query);
        statement.set_request_timeout(Some(AGREEMENT_TIMEOUT));
        driver::query(self.session(), statement, &values).await
    }

    /// Carries out a statement again while it fails so. Another front-end may be making the keyspace and its tables just now: a
    /// node lists a table before it serves it, serves it before it knows it by its number, and asks others that have neither.
    async fn execute_patiently(
        &self,
        query: &str,
        is_passing: fn(&ExecutionError) -> bool,
    ) -> Result<QueryResult, ExecutionError> {
        let until = Instant::now() + CATCH_UP_TIMEOUT;
        let mut is_known = false;
        loop {
            match self.execute(query, ()).await {
                Err(error) if is_passing(&error) && Instant::now() < until => {
                    if !std::mem::replace(&mut is_known, true) {
                        tracing::info!(%error, "a node of Cassandra is behind with the schema");
                    }
                }
                result => return result,
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    fn rows(
        &self,
        what: &str,
        result: Result<QueryResult, ExecutionError>,
    ) -> Result<Vec<Row>, ConnectError> {
        let failed = |error: String| ConnectError::Schema {
            version: VERSION,
            reason: format!("{what}: {error}"),
        };
        let result = match result {
            Ok(result) => result,
            Err(error) if is_unauthorized(&error) => return Err(self.no_right(what, &error)),
            Err(error) => return Err(failed(RequestFailure::of(&error).to_string())),
        };
        if !result.is_rows() {
            return Ok(Vec::new());
        }
        let rows = result.into_rows_result().map_err(|error| failed(error.to_string()))?;
        let rows = rows.rows::<Row>().map_err(|error| failed(error.to_string()))?;
        rows.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))
    }

    fn no_right(&self, what: &str, error: &ExecutionError) -> ConnectError {
        let user = self.settings.user_in_words();
        ConnectError::NoRight { user, what: what.to_owned(), reason: error.to_string() }
    }
}

/// Returns whether a conditional statement was carried out.
fn is_applied(rows: &[Row]) -> bool {
    let first = rows.first().and_then(|row| row.columns.first());
    matches!(first, Some(Some(CqlValue::Boolean(true))))
}

fn is_unauthorized(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Unauthorized, _))
    )
}

fn is_invalid(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Invalid, _))
    )
}

/// Returns whether a read failed in a way that passes when all nodes have the table. A change of
/// the schema that failed by a node's own fault may have been carried out, and is not made again:
/// two nodes would make one table with two identities.
fn is_behind(error: &ExecutionError) -> bool {
    use DbError::{Invalid, ReadFailure, ServerError};
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            Invalid | ServerError | ReadFailure { .. },
            _
        ))
    )
}

/// Returns the identity of a keyspace's table `schema_version`: the same whoever makes it.
fn lock_table_id(keyspace: &str) -> Uuid {
    let digest = Sha256::digest(keyspace.as_bytes());
    let mut bytes: [u8; 16] = std::array::from_fn(|at| digest[at]);
    // Cassandra wants a UUID of version 1.
    bytes[6] = bytes[6] & 0x0f | 0x10;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_different_keyspaces_have_different_identities() {
        let names = ["quelea", "quelea_2", "quelea_1", "a", "b", "ab", "ba"];
        let ids: std::collections::BTreeSet<Uuid> =
            names.iter().map(|name| lock_table_id(name)).collect();
        assert_eq!(ids.len(), names.len());
        assert_eq!(lock_table_id("quelea"), lock_table_id("quelea"));
        assert_eq!(lock_table_id("quelea").get_version_num(), 1);
    }

    #[test]
    fn the_page_has_every_table() {
        let words =
            |text: &str| text.replace('@', "").split_whitespace().collect::<Vec<_>>().join(" ");
        let page = words(include_str!("../../../../../docs/cassandra/schema.md"));
        for statement in VERSIONS.iter().flat_map(|version| *version) {
            assert!(
                page.contains(&words(statement)),
                "docs/cassandra/schema.md has not: {statement}"
            );
        }
    }

    #[test]
    fn a_change_of_the_schema_is_made_again_only_where_it_was_refused() {
        let error = |error| {
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()))
        };
        let replica_failed = DbError::ReadFailure {
            consistency: Consistency::LocalQuorum,
            received: 1,
            required: 2,
            numfailures: 1,
            data_present: true,
        };
        for (one, is_read_again, is_made_again) in [
            (DbError::Invalid, true, true),
            (DbError::ServerError, true, false),
            (replica_failed, true, false),
            (DbError::Unauthorized, false, false),
            (DbError::ConfigError, false, false),
            (DbError::SyntaxError, false, false),
        ] {
            let error = error(one);
            assert_eq!((is_behind(&error), is_invalid(&error)), (is_read_again, is_made_again));
        }
    }

    #[test]
    fn every_statement_may_be_carried_out_again() {
        for text in VERSIONS.iter().flat_map(|version| *version) {
            let says_how_it_is_stored = text.starts_with("ALTER TABLE ") && text.contains(" WITH ");
            assert!(text.contains("IF NOT EXISTS ") || says_how_it_is_stored, "{text}");
        }
    }
}
