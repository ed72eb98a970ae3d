//! What goes wrong, in the words of the directory.

use std::fmt::Display;

use quelea_elastic_directory::meta::MetaError;

use crate::limits::ANSWER_MAX;

/// As in `elastic.metadata`.
pub(crate) const NAME: &str = "cassandra";

pub(crate) fn unavailable(what: &str, cause: impl Display) -> MetaError {
    MetaError::Unavailable { store: NAME, what: what.to_owned(), cause: cause.to_string() }
}

/// Waits for what `asked` answers, within the time that it may take, and returns it.
pub(crate) async fn timed<T>(
    what: &str,
    asked: impl Future<Output = Result<T, MetaError>>,
) -> Result<T, MetaError> {
    let late = || unavailable(what, format!("no answer within {} s", ANSWER_MAX.as_secs()));
    tokio::time::timeout(ANSWER_MAX, asked).await.unwrap_or_else(|_| Err(late()))
}
