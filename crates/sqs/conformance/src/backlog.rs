//! What waits in a queue, counted.

use std::sync::Arc;

use quelea_sqs_protocol::{Backlog, Counts, NewMessage, QueueFacts, Queues};

use crate::suite::{HIDDEN_MS, Suite, message};

pub(crate) async fn a_backlog_counts_what_waits<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["a", "b", "c", "d", "e"]).await;
    let delayed = NewMessage { delay_ms: Some(900_000), ..message("f") };
    suite.send(&queue, vec![delayed]).await;
    let first = suite.receive_one(&queue, HIDDEN_MS).await;
    suite.receive_one(&queue, HIDDEN_MS).await;
    expect(suite, &queue, (3, 2, 1)).await;
    suite.delete(&queue, &first.delivery).await;
    expect(suite, &queue, (3, 1, 1)).await;
}

pub(crate) async fn a_message_is_counted_once_however_often_it_was_moved<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x", "y"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    for shorter_by_ms in 1..4 {
        suite.change_visibility(&queue, &taken.delivery, HIDDEN_MS - shorter_by_ms).await;
    }
    expect(suite, &queue, (1, 1, 0)).await;
    // The receipt is from before the changes.
    suite.delete(&queue, &taken.delivery).await;
    expect(suite, &queue, (1, 0, 0)).await;
}

pub(crate) async fn an_empty_queue_has_no_backlog<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    assert_eq!(suite.store.backlog(&queue).await, Ok(Backlog::default()));
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    suite.delete(&queue, &taken.delivery).await;
    expect(suite, &queue, (0, 0, 0)).await;
}

/// Checks how many are visible, in flight, and delayed: exactly and at once, or about so after a while.
async fn expect<Q: Queues>(suite: &Suite<Q>, queue: &Arc<QueueFacts>, expected: (u64, u64, u64)) {
    let count = async || {
        let Backlog { visible, in_flight, delayed, .. } = suite.store.backlog(queue).await.unwrap();
        (visible, in_flight, delayed)
    };
    match suite.capabilities().counts {
        Counts::Exact => assert_eq!(count().await, expected),
        Counts::Approximate => {
            // Which of the three a message counts as may lag, and is right in the end.
            let is_about = |counted: u64, expected: u64| counted.abs_diff(expected) <= expected / 5;
            let about = |counted: &(u64, u64, u64)| {
                is_about(counted.0, expected.0)
                    && is_about(counted.1, expected.1)
                    && is_about(counted.2, expected.2)
            };
            suite.until(&format!("about {expected:?}"), count, about).await;
        }
    }
}
