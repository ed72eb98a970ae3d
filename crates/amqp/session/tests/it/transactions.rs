//! Class `tx`.

use quelea_amqp_codec::method::{
    Method, basic, channel, confirm, exchange as exchange_methods, queue as queue_methods, tx,
};
use quelea_model::{Properties, Table, Value, limits};

use crate::declaring::{bind, count, durable_queue, exchange, queue};
use crate::session_test::{On, SessionTest, to};

/// Returns a transactional channel and a queue `q`.
fn transaction(node: &mut SessionTest) -> On {
    let on = node.channel();
    node.call(on, durable_queue("q"));
    assert_eq!(node.call(on, tx::Select {}), tx::SelectOk {}.into());
    on
}

/// Returns how many messages of `q` are ready, and how many unacknowledged.
fn messages(node: &SessionTest) -> (u64, u64) {
    let queue = node.broker.queue("/", "q").expect("the queue");
    (queue.messages_ready, queue.messages_unacknowledged)
}

/// Publishes some messages to `q` and gets as many; ends the transaction that did so.
fn got(node: &mut SessionTest, on: On, count: usize) {
    for _ in 0..count {
        node.publish_persistent(on, "q", "m");
    }
    node.call(on, tx::Commit {});
    for _ in 0..count {
        node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    }
}

#[test]
fn publishes_are_seen_when_they_are_committed() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    for body in ["a", "b", "c"] {
        node.publish_persistent(on, "q", body);
    }
    node.settle();
    assert_eq!(messages(&node), (0, 0));
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into());
    assert_eq!(messages(&node), (3, 0));
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into(), "an empty one");
    assert_eq!(messages(&node), (3, 0));
}

#[test]
fn a_rollback_forgets_publishes_and_acknowledgements() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    node.publish_persistent(on, "q", "a");
    node.call(on, tx::Commit {});
    node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    node.publish_persistent(on, "q", "b");
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    assert_eq!(node.call(on, tx::Rollback {}), tx::RollbackOk {}.into());
    assert_eq!(messages(&node), (0, 1));
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into());
    assert_eq!(messages(&node), (0, 0));
}

#[test]
fn acknowledgements_count_when_they_are_committed() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    for body in ["a", "b", "c", "d"] {
        node.publish_persistent(on, "q", body);
    }
    node.call(on, tx::Commit {});
    for _ in 0..4 {
        node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    }
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    node.send_on(on, basic::Reject { delivery_tag: 2, requeue: true });
    node.send_on(on, basic::Nack { delivery_tag: 3, multiple: true, requeue: false });
    node.settle();
    assert_eq!(messages(&node), (0, 4));
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into());
    assert_eq!(messages(&node), (1, 1));
}

#[test]
fn commit_ok_waits_for_the_disk() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    node.is_disk_slow = true;
    node.publish_persistent(on, "q", "a");
    node.send_on(on, tx::Commit {});
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [tx::CommitOk {}.into()]);
}

#[test]
fn commit_ok_waits_for_the_disk_also_where_a_requeue_ends_a_message() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    let limit = Table::from_iter([("x-delivery-limit", Value::I32(0))]);
    node.call(on, queue_methods::Declare { arguments: limit, ..durable_queue("limited") });
    node.publish_persistent(on, "limited", "a");
    node.call(on, tx::Commit {});
    node.call(on, basic::Get { queue: "limited".into(), no_ack: false });
    node.is_disk_slow = true;
    node.send_on(on, basic::Nack { delivery_tag: 1, multiple: false, requeue: true });
    node.send_on(on, tx::Commit {});
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [tx::CommitOk {}.into()]);
    assert_eq!(node.broker.queue("/", "limited").expect("the queue").messages_ready, 0);
}

#[test]
fn a_wrong_publish_or_tag_is_refused_at_once() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    let missing = basic::Publish { exchange: "missing".into(), ..Default::default() };
    node.publish(on, missing, &Properties::default(), "x");
    node.settle();
    let (code, text, ..) = node.closed(on.0);
    assert_eq!((code, &*text), (404, "NOT_FOUND - no exchange 'missing' in vhost '/'"));
    let on = transaction(&mut node);
    let (code, text, ..) = node.refused(on, basic::Ack { delivery_tag: 3, multiple: false });
    assert_eq!((code, &*text), (406, "PRECONDITION_FAILED - unknown delivery tag 3"));
}

#[test]
fn a_recover_leaves_what_the_transaction_has_acknowledged() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    got(&mut node, on, 4);
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    node.send_on(on, basic::Nack { delivery_tag: 3, multiple: false, requeue: false });
    assert_eq!(node.call(on, basic::Recover { requeue: true }), basic::RecoverOk {}.into());
    assert_eq!(messages(&node), (2, 2));
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into());
    assert_eq!(messages(&node), (2, 0));
    // What is rolled back may be recovered again.
    got(&mut node, on, 0);
    node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    node.send_on(on, basic::Ack { delivery_tag: 0, multiple: true });
    node.call(on, basic::Recover { requeue: true });
    assert_eq!(messages(&node), (1, 1));
    node.call(on, tx::Rollback {});
    node.call(on, basic::Recover { requeue: true });
    assert_eq!(messages(&node), (2, 0));
}

#[test]
fn a_tag_is_acknowledged_once_in_a_transaction() {
    for second in [
        Method::from(basic::Ack { delivery_tag: 2, multiple: false }),
        basic::Ack { delivery_tag: 2, multiple: true }.into(),
        basic::Nack { delivery_tag: 1, multiple: false, requeue: true }.into(),
        basic::Reject { delivery_tag: 2, requeue: false }.into(),
    ] {
        let mut node = SessionTest::new();
        let on = transaction(&mut node);
        got(&mut node, on, 3);
        node.send_on(on, basic::Ack { delivery_tag: 2, multiple: true });
        let (code, text, ..) = node.refused(on, second);
        assert_eq!(code, 406);
        assert!(text.starts_with("PRECONDITION_FAILED - unknown delivery tag "), "{text}");
        // The channel is closed: all of them are back.
        assert_eq!(messages(&node), (3, 0));
    }
}

#[test]
fn all_is_what_was_delivered_before_the_acknowledgement() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    got(&mut node, on, 2);
    node.send_on(on, basic::Ack { delivery_tag: 2, multiple: false });
    node.send_on(on, basic::Ack { delivery_tag: 0, multiple: true });
    node.send_on(on, basic::Ack { delivery_tag: 0, multiple: true });
    let other = node.channel();
    node.publish_persistent(other, "q", "later");
    node.settle();
    node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    assert_eq!(node.call(on, tx::Commit {}), tx::CommitOk {}.into());
    assert_eq!(messages(&node), (0, 1));
}

#[test]
fn a_failed_commit_has_changed_nothing() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    got(&mut node, on, 1);
    let other = node.channel();
    node.call(other, exchange("fleeting", "fanout"));
    let publish = basic::Publish { exchange: "fleeting".into(), ..Default::default() };
    node.publish(on, publish, &Properties::default(), "lost");
    node.publish_persistent(on, "q", "not kept");
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    node.settle();
    let delete = exchange_methods::Delete { exchange: "fleeting".into(), ..Default::default() };
    node.call(other, delete);
    let text =
        "PRECONDITION_FAILED - transaction not committed: no exchange 'fleeting' in vhost '/'";
    assert_eq!(node.refused(on, tx::Commit {}), (406, text.to_owned(), 90, 20));
    let on = node.channel();
    let Method::BasicGetOk(got) = node.call(on, basic::Get { queue: "q".into(), no_ack: true })
    else {
        panic!("what was acknowledged is back");
    };
    assert!(got.redelivered);
    assert_eq!(messages(&node), (0, 0), "and nothing was published");
}

#[test]
fn a_full_queue_fails_the_commit() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    let arguments = Table::from_iter([
        ("x-max-length", Value::I32(1)),
        ("x-overflow", Value::text("reject-publish")),
    ]);
    node.call(on, queue_methods::Declare { arguments, ..queue("full") });
    node.publish_to(on, "full", "fits");
    node.publish_to(on, "full", "does not");
    node.publish_persistent(on, "q", "nor this");
    let (code, text, ..) = node.refused(on, tx::Commit {});
    let wanted = "PRECONDITION_FAILED - transaction not committed: queue 'full' in vhost '/' has no \
                  room for 2 messages of 12 bytes";
    assert_eq!((code, &*text), (406, wanted));
    assert_eq!(messages(&node), (0, 0));
    let full = node.broker.queue("/", "full").expect("the queue");
    assert_eq!(full.messages_ready, 0);
}

#[test]
fn mandatory_messages_come_back_when_they_are_committed() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    let publish = basic::Publish { mandatory: true, ..to("nowhere") };
    node.publish(on, publish, &Properties::default(), "lost");
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.send_on(on, tx::Commit {});
    node.settle();
    let received = node.all(on.0);
    assert!(matches!(&received[0].method, Method::BasicReturn(_)));
    assert_eq!(received[0].body(), "lost");
    assert_eq!(received[1].method, tx::CommitOk {}.into());
}

#[test]
fn transactions_end_with_their_channel() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    node.publish_persistent(on, "q", "never");
    node.settle();
    node.disconnect(on.0);
    let on = node.channel();
    assert_eq!(count(&mut node, on, "q"), 0);
}

#[test]
fn a_channel_is_transactional_or_confirms() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, tx::Select {});
    let text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode".to_owned();
    assert_eq!(node.refused(on, confirm::Select { no_wait: false }), (406, text, 85, 10));
    let on = node.channel();
    node.call(on, confirm::Select { no_wait: false });
    let text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode".to_owned();
    assert_eq!(node.refused(on, tx::Select {}), (406, text, 90, 10));
}

#[test]
fn commit_and_rollback_need_a_transaction() {
    for (method, id) in [(Method::from(tx::Commit {}), 20), (tx::Rollback {}.into(), 30)] {
        let mut node = SessionTest::new();
        let on = node.channel();
        let text = "PRECONDITION_FAILED - channel is not transactional".to_owned();
        assert_eq!(node.refused(on, method), (406, text, 90, id));
    }
}

#[test]
fn transactions_have_a_limit_of_operations() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    for _ in 0..=limits::TX_OPERATIONS_MAX {
        node.publish_to(on, "q", "");
    }
    node.settle();
    let text = "PRECONDITION_FAILED - open transactions hold 65536 operations already";
    assert_eq!(node.closed(on.0), (406, text.to_owned(), 60, 40));
}

#[test]
fn transactions_have_a_limit_of_queues_that_their_messages_go_to() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    for n in 0..500 {
        let name = format!("fan {n}");
        node.call(on, queue(&name));
        node.call(on, bind(&name, "amq.fanout", ""));
    }
    for _ in 0..=limits::TX_TARGETS_MAX / 500 {
        let to = basic::Publish { exchange: "amq.fanout".into(), ..Default::default() };
        node.publish(on, to, &Properties::default(), "m");
    }
    node.settle();
    node.send_on(on, tx::Commit {});
    node.settle();
    let (code, text, ..) = node.closed(on.0);
    assert_eq!(code, 406);
    let expected = "PRECONDITION_FAILED - transaction not committed: its messages go to 250500 \
                    queues or more, counted for each message, the limit is 250000";
    assert_eq!(text, expected);
    assert_eq!(node.broker.queue("/", "fan 0").expect("the queue").messages_ready, 0);
}

#[test]
fn transactions_have_a_limit_of_bytes_that_all_channels_share() {
    let mut node = SessionTest::new();
    let on = transaction(&mut node);
    let body = "x".repeat(limits::TX_BYTES_MAX / 8);
    for number in 2..9 {
        let other = node.open_channel(on.0, number);
        node.call(other, tx::Select {});
        node.publish_to(other, "q", &body);
    }
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.publish_to(on, "q", &body);
    node.settle();
    let (code, text, ..) = node.closed(on.0);
    assert_eq!(code, 406);
    assert!(text.starts_with("PRECONDITION_FAILED - open transactions would hold 67"), "{text}");
    // What a closed channel, a commit and a rollback give back can be used again.
    let close = channel::Close { reply_code: 200, ..Default::default() };
    node.call(On(on.0, 2), close);
    node.call(On(on.0, 3), tx::Commit {});
    node.call(On(on.0, 4), tx::Rollback {});
    for _ in 0..3 {
        node.publish_to(On(on.0, 5), "q", &body);
    }
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(messages(&node), (1, 0));
}
