//! Lightweight transactions: a statement with a condition, of which Cassandra says whether it held.

use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use quelea_sqs_protocol::Fault;
use rustc_hash::FxHasher;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use crate::database::fault::{is_outcome_unknown, unavailable, unreadable};
use crate::database::{Database, driver};
use crate::limits::WAITING_MS_MAX;

/// Transactions of one table that are under way at once here, each of another partition.
const AT_ONCE: usize = 16;

/// How a lightweight transaction ended, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Carried out.
    Done,
    /// The condition did not hold: nothing was done.
    Refused,
    /// Nobody knows: it may be done, or be done yet.
    Unknown,
}

/// A change that was not made, as far as is known.
#[derive(Clone, Debug)]
pub(crate) struct Unmade {
    pub(crate) fault: Fault,
    /// It was sent, and nobody knows what became of it: it may be made, or be made yet.
    pub(crate) may_be_made: bool,
}

impl From<Fault> for Unmade {
    fn from(fault: Fault) -> Self {
        Self { fault, may_be_made: false }
    }
}

impl Unmade {
    /// Returns a change that may be made all the same.
    pub(crate) fn perhaps(fault: Fault) -> Self {
        Self { fault, may_be_made: true }
    }
}

/// Carries one out.
pub(crate) async fn change(
    database: &Database,
    statement: &PreparedStatement,
    values: driver::Values<'_>,
) -> Result<Change, Fault> {
    counted(database, outcome(driver::execute(&database.session, statement, values).await))
}

/// A statement of a transaction, and its values.
pub(crate) type Write<'a> = (&'a PreparedStatement, driver::Values<'a>);

/// Carries out statements of one partition: all of them if every condition holds, and none if one does not.
pub(crate) async fn change_all(database: &Database, writes: &[Write<'_>]) -> Result<Change, Fault> {
    counted(database, batch(&database.session, writes).await)
}

/// Carries out the same as [`change_all`], uncounted.
pub(crate) async fn batch(session: &Session, writes: &[Write<'_>]) -> Result<Change, Fault> {
    let mut batch = Batch::new(BatchType::Unlogged);
    for (statement, _) in writes {
        batch.append_statement((*statement).clone());
    }
    let values = writes.iter().map(|(_, values)| *values).collect();
    outcome(driver::execute_batch(session, &batch, values).await)
}

fn counted(database: &Database, change: Result<Change, Fault>) -> Result<Change, Fault> {
    if change == Ok(Change::Unknown) {
        database.count_unknown_outcome();
    }
    change
}

/// The locks of a table's partitions: of each one transaction at a time, since they would disturb each other.
#[derive(Default)]
pub(crate) struct PartitionLocks([Mutex<()>; AT_ONCE]);

impl PartitionLocks {
    /// Carries one out while it holds the lock of its partition.
    pub(crate) async fn change(
        &self,
        database: &Database,
        partition: &str,
        statement: &PreparedStatement,
        values: driver::Values<'_>,
    ) -> Result<Change, Fault> {
        let mut hasher = FxHasher::default();
        partition.hash(&mut hasher);
        let _lock = lock_in_time(&self.0[hasher.finish() as usize % AT_ONCE]).await?;
        change(database, statement, values).await
    }
}

/// Waits for the lock, if others have it not for too long.
pub(crate) async fn lock_in_time(lock: &Mutex<()>) -> Result<MutexGuard<'_, ()>, Fault> {
    let held = tokio::time::timeout(Duration::from_millis(WAITING_MS_MAX), lock.lock());
    held.await
        .map_err(|_| Fault::Unavailable("Cassandra takes too long for other changes".to_owned()))
}

/// Returns an identity that nobody else has: of a queue, of a generation, of a change, or a
/// revision.
pub(crate) fn fresh_id() -> Uuid {
    uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid()
}

/// Returns the fault of a change whose outcome stays unknown.
pub(crate) fn undecided() -> Fault {
    Fault::Unavailable("Cassandra does not say whether it was done".to_owned())
}

/// Returns what the answer to a change says of it.
fn outcome(answer: Result<QueryResult, ExecutionError>) -> Result<Change, Fault> {
    let result = match answer {
        Ok(result) => result,
        Err(error) if is_outcome_unknown(&error) => return Ok(Change::Unknown),
        Err(error) => return Err(unavailable(&error)),
    };
    let rows = result.into_rows_result().map_err(unreadable)?;
    // What was there follows only where it was not applied, so that the row has no fixed form.
    let row = rows.first_row::<Row>().map_err(unreadable)?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(true))) => Ok(Change::Done),
        Some(Some(CqlValue::Boolean(false))) => Ok(Change::Refused),
        other => Err(unreadable(format!("a conditional update answered {other:?}"))),
    }
}
