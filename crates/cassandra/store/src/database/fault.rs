//! What Cassandra's errors are to the service: a request that could not be carried out now. Nothing that was confirmed
//! is lost by it; what was asked for may have been done all the same.

use quelea_sqs_protocol::Fault;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// Cassandra did not do what it was asked for, or did not say so.
pub(crate) fn unavailable(error: &ExecutionError) -> Fault {
    let reason = match error {
        ExecutionError::RequestTimeout(_) => "it did not answer in time".to_owned(),
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => match error {
            DbError::Unavailable { required, alive, .. } => {
                format!("{required} replicas have to answer, and {alive} are there")
            }
            DbError::WriteTimeout { required, received, .. }
            | DbError::ReadTimeout { required, received, .. } => {
                format!("{required} replicas have to answer, and {received} did in time")
            }
            DbError::Overloaded => "it is overloaded".to_owned(),
            other => other.to_string(),
        },
        other => other.to_string(),
    };
    Fault::Unavailable(format!("Cassandra: {reason}"))
}

/// What Cassandra sent is not what was asked for.
pub(crate) fn unreadable(error: impl std::fmt::Display) -> Fault {
    Fault::Unavailable(format!("Cassandra's answer cannot be read: {error}"))
}

/// Whether a change may have been made all the same.
pub(crate) fn is_outcome_unknown(error: &ExecutionError) -> bool {
    !matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::Unavailable { .. }
                | DbError::Unauthorized
                | DbError::Invalid
                | DbError::SyntaxError
                | DbError::IsBootstrapping,
            _
        ))
    )
}
