//! ack, nack, reject, recover.

use quelea_amqp_codec::method::{Method, basic};

use crate::consuming::{consume, deliveries};
use crate::declaring::{count, queue};
use crate::session_test::{On, SessionTest};

/// Returns a consumer with five deliveries that are not acknowledged.
fn five_deliveries(node: &mut SessionTest) -> On {
    let on = node.channel();
    node.call(on, queue("q"));
    for body in ["a", "b", "c", "d", "e"] {
        node.publish_to(on, "q", body);
    }
    for _ in 0..5 {
        node.send_on(on, basic::Get { queue: "q".into(), no_ack: false });
    }
    node.settle();
    assert_eq!(node.all(on.0).len(), 5);
    on
}

fn unacknowledged(node: &SessionTest) -> u64 {
    node.broker.queue("/", "q").expect("the queue").messages_unacknowledged
}

#[test]
fn one_several_or_all_deliveries_are_acknowledged() {
    let mut node = SessionTest::new();
    let on = five_deliveries(&mut node);
    node.send_on(on, basic::Ack { delivery_tag: 4, multiple: false });
    node.settle();
    assert_eq!(unacknowledged(&node), 4);
    node.send_on(on, basic::Ack { delivery_tag: 2, multiple: true });
    node.settle();
    assert_eq!(unacknowledged(&node), 2);
    node.send_on(on, basic::Ack { delivery_tag: 0, multiple: true });
    node.settle();
    assert_eq!(unacknowledged(&node), 0);
    assert_eq!(node.all(on.0), []);
}

#[test]
fn refused_deliveries_go_back_or_away() {
    let mut node = SessionTest::new();
    let on = five_deliveries(&mut node);
    node.send_on(on, basic::Reject { delivery_tag: 1, requeue: false });
    node.send_on(on, basic::Reject { delivery_tag: 2, requeue: true });
    node.send_on(on, basic::Nack { delivery_tag: 4, multiple: true, requeue: true });
    node.send_on(on, basic::Nack { delivery_tag: 0, multiple: true, requeue: false });
    assert_eq!(count(&mut node, on, "q"), 3);
    assert_eq!(unacknowledged(&node), 0);
}

#[test]
fn a_delivery_that_is_not_there_closes_the_channel() {
    let unknown = |method: fn(u64) -> Method, id: u16| {
        let mut node = SessionTest::new();
        let on = five_deliveries(&mut node);
        let text = "PRECONDITION_FAILED - unknown delivery tag 9".to_owned();
        assert_eq!(node.refused(on, method(9)), (406, text, 60, id));
        assert_eq!(count_after_close(&mut node), 5, "what was delivered went back");
    };
    unknown(|delivery_tag| basic::Ack { delivery_tag, multiple: false }.into(), 80);
    unknown(|delivery_tag| basic::Reject { delivery_tag, requeue: true }.into(), 90);
    unknown(
        |delivery_tag| basic::Nack { delivery_tag, multiple: false, requeue: true }.into(),
        120,
    );
}

fn count_after_close(node: &mut SessionTest) -> u32 {
    let on = node.channel();
    count(node, on, "q")
}

#[test]
fn acknowledging_twice_closes_the_channel() {
    let mut node = SessionTest::new();
    let on = five_deliveries(&mut node);
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    let (code, text, ..) = node.refused(on, basic::Ack { delivery_tag: 1, multiple: false });
    assert_eq!((code, &*text), (406, "PRECONDITION_FAILED - unknown delivery tag 1"));
}

#[test]
fn recover_puts_everything_back() {
    let mut node = SessionTest::new();
    let on = five_deliveries(&mut node);
    assert_eq!(node.call(on, basic::Recover { requeue: true }), basic::RecoverOk {}.into());
    assert_eq!(count(&mut node, on, "q"), 5);
    node.call(on, consume("q", "me"));
    assert_eq!(deliveries(&node.all(on.0)).len(), 5);
    node.send_on(on, basic::Cancel { consumer_tag: "me".into(), no_wait: true });
    node.send_on(on, basic::RecoverAsync { requeue: true });
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(count(&mut node, on, "q"), 5);
}

#[test]
fn recover_to_the_same_consumer_is_not_implemented_as_in_rabbitmq() {
    for (method, id) in [
        (Method::from(basic::Recover { requeue: false }), 110),
        (Method::from(basic::RecoverAsync { requeue: false }), 100),
    ] {
        let mut node = SessionTest::new();
        let on = node.channel();
        let text = "NOT_IMPLEMENTED - requeue=false".to_owned();
        assert_eq!(node.refused(on, method), (540, text, 60, id));
    }
}

/// Returns a channel that has 500 deliveries of `q`, and consumes no more.
fn held() -> (SessionTest, On) {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    for n in 0..500 {
        node.publish_to(on, "q", &n.to_string());
    }
    node.call(on, consume("q", "me"));
    node.settle();
    assert_eq!(deliveries(&node.all(on.0)).len(), 500);
    node.call(on, basic::Cancel { consumer_tag: "me".into(), no_wait: false });
    (node, on)
}

#[test]
fn what_comes_behind_a_large_nack_waits_for_it() {
    let (mut node, on) = held();
    // A hundred deliveries a turn.
    node.broker.set_steps_per_turn(1_000);
    node.send_on(on, basic::Nack { delivery_tag: 450, multiple: true, requeue: true });
    node.send_on(on, basic::Ack { delivery_tag: 460, multiple: true });
    assert_eq!(unacknowledged(&node), 500, "it is on its way back");
    node.settle();
    assert_eq!((count(&mut node, on, "q"), unacknowledged(&node)), (450, 40));
    assert_eq!(node.call(on, basic::Recover { requeue: true }), basic::RecoverOk {}.into());
    assert_eq!((count(&mut node, on, "q"), unacknowledged(&node)), (490, 0));
}

#[test]
fn what_comes_behind_a_large_ack_waits_for_it() {
    let (mut node, on) = held();
    // Two hundred deliveries a turn.
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, basic::Ack { delivery_tag: 450, multiple: true });
    node.send_on(on, basic::Nack { delivery_tag: 460, multiple: true, requeue: true });
    assert_eq!(unacknowledged(&node), 500, "it is under way");
    node.settle();
    assert_eq!((count(&mut node, on, "q"), unacknowledged(&node)), (10, 40));
}
