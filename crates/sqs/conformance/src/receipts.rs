//! What receipts are good for.

use quelea_sqs_protocol::{Fault, OldReceipts, Queues, ReceiptOutcome};

use crate::suite::{HIDDEN_MS, Suite, body};

pub(crate) async fn what_is_no_receipt_is_invalid<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let good = suite.receive_one(&queue, HIDDEN_MS).await.delivery;
    let mut flipped = good.clone();
    flipped[0] ^= 1;
    for bad in [Vec::new(), vec![0; 3], vec![7; 300], good[1..].to_vec(), flipped] {
        assert_eq!(suite.delete(&queue, &bad).await, ReceiptOutcome::Invalid, "{bad:?}");
        assert_eq!(suite.change_visibility(&queue, &bad, 0).await, ReceiptOutcome::Invalid);
    }
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn a_receipt_of_another_queue_is_invalid<Q: Queues>(suite: &Suite<Q>) {
    let (queue, other) = (suite.queue(&[]).await, suite.queue(&[]).await);
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(suite.delete(&other, &taken.delivery).await, ReceiptOutcome::Invalid);
    let shown = suite.change_visibility(&other, &taken.delivery, 0).await;
    assert_eq!(shown, ReceiptOutcome::Invalid);
    // It is still there, and the receipt still good.
    assert_eq!(suite.change_visibility(&queue, &taken.delivery, 0).await, ReceiptOutcome::Done);
    assert_eq!(body(&suite.receive_one(&queue, HIDDEN_MS).await), "x");
}

pub(crate) async fn deleting_twice_is_done<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    for _ in 0..3 {
        assert_eq!(suite.delete(&queue, &taken.delivery).await, ReceiptOutcome::Done);
    }
}

pub(crate) async fn a_deleted_message_never_comes_back<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["gone", "gone late", "left"]).await;
    let gone = suite.receive_one(&queue, 300).await;
    assert_eq!(suite.delete(&queue, &gone.delivery).await, ReceiptOutcome::Done);
    // This one is visible again when it is deleted, and nobody has received it since.
    let late = suite.receive_one(&queue, 0).await;
    assert_eq!(suite.delete(&queue, &late.delivery).await, ReceiptOutcome::Done);
    let left = suite.receive_one(&queue, 1_000).await;
    assert_eq!(body(&left), "left");
    // By now the timeout of the first would be over.
    let left = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(body(&left), "left");
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn the_visibility_of_a_deleted_message_cannot_be_changed<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    suite.delete(&queue, &taken.delivery).await;
    let shown = suite.change_visibility(&queue, &taken.delivery, 0).await;
    assert_eq!(shown, ReceiptOutcome::NoSuchMessage);
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn an_old_receipt_deletes_as_declared<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let first = suite.receive_one(&queue, 0).await;
    let second = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(first.message_id, second.message_id);
    assert_eq!(suite.delete(&queue, &first.delivery).await, ReceiptOutcome::Done);
    let shown = suite.change_visibility(&queue, &second.delivery, 0).await;
    match suite.capabilities().old_receipts {
        OldReceipts::Ignored => {
            assert_eq!(shown, ReceiptOutcome::Done);
            assert_eq!(body(&suite.receive_one(&queue, HIDDEN_MS).await), "x");
        }
        OldReceipts::Delete => {
            assert_eq!(shown, ReceiptOutcome::NoSuchMessage);
            suite.expect_nothing(&queue).await;
        }
    }
}

pub(crate) async fn a_batch_of_receipts_has_an_outcome_for_each<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["a", "b", "c"]).await;
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(suite.receive_one(&queue, HIDDEN_MS).await.delivery);
    }
    let [a, b, c] = <[_; 3]>::try_from(taken).unwrap();
    let changes = vec![(a.clone(), 0), (vec![1], 0), (c.clone(), HIDDEN_MS)];
    let changed = suite.store.change_visibility(&queue, changes).await;
    let (done, invalid) = (ReceiptOutcome::Done, ReceiptOutcome::Invalid);
    assert_eq!(changed, Ok(vec![done, invalid, done]));
    assert_eq!(body(&suite.receive_one(&queue, 0).await), "a");
    let deleted = suite.store.delete(&queue, vec![b, vec![1], c]).await;
    assert_eq!(deleted, Ok(vec![done, invalid, done]) as Result<_, Fault>);
}
