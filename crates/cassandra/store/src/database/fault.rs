//! What Cassandra's errors are to the service: a request that could not be carried out now. Nothing that was confirmed
//! is lost by it; what was asked for may have been done all the same.

use quelea_sqs_protocol::Fault;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// A request that failed, and whether it would fail again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestFailure {
    pub(crate) reason: String,
    pub(crate) lasting: Option<Lasting>,
}

/// Why a request fails however often it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Cassandra does not take what is in it: a guardrail, or a mutation that is too large.
    Refused,
    /// It is not permitted, or not understood, whatever is in it.
    Broken,
}

impl RequestFailure {
    pub(crate) fn of(error: &ExecutionError) -> Self {
        Self { reason: in_words(error), lasting: lasting(error) }
    }

    /// Returns the failure of a request whose answer is not what was asked for. The same request
    /// would get the same.
    pub(crate) fn unreadable(error: impl std::fmt::Display) -> Self {
        let reason = format!("its answer cannot be read: {error}");
        Self { reason, lasting: Some(Lasting::Broken) }
    }

    /// Returns what the failure is to whoever asked for what the request was to store: invalid
    /// where Cassandra names a size, which is the message's; else unavailable, since a disk that is
    /// full, or a table that a node does not know yet, has nothing to do with it.
    pub(crate) fn refusal(self) -> Fault {
        match self.is_of_a_size() {
            true => Fault::Invalid(format!("Cassandra refuses it: {}", self.reason)),
            false => self.into(),
        }
    }

    /// Returns whether it is refused since something of it is too large.
    pub(crate) fn is_of_a_size(&self) -> bool {
        let names_a_size = ["size", "large"].iter().any(|word| self.reason.contains(word));
        self.lasting == Some(Lasting::Refused) && names_a_size
    }
}

impl From<RequestFailure> for Fault {
    fn from(failure: RequestFailure) -> Self {
        Self::Unavailable(format!("Cassandra: {}", failure.reason))
    }
}

impl std::fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Returns the fault that says that Cassandra did not do what it was asked for, or did not say so.
pub(crate) fn unavailable(error: &ExecutionError) -> Fault {
    RequestFailure::of(error).into()
}

fn in_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::RequestTimeout(_) => "it did not answer in time".to_owned(),
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, said)) => {
            match error {
                DbError::Invalid | DbError::Unauthorized | DbError::SyntaxError => said.clone(),
                DbError::Unavailable { required, alive, .. } => {
                    format!("{required} replicas have to answer, and {alive} are there")
                }
                DbError::WriteTimeout { required, received, .. }
                | DbError::ReadTimeout { required, received, .. } => {
                    format!("{required} replicas have to answer, and {received} did in time")
                }
                DbError::Overloaded => "it is overloaded".to_owned(),
                other => other.to_string(),
            }
        }
        other => other.to_string(),
    }
}

/// Returns why a request fails however often it is repeated, if it does.
fn lasting(error: &ExecutionError) -> Option<Lasting> {
    match error {
        ExecutionError::BadQuery(_) => Some(Lasting::Refused),
        ExecutionError::LastAttemptError(attempt) => lasting_attempt(attempt),
        _ => None,
    }
}

/// Returns why an attempt at a request fails however often it is repeated, if it does.
pub(crate) fn lasting_attempt(attempt: &RequestAttemptError) -> Option<Lasting> {
    use RequestAttemptError as Attempt;
    match attempt {
        Attempt::SerializationError(_)
        | Attempt::CqlRequestSerialization(_)
        | Attempt::DbError(DbError::Invalid, _) => Some(Lasting::Refused),
        Attempt::DbError(
            DbError::Unauthorized | DbError::SyntaxError | DbError::ConfigError,
            _,
        )
        | Attempt::RepreparedIdChanged { .. }
        | Attempt::RepreparedIdMissingInBatch => Some(Lasting::Broken),
        _ => None,
    }
}

/// Returns the fault that says that what Cassandra sent is not what was asked for.
pub(crate) fn unreadable(error: impl std::fmt::Display) -> Fault {
    Fault::Unavailable(format!("Cassandra's answer cannot be read: {error}"))
}

/// Returns whether a change may have been made all the same.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: DbError) -> RequestFailure {
        said(error, "the value has size 2 MiB, this exceeds the failure threshold")
    }

    fn said(error: DbError, words: &str) -> RequestFailure {
        let attempt = RequestAttemptError::DbError(error, words.to_owned());
        RequestFailure::of(&ExecutionError::LastAttemptError(attempt))
    }

    #[test]
    fn what_passes_is_told_from_what_lasts() {
        let timeout = failure(DbError::Overloaded);
        assert_eq!(timeout.lasting, None);
        assert!(matches!(timeout.refusal(), Fault::Unavailable(_)));
        let timeout = ExecutionError::RequestTimeout(std::time::Duration::from_secs(5));
        assert_eq!(RequestFailure::of(&timeout).lasting, None);

        let refused = failure(DbError::Invalid);
        assert_eq!(refused.lasting, Some(Lasting::Refused));
        assert_eq!(
            refused.clone().refusal(),
            Fault::Invalid(
                "Cassandra refuses it: the value has size 2 MiB, this exceeds the failure threshold"
                    .to_owned()
            )
        );
        assert!(matches!(Fault::from(refused), Fault::Unavailable(_)));
        let full = said(DbError::Invalid, "disk usage exceeds failure threshold");
        assert_eq!(full.lasting, Some(Lasting::Refused));
        assert!(matches!(full.refusal(), Fault::Unavailable(_)), "it is not the message's");
        let denied = failure(DbError::Unauthorized);
        assert_eq!(denied.lasting, Some(Lasting::Broken));
        assert!(matches!(denied.refusal(), Fault::Unavailable(_)), "the client can do nothing");
    }
}
