//! The calls of the driver, each in one place and one box. Its code is long, and is compiled anew for each type of values
//! that it is called with and for each crate that awaits it.

use futures_util::future::BoxFuture;
use quelea_sqs_protocol::Fault;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::serialize::row::SerializeRow;
use scylla::statement::Statement;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;

use crate::database::fault::{RequestFailure, unavailable, unreadable};

/// The values of a row or of a condition.
pub type Values<'a> = &'a (dyn SerializeRow + Sync);

/// The same, of whatever type.
pub type OwnedValues = Box<dyn SerializeRow + Send + Sync>;

/// An answer that is on its way.
pub(crate) type Answer<'a> = BoxFuture<'a, Result<QueryResult, ExecutionError>>;

/// Carries out a prepared statement; the answer is one page.
pub(crate) fn execute<'a>(
    session: &'a Session,
    statement: &'a PreparedStatement,
    values: Values<'a>,
) -> Answer<'a> {
    Box::pin(session.execute_unpaged(statement, values))
}

/// Carries out a statement that reads, and returns the rows of its answer, which is one page.
pub(crate) async fn select(
    session: &Session,
    statement: &PreparedStatement,
    values: Values<'_>,
) -> Result<QueryRowsResult, Fault> {
    let result = execute(session, statement, values).await;
    result.map_err(|error| unavailable(&error))?.into_rows_result().map_err(unreadable)
}

/// Reads the same as [`select`], and says what failed of it.
pub(crate) async fn try_select(
    session: &Session,
    statement: &PreparedStatement,
    values: Values<'_>,
) -> Result<QueryRowsResult, RequestFailure> {
    let result = execute(session, statement, values).await;
    let result = result.map_err(|error| RequestFailure::of(&error))?;
    result.into_rows_result().map_err(RequestFailure::unreadable)
}

/// Carries out a statement that answers nothing, and says what failed of it.
pub(crate) async fn try_write(
    session: &Session,
    statement: &PreparedStatement,
    values: Values<'_>,
) -> Result<(), RequestFailure> {
    let result = execute(session, statement, values).await;
    result.map(drop).map_err(|error| RequestFailure::of(&error))
}

/// Carries out a statement that answers nothing.
pub(crate) async fn write(
    session: &Session,
    statement: &PreparedStatement,
    values: Values<'_>,
) -> Result<(), Fault> {
    try_write(session, statement, values).await.map_err(Into::into)
}

/// Carries out a batch, with the values of each of its statements.
pub(crate) fn execute_batch<'a>(
    session: &'a Session,
    batch: &'a Batch,
    values: Vec<Values<'a>>,
) -> Answer<'a> {
    Box::pin(session.batch(batch, values))
}

/// Carries out a statement that is needed too seldom to be prepared.
pub(crate) fn query<'a>(
    session: &'a Session,
    statement: impl Into<Statement>,
    values: Values<'a>,
) -> Answer<'a> {
    query_once(session, statement.into(), values)
}

fn query_once<'a>(session: &'a Session, statement: Statement, values: Values<'a>) -> Answer<'a> {
    Box::pin(session.query_unpaged(statement, values))
}
