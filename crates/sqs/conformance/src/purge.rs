//! Purging a queue.

use std::time::{Duration, Instant};

use quelea_sqs_protocol::{Fault, NewMessage, Queues};

use crate::suite::{HIDDEN_MS, Suite, TRIES, fifo_message, message};

pub(crate) async fn a_purge_takes_all_that_was_sent_before<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["visible", "taken"]).await;
    let delayed = NewMessage { delay_ms: Some(500), ..message("delayed") };
    suite.send(&queue, vec![delayed]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    suite.receive_one(&queue, 500).await;
    suite.store.purge(&queue).await.unwrap();
    suite.expect_nothing(&queue).await;
    // A receipt of before brings nothing back, whatever it is said to be good for.
    suite.change_visibility(&queue, &taken.delivery, 0).await;
    suite.send_bodies(&queue, &["after"]).await;
    assert_eq!(suite.receive_one(&queue, 1_500).await.body, "after");
    // By now all that was hidden before would be visible again.
    assert_eq!(suite.receive_bodies(&queue, 1).await, ["after"]);
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn a_purge_forgets_deduplication_ids<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.fifo_queue(&[]).await;
    let send = async |body| suite.send(&queue, vec![fifo_message("g", "id", body)]).await;
    let first = send("first").await;
    assert_eq!(send("again").await, first);
    suite.store.purge(&queue).await.unwrap();
    // What is sent now is no duplicate of what was thrown away: it would be answered with success and never come.
    assert_ne!(send("after").await, first);
    assert_eq!(suite.receive_one(&queue, HIDDEN_MS).await.body, "after");
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn a_second_purge_has_to_wait<Q: Queues>(suite: &Suite<Q>) {
    // A store that is busy may take longer than a purge has to wait.
    for _ in 0..TRIES {
        let queue = suite.queue(&[]).await;
        let began = Instant::now();
        suite.store.purge(&queue).await.unwrap();
        let again = suite.store.purge(&queue).await;
        if began.elapsed() < Duration::from_millis(suite.cooldown_ms) {
            assert_eq!(again, Err(Fault::PurgeInProgress));
            let purge = async || suite.store.purge(&queue).await;
            let purged = suite.until("a purge to be allowed again", purge, Result::is_ok).await;
            assert_eq!(purged, Ok(()));
            return;
        }
    }
    panic!("the store is too slow to show that a purge has to wait");
}
