//! What an owner reads of its partitions before it serves, and whenever its window has room: each part again until it is
//! read, so that one that fails does not have the others read again, or until it is refused for good.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use quelea_sqs_protocol::Fault;
use tokio::sync::Semaphore;

use crate::database::fault::RequestFailure;

/// Reads of partitions of one queue that are under way at once.
pub(super) const READS_AT_ONCE: usize = 8;

/// Those of all queues of a front-end.
pub(super) const ALL_READS_AT_ONCE: usize = 64;

/// Before what failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Why nothing was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The store is no more.
    Stopped,
    /// However often it were repeated.
    Refused(Fault),
}

/// Reads something of each part, in their order.
///
/// # Errors
/// [`Unread`].
pub(super) async fn read_each<S, P, T, F>(
    store: &Weak<S>,
    permits: &Semaphore,
    parts: Vec<P>,
    read: impl Fn(Arc<S>, P) -> F,
) -> Result<Vec<T>, Unread>
where
    P: Copy,
    F: Future<Output = Result<T, RequestFailure>>,
{
    let read = &read;
    let one = |part: P| async move {
        loop {
            let permit = permits.acquire().await.map_err(|_| Unread::Stopped)?;
            let outcome = read(store.upgrade().ok_or(Unread::Stopped)?, part).await;
            drop(permit);
            match outcome {
                Ok(found) => return Ok(found),
                Err(failure) if failure.lasting.is_some() => {
                    return Err(Unread::Refused(failure.into()));
                }
                Err(failure) => tracing::debug!(%failure, "a read of a FIFO queue is repeated"),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    };
    let reads: Vec<_> = parts.into_iter().map(one).collect();
    let found: Vec<Result<T, Unread>> = stream::iter(reads).buffered(READS_AT_ONCE).collect().await;
    found.into_iter().collect()
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

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn only_what_failed_is_read_again() {
        let store = Arc::new(Mutex::new(Vec::new()));
        let permits = Semaphore::new(2);
        let read = |store: Arc<Mutex<Vec<u64>>>, part: u64| async move {
            let mut asked = store.lock().unwrap();
            asked.push(part);
            let is_first = asked.iter().filter(|one| **one == part).count() == 1;
            if part == 7 && is_first {
                return Err(failure(DbError::Overloaded));
            }
            Ok(10 * part)
        };
        let weak = Arc::downgrade(&store);
        let found = run(read_each(&weak, &permits, vec![5, 7, 9], read));
        assert_eq!(found, Ok(vec![50, 70, 90]));
        assert_eq!(*store.lock().unwrap(), [5, 7, 9, 7]);
        assert_eq!(permits.available_permits(), 2);
        drop(store);
        assert_eq!(run(read_each(&weak, &permits, vec![5], read)), Err(Unread::Stopped));
    }

    #[test]
    fn what_is_refused_for_good_is_not_read_again() {
        let store = Arc::new(());
        let read = |_: Arc<()>, part: u64| async move {
            if part == 7 { Err(failure(DbError::Unauthorized)) } else { Ok(part) }
        };
        let found = run(read_each(&Arc::downgrade(&store), &Semaphore::new(2), vec![5, 7], read));
        assert_eq!(found, Err(Unread::Refused(failure(DbError::Unauthorized).into())));
    }
}
