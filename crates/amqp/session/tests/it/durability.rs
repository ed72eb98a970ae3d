//! Answers that promise wait for the disk.

use quelea_amqp_codec::method::{
    Method, basic, exchange as exchange_methods, queue as queue_methods,
};

use crate::consuming::consume;
use crate::declaring::{bind, declared, durable_queue, exchange, queue};
use crate::session_test::{On, SessionTest};

/// Sends a method while the disk is slow; its answer must not come before the disk is done.
fn waits_for_the_disk(
    node: &mut SessionTest,
    on: On,
    method: impl Into<Method>,
    answer: impl Into<Method>,
) {
    let (method, answer) = (method.into(), answer.into());
    let name = method.name();
    node.is_disk_slow = true;
    node.send_on(on, method);
    node.settle();
    assert_eq!(node.all(on.0), [], "{name} was answered too early");
    assert!(node.session(on.0).wants_input(), "{name} keeps the session from reading");
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [answer], "{name}");
}

#[test]
fn durable_topology_is_acknowledged_when_it_is_on_the_disk() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let durable = true;
    waits_for_the_disk(&mut node, on, durable_queue("q"), declared("q", 0, 0));
    let declare = exchange_methods::Declare { durable, ..exchange("e", "fanout") };
    waits_for_the_disk(&mut node, on, declare, exchange_methods::DeclareOk {});
    let declare = exchange_methods::Declare { durable, ..exchange("f", "fanout") };
    waits_for_the_disk(&mut node, on, declare, exchange_methods::DeclareOk {});
    waits_for_the_disk(&mut node, on, bind("q", "e", ""), queue_methods::BindOk {});
    let (destination, source) = ("e".into(), "f".into());
    let between = exchange_methods::Bind { destination, source, ..Default::default() };
    waits_for_the_disk(&mut node, on, between, exchange_methods::BindOk {});
    let (destination, source) = ("e".into(), "f".into());
    let between = exchange_methods::Unbind { destination, source, ..Default::default() };
    waits_for_the_disk(&mut node, on, between, exchange_methods::UnbindOk {});
    let (queue, exchange) = ("q".into(), "e".into());
    let unbind = queue_methods::Unbind { queue, exchange, ..Default::default() };
    waits_for_the_disk(&mut node, on, unbind, queue_methods::UnbindOk {});
    let delete = exchange_methods::Delete { exchange: "e".into(), ..Default::default() };
    waits_for_the_disk(&mut node, on, delete, exchange_methods::DeleteOk {});
    node.publish_persistent(on, "q", "x");
    node.settle();
    let purge = queue_methods::Purge { queue: "q".into(), no_wait: false };
    waits_for_the_disk(&mut node, on, purge, queue_methods::PurgeOk { message_count: 1 });
    let delete = queue_methods::Delete { queue: "q".into(), ..Default::default() };
    waits_for_the_disk(&mut node, on, delete, queue_methods::DeleteOk { message_count: 0 });
}

#[test]
fn transient_topology_waits_for_nothing() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    assert_eq!(node.call(on, queue("q")), declared("q", 0, 0));
    assert_eq!(node.call(on, exchange("e", "fanout")), exchange_methods::DeclareOk {}.into());
    assert_eq!(node.call(on, bind("q", "e", "")), queue_methods::BindOk {}.into());
}

#[test]
fn methods_behind_an_answer_that_waits_keep_their_order() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    node.send_on(on, durable_queue("q"));
    node.send_on(on, consume("q", "me"));
    node.send_on(on, basic::Qos::default());
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.is_disk_slow = false;
    node.settle();
    let expected: [Method; 3] = [
        declared("q", 0, 0),
        basic::ConsumeOk { consumer_tag: "me".into() }.into(),
        basic::QosOk {}.into(),
    ];
    assert_eq!(node.methods(on.0), expected);
}

#[test]
fn an_answer_that_waits_does_not_hold_up_other_channels() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.is_disk_slow = true;
    node.send_on(on, durable_queue("q"));
    node.settle();
    assert_eq!(node.call(other, basic::Qos::default()), basic::QosOk {}.into());
}

#[test]
fn a_session_that_waits_reads_no_further_and_goes_on_by_itself() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    for number in 0..5 {
        node.send_on(on, durable_queue(&format!("q{number}")));
        node.send_on(on, basic::Qos::default());
    }
    node.settle();
    assert!(!node.session(on.0).wants_input());
    assert!(node.session(on.0).is_stalled());
    assert_eq!(node.broker.queues(None).len(), 1);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.all(on.0).len(), 10);
    assert!(node.session(on.0).wants_input());
}

#[test]
fn who_leaves_before_the_answer_leaves_nothing_behind() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    node.send_on(on, durable_queue("q"));
    node.send_on(on, basic::Qos::default());
    node.send_on(on, durable_queue("r"));
    node.settle();
    node.disconnect(on.0);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.connections().len(), 0);
    assert_eq!(node.broker.queues(None).len(), 1);
}
