//! Lightweight transactions: a statement with a condition, of which Cassandra says whether it held.

use quelea_sqs_protocol::Fault;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};

use crate::database::driver;
use crate::database::fault::{is_outcome_unknown, unavailable, unreadable};

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

/// Carries one out.
pub(crate) async fn change(
    session: &Session,
    statement: &PreparedStatement,
    values: driver::Values<'_>,
) -> Result<Change, Fault> {
    outcome(driver::execute(session, statement, values).await)
}

/// What the answer to one says.
pub(crate) fn outcome(answer: Result<QueryResult, ExecutionError>) -> Result<Change, Fault> {
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
