//! Messages that were received too often.

use quelea_sqs_protocol::Queues;

use crate::suite::{HIDDEN_MS, Suite, body};

pub(crate) async fn a_message_received_too_often_goes_to_the_dead_letter_queue<Q: Queues>(
    suite: &Suite<Q>,
) {
    let (queue, dead) = suite.queue_with_dead_letters(2).await;
    suite.send_bodies(&queue, &["bad"]).await;
    let first = suite.receive_one(&queue, 0).await;
    suite.receive_one(&queue, 0).await;
    // The third receive finds it spent.
    let received = suite.receive_dead_letter(&queue, &dead, HIDDEN_MS).await;
    assert_eq!((body(&received), &received.message_id), ("bad".to_owned(), &first.message_id));
    assert_eq!(received.dead_letter_source.as_ref(), Some(&queue.queue));
    assert_eq!(received.sent_at_ms, first.sent_at_ms);
    suite.expect_nothing(&queue).await;
    suite.expect_nothing(&dead).await;
}

pub(crate) async fn a_dead_lettered_message_is_counted_on<Q: Queues>(suite: &Suite<Q>) {
    let (queue, dead) = suite.queue_with_dead_letters(1).await;
    suite.send_bodies(&queue, &["bad"]).await;
    suite.receive_one(&queue, 0).await;
    assert_eq!(suite.receive_dead_letter(&queue, &dead, 0).await.receive_count, 2);
    assert_eq!(suite.receive_one(&dead, HIDDEN_MS).await.receive_count, 3);
}
