//! What is done again and again until it succeeds, unless it is refused for good.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::database::fault::RequestFailure;

/// Before what failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Repeats something until it succeeds, or is refused for good. `false`: the store is no more.
pub(super) async fn unless_refused<S, F: Future<Output = Result<(), RequestFailure>> + Send>(
    store: Weak<S>,
    attempt: impl Fn(Arc<S>) -> F + Send,
) -> Result<bool, RequestFailure> {
    loop {
        let Some(strong) = store.upgrade() else { return Ok(false) };
        match attempt(strong).await {
            Ok(()) => return Ok(true),
            Err(failure) if failure.lasting.is_some() => return Err(failure),
            Err(failure) => tracing::debug!(%failure, "a FIFO queue's request is repeated"),
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

    use super::*;

    fn failure(error: DbError) -> RequestFailure {
        let attempt = RequestAttemptError::DbError(error, "as it says".to_owned());
        RequestFailure::of(&ExecutionError::LastAttemptError(attempt))
    }

    #[test]
    fn what_passes_is_repeated_and_what_lasts_is_not() {
        let store = Arc::new(Mutex::new(vec![DbError::Invalid, DbError::Overloaded]));
        let attempt = |store: Arc<Mutex<Vec<DbError>>>| async move {
            store.lock().unwrap().pop().map_or(Ok(()), |error| Err(failure(error)))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let weak = || Arc::downgrade(&store);
        let refused = runtime.block_on(unless_refused(weak(), attempt));
        assert_eq!(refused, Err(failure(DbError::Invalid)));
        assert_eq!(runtime.block_on(unless_refused(weak(), attempt)), Ok(true));
        let weak = weak();
        drop(store);
        assert_eq!(runtime.block_on(unless_refused(weak, attempt)), Ok(false));
    }
}
