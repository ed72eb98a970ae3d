//! Messages that are not to be received yet.

use quelea_sqs_protocol::{NewMessage, Queues};

use crate::suite::{Suite, message};

pub(crate) async fn a_delayed_message_is_hidden_until_its_time<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    let delayed = |body, ms| NewMessage { delay_ms: Some(ms), ..message(body) };
    let messages = vec![delayed("third", 900_000), delayed("second", 1_000), delayed("first", 0)];
    suite.send(&queue, messages).await;
    assert_eq!(suite.receive_bodies(&queue, 2).await, ["first", "second"]);
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn the_queues_delay_holds_for_messages_without_one<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("DelaySeconds", "900")]).await;
    suite.send_bodies(&queue, &["late"]).await;
    let at_once = NewMessage { delay_ms: Some(0), ..message("at once") };
    suite.send(&queue, vec![at_once]).await;
    assert_eq!(suite.receive_bodies(&queue, 1).await, ["at once"]);
    suite.expect_nothing(&queue).await;
}
