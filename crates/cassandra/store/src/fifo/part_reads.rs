//! What an owner reads of its partitions before it serves, and whenever its window has room: each part again until it is
//! read, so that one that fails does not have the others read again.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use quelea_sqs_protocol::Fault;
use tokio::sync::Semaphore;

/// Reads of partitions of one queue that are under way at once.
pub(super) const READS_AT_ONCE: usize = 8;

/// Those of all queues of a front-end.
pub(super) const ALL_READS_AT_ONCE: usize = 64;

/// Before what failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Reads something of each part, in their order. `None`: the store is no more.
pub(super) async fn read_each<S, P, T, F>(
    store: &Weak<S>,
    permits: &Semaphore,
    parts: Vec<P>,
    read: impl Fn(Arc<S>, P) -> F,
) -> Option<Vec<T>>
where
    P: Copy,
    F: Future<Output = Result<T, Fault>>,
{
    let read = &read;
    let one = |part: P| async move {
        loop {
            let permit = permits.acquire().await.ok()?;
            let outcome = read(store.upgrade()?, part).await;
            drop(permit);
            match outcome {
                Ok(found) => return Some(found),
                Err(fault) => tracing::debug!(%fault, "a read of a FIFO queue is repeated"),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    };
    let reads: Vec<_> = parts.into_iter().map(one).collect();
    let found: Vec<Option<T>> = stream::iter(reads).buffered(READS_AT_ONCE).collect().await;
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

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
                return Err(Fault::Unavailable("late".to_owned()));
            }
            Ok(10 * part)
        };
        let weak = Arc::downgrade(&store);
        let found = run(read_each(&weak, &permits, vec![5, 7, 9], read));
        assert_eq!(found, Some(vec![50, 70, 90]));
        assert_eq!(*store.lock().unwrap(), [5, 7, 9, 7]);
        assert_eq!(permits.available_permits(), 2);
        drop(store);
        assert_eq!(run(read_each(&weak, &permits, vec![5], read)), None);
    }
}
