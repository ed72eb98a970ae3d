//! FIFO queues: order in groups, and deduplication.

use quelea_sqs_protocol::{Queues, ReceiptOutcome, Receive};

use crate::suite::{HIDDEN_MS, Suite, at_once, body, fifo_message, waiting};

pub(crate) async fn a_group_is_received_in_order_and_one_after_the_other<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.fifo_queue(&[]).await;
    let messages = ["a", "b", "c"].map(|body| fifo_message("g", body, body)).to_vec();
    let sent = suite.send(&queue, messages).await;
    let numbers: Vec<_> = sent.iter().map(|sent| sent.sequence_number.clone().unwrap()).collect();
    assert!(numbers.is_sorted() && numbers[0] != numbers[1], "{numbers:?}");
    let first = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!((body(&first).as_str(), first.sequence_number.as_ref()), ("a", Some(&numbers[0])));
    assert_eq!(
        (first.group_id.as_deref(), first.deduplication_id.as_deref()),
        (Some("g"), Some("a"))
    );
    suite.expect_nothing(&queue).await;
    // It comes back to its place, before what was sent after it.
    let shown = suite.change_visibility(&queue, &first.delivery, 0).await;
    assert_eq!(shown, ReceiptOutcome::Done);
    for expected in ["a", "b", "c"] {
        let received = suite.receive_one(&queue, HIDDEN_MS).await;
        assert_eq!(body(&received), expected);
        assert_eq!(suite.delete(&queue, &received.delivery).await, ReceiptOutcome::Done);
    }
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn groups_do_not_wait_for_each_other<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.fifo_queue(&[]).await;
    let messages = [("g", "a"), ("h", "b"), ("g", "c")];
    let messages = messages.map(|(group, body)| fifo_message(group, body, body)).to_vec();
    suite.send(&queue, messages).await;
    let first = suite.receive_one(&queue, HIDDEN_MS).await;
    let second = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!((body(&first).as_str(), body(&second).as_str()), ("a", "b"));
    suite.expect_nothing(&queue).await;
    suite.delete(&queue, &first.delivery).await;
    assert_eq!(body(&suite.receive_one(&queue, HIDDEN_MS).await), "c");
}

pub(crate) async fn a_duplicate_is_the_first_message<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.fifo_queue(&[]).await;
    let first = suite.send(&queue, vec![fifo_message("g", "id", "first")]).await;
    // Whatever its group and its body.
    let again = suite.send(&queue, vec![fifo_message("h", "id", "second")]).await;
    assert_eq!(first, again);
    let twice = vec![fifo_message("g", "other", "x"), fifo_message("g", "other", "x")];
    let sent = suite.send(&queue, twice).await;
    assert_eq!(sent[0], sent[1], "within a batch, too");
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(body(&received), "first");
    suite.delete(&queue, &received.delivery).await;
    assert_eq!(suite.send(&queue, vec![fifo_message("g", "id", "third")]).await, first);
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(body(&received), "x");
    suite.delete(&queue, &received.delivery).await;
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn a_deduplication_id_is_one_per_group_where_the_queue_says_so<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.fifo_queue(&[("DeduplicationScope", "messageGroup")]).await;
    let first = suite.send(&queue, vec![fifo_message("g", "id", "a")]).await;
    let other = suite.send(&queue, vec![fifo_message("h", "id", "b")]).await;
    let again = suite.send(&queue, vec![fifo_message("g", "id", "c")]).await;
    assert_ne!(first[0].message_id, other[0].message_id);
    assert_eq!(first, again);
    let mut bodies = suite.receive_bodies(&queue, 2).await;
    bodies.sort_unstable();
    assert_eq!(bodies, ["a", "b"]);
}

pub(crate) async fn an_attempt_that_is_repeated_gets_the_same_messages<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.fifo_queue(&[]).await;
    suite.send(&queue, ["a", "b"].map(|body| fifo_message("g", body, body)).to_vec()).await;
    let attempt = |id: &str| Receive { attempt_id: Some(id.to_owned()), ..waiting(1, HIDDEN_MS) };
    let first = suite.receive(&queue, attempt("one")).await;
    let again = suite.receive(&queue, attempt("one")).await;
    assert_eq!(first.len(), 1);
    let ids = |received: &[_]| received.iter().map(body).collect::<Vec<_>>();
    assert_eq!((ids(&first), ids(&again)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    let other = Receive { attempt_id: Some("two".to_owned()), ..at_once(1, HIDDEN_MS) };
    assert_eq!(suite.receive(&queue, other).await, []);
}

pub(crate) async fn an_expired_receipt_deletes_nothing<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.fifo_queue(&[]).await;
    suite.send(&queue, vec![fifo_message("g", "id", "x")]).await;
    let first = suite.receive_one(&queue, 300).await;
    let second = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(first.message_id, second.message_id);
    assert_eq!(suite.delete(&queue, &first.delivery).await, ReceiptOutcome::Expired);
    assert_eq!(suite.delete(&queue, &second.delivery).await, ReceiptOutcome::Done);
    suite.expect_nothing(&queue).await;
}
