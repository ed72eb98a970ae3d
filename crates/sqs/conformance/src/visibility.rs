//! For how long nobody else sees a message.

use quelea_sqs_protocol::{Queues, Reappearance, ReceiptOutcome};

use crate::suite::{HIDDEN_MS, Suite, body};

/// The longest that SQS allows.
const TWELVE_HOURS_MS: u64 = 43_200_000;

pub(crate) async fn a_received_message_is_hidden_until_its_time_is_over<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["short", "long"]).await;
    let mut received = vec![suite.receive_one(&queue, HIDDEN_MS).await];
    received.push(suite.receive_one(&queue, HIDDEN_MS).await);
    suite.expect_nothing(&queue).await;
    let first = &received[0];
    let shortened = suite.change_visibility(&queue, &first.delivery, 500).await;
    assert_eq!(shortened, ReceiptOutcome::Done);
    let again = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(again.message_id, first.message_id, "the other one stays hidden");
    let third = suite.queue(&[]).await;
    suite.send_bodies(&third, &["soon"]).await;
    let taken = suite.receive_one(&third, 500).await;
    let again = suite.receive_one(&third, HIDDEN_MS).await;
    assert_eq!(again.message_id, taken.message_id);
}

pub(crate) async fn a_message_that_reappears_takes_its_declared_place<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    suite.send_bodies(&queue, &["first"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    suite.send_bodies(&queue, &["second", "third"]).await;
    let shown = suite.change_visibility(&queue, &taken.delivery, 0).await;
    assert_eq!(shown, ReceiptOutcome::Done);
    let expected = match suite.capabilities().reappearance {
        Reappearance::OldPlace => ["first", "second", "third"],
        Reappearance::ByNewTime => ["second", "third", "first"],
    };
    assert_eq!(suite.receive_bodies(&queue, 3).await, expected);
}

pub(crate) async fn a_visibility_of_zero_shows_the_message_at_once<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    for _ in 0..3 {
        let taken = suite.receive_one(&queue, HIDDEN_MS).await;
        suite.expect_nothing(&queue).await;
        let shown = suite.change_visibility(&queue, &taken.delivery, 0).await;
        assert_eq!(shown, ReceiptOutcome::Done);
    }
    // A receive that hides nothing leaves the message for the next.
    for _ in 0..3 {
        suite.receive_one(&queue, 0).await;
    }
}

pub(crate) async fn a_visibility_is_prolonged_and_shortened<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["prolonged", "left"]).await;
    let prolonged = suite.receive_one(&queue, 2_000).await;
    let prolong = suite.change_visibility(&queue, &prolonged.delivery, HIDDEN_MS).await;
    assert_eq!(prolong, ReceiptOutcome::Done);
    suite.receive_one(&queue, 3_000).await;
    // What was received later, and for longer, comes back; what was prolonged does not.
    assert_eq!(body(&suite.receive_one(&queue, HIDDEN_MS).await), "left");
    suite.expect_nothing(&queue).await;
    let shortened = suite.change_visibility(&queue, &prolonged.delivery, 300).await;
    assert_eq!(shortened, ReceiptOutcome::Done, "the receipt is good after a change, too");
    assert_eq!(body(&suite.receive_one(&queue, HIDDEN_MS).await), "prolonged");
}

pub(crate) async fn whoever_had_a_message_last_hides_it_again_until_another_has_it<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let first = suite.receive_one(&queue, 0).await;
    let hidden = suite.change_visibility(&queue, &first.delivery, HIDDEN_MS).await;
    assert_eq!(hidden, ReceiptOutcome::Done);
    suite.expect_nothing(&queue).await;
    assert_eq!(suite.change_visibility(&queue, &first.delivery, 0).await, ReceiptOutcome::Done);
    let second = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!(suite.change_visibility(&queue, &second.delivery, 0).await, ReceiptOutcome::Done);
}

pub(crate) async fn receptions_are_counted_and_the_first_is_remembered<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let first = suite.receive_one(&queue, 0).await;
    for count in 2..=4 {
        let again = suite.receive_one(&queue, 0).await;
        assert_eq!((again.receive_count, &again.message_id), (count, &first.message_id));
        assert_eq!(again.first_received_at_ms, first.first_received_at_ms);
        assert_eq!(again.sent_at_ms, first.sent_at_ms);
        assert_ne!(again.delivery, first.delivery, "each reception has a receipt of its own");
    }
}

pub(crate) async fn a_visibility_of_more_than_twelve_hours_is_refused<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    let change = async |ms| suite.change_visibility(&queue, &taken.delivery, ms).await;
    assert_eq!(change(TWELVE_HOURS_MS + 60_000).await, ReceiptOutcome::TooLong);
    suite.expect_nothing(&queue).await;
    assert_eq!(change(TWELVE_HOURS_MS - 3_600_000).await, ReceiptOutcome::Done);
}
