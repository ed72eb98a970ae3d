//! A dead letter's way: it is sent once, and deleted where it was until that succeeds.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quelea_sqs_protocol::Fault;

use crate::standard::send::stopped;

/// Before a deletion that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Sends a message, and when it is there deletes it here, again and again until that succeeds: whoever sent it once more would
/// have it there twice.
pub(super) async fn send_then_delete<S, F: Future<Output = Result<(), Fault>>>(
    store: Weak<S>,
    send: impl Future<Output = Result<(), Fault>>,
    delete: impl Fn(Arc<S>) -> F,
) -> Result<(), Fault> {
    send.await?;
    until_deleted(store, delete).await
}

/// Deletes what is elsewhere, again and again until that succeeds.
pub(super) async fn until_deleted<S, F: Future<Output = Result<(), Fault>>>(
    store: Weak<S>,
    delete: impl Fn(Arc<S>) -> F,
) -> Result<(), Fault> {
    loop {
        let deleted = delete(store.upgrade().ok_or_else(stopped)?).await;
        let Err(fault) = deleted else { return Ok(()) };
        tracing::debug!(%fault, "the deletion of a message that was moved is repeated");
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_is_sent_is_not_sent_again_for_its_deletion() {
        let store = Arc::new(Mutex::new(Vec::new()));
        let sender = store.clone();
        let send = async move {
            sender.lock().unwrap().push("send");
            Ok(())
        };
        let delete = |store: Arc<Mutex<Vec<&'static str>>>| async move {
            let mut done = store.lock().unwrap();
            done.push("delete");
            match done.len() {
                2 => Err(Fault::Unavailable("late".to_owned())),
                _ => Ok(()),
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let moved = send_then_delete(Arc::downgrade(&store), send, delete);
        assert!(runtime.block_on(moved).is_ok());
        assert_eq!(*store.lock().unwrap(), ["send", "delete", "delete"]);
    }
}
