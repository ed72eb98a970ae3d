//! Declarations of a client that does not wait for each answer share a sync.

use quelea_amqp_codec::method::{
    Method, basic, exchange as exchange_methods, queue as queue_methods,
};
use quelea_model::limits;
use quelea_store::fake_disk::{FakeDisk, Survival};

use crate::declaring::{bind, declared, durable_queue, exchange, queue};
use crate::session_test::{On, SessionTest};

fn passive(name: &str) -> queue_methods::Declare {
    queue_methods::Declare { passive: true, ..queue(name) }
}

/// Sends declarations of durable queues, `q0` and so on, without waiting.
fn declare_queues(node: &mut SessionTest, on: On, count: usize) {
    for number in 0..count {
        node.send_on(on, durable_queue(&format!("q{number}")));
    }
}

#[test]
fn pipelined_declarations_share_a_sync_and_keep_their_order() {
    let log = FakeDisk::new();
    let mut node = SessionTest::on_log(log.clone());
    let on = node.channel();
    let before = log.syncs();
    declare_queues(&mut node, on, 500);
    node.settle();
    let expected: Vec<Method> = (0..500).map(|n| declared(&format!("q{n}"), 0, 0)).collect();
    assert_eq!(node.methods(on.0), expected);
    // The log's segments take some of them.
    assert!(log.syncs() - before <= 12, "{} syncs for 500 declarations", log.syncs() - before);
}

#[test]
fn all_that_changes_topology_is_pipelined() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    node.send_on(on, durable_queue("q"));
    node.send_on(on, exchange_methods::Declare { durable: true, ..exchange("e", "fanout") });
    node.send_on(on, exchange_methods::Declare { durable: true, ..exchange("f", "fanout") });
    node.send_on(on, bind("q", "e", ""));
    let (destination, source) = ("e".into(), "f".into());
    node.send_on(on, exchange_methods::Bind { destination, source, ..Default::default() });
    node.send_on(on, passive("q"));
    node.send_on(on, queue("transient"));
    let (destination, source) = ("e".into(), "f".into());
    node.send_on(on, exchange_methods::Unbind { destination, source, ..Default::default() });
    let (queue, exchange) = ("q".into(), "e".into());
    node.send_on(on, queue_methods::Unbind { queue, exchange, ..Default::default() });
    node.send_on(on, exchange_methods::Delete { exchange: "f".into(), ..Default::default() });
    node.send_on(on, queue_methods::Purge { queue: "q".into(), no_wait: false });
    node.send_on(on, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    node.settle();
    assert_eq!(node.all(on.0), [], "answered before the disk has it");
    assert!(node.session(on.0).wants_input(), "all of it is carried out");
    node.is_disk_slow = false;
    node.settle();
    let expected: [Method; 12] = [
        declared("q", 0, 0),
        exchange_methods::DeclareOk {}.into(),
        exchange_methods::DeclareOk {}.into(),
        queue_methods::BindOk {}.into(),
        exchange_methods::BindOk {}.into(),
        declared("q", 0, 0),
        declared("transient", 0, 0),
        exchange_methods::UnbindOk {}.into(),
        queue_methods::UnbindOk {}.into(),
        exchange_methods::DeleteOk {}.into(),
        queue_methods::PurgeOk { message_count: 0 }.into(),
        queue_methods::DeleteOk { message_count: 0 }.into(),
    ];
    assert_eq!(node.methods(on.0), expected);
}

#[test]
fn what_fails_behind_answers_that_wait_closes_the_channel_behind_them() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    declare_queues(&mut node, on, 2);
    node.send_on(on, bind("q0", "no such exchange", ""));
    node.send_on(on, durable_queue("behind"));
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert!(!node.session(on.0).wants_input(), "nothing is read behind the failure");
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.next(on.0).method, declared("q0", 0, 0));
    assert_eq!(node.next(on.0).method, declared("q1", 0, 0));
    let (code, _, class, method) = node.closed(on.0);
    assert_eq!((code, class, method), (404, 50, 20));
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.queues(None).len(), 2, "what came behind was not carried out");
    assert!(node.session(on.0).wants_input());
}

#[test]
fn a_queue_just_declared_is_found_and_takes_messages() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.is_disk_slow = true;
    node.send_on(on, queue_methods::Declare { no_wait: true, ..durable_queue("q") });
    node.publish_to(on, "q", "x");
    node.send_on(on, passive("q"));
    node.settle();
    assert_eq!(node.methods(on.0), [declared("q", 1, 0)]);
    node.send_on(other, durable_queue("r"));
    node.publish_to(on, "r", "x");
    node.settle();
    assert_eq!(node.broker.queue("/", "r").unwrap().messages_ready, 1);
}

#[test]
fn declarations_that_wait_stop_the_reading_at_the_limit() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.is_disk_slow = true;
    declare_queues(&mut node, on, limits::PROMISES_WAITING_MAX - 1);
    node.settle();
    assert!(node.session(on.0).wants_input());
    assert_eq!(node.call(other, basic::Qos::default()), basic::QosOk {}.into());
    declare_queues(&mut node, on, limits::PROMISES_WAITING_MAX + 100);
    node.settle();
    assert!(!node.session(on.0).wants_input());
    assert_eq!(node.broker.queues(None).len(), limits::PROMISES_WAITING_MAX - 1);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.all(on.0).len(), 2 * limits::PROMISES_WAITING_MAX + 99);
    assert!(node.session(on.0).wants_input());
}

#[test]
fn a_channel_that_is_closed_before_its_answers_gets_none() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.is_disk_slow = true;
    declare_queues(&mut node, on, 3);
    node.send_on(on, quelea_amqp_codec::method::channel::Close::default());
    node.settle();
    node.is_disk_slow = false;
    node.settle();
    let close_ok = quelea_amqp_codec::method::channel::CloseOk {};
    assert_eq!(node.methods(on.0), [close_ok.into()]);
    let on = node.open_channel(on.0, on.1);
    assert_eq!(node.call(on, passive("q2")), declared("q2", 0, 0));
}

#[test]
fn every_declare_ok_that_came_survives_the_machine() {
    for (turns, seed) in (1..40).zip(0..) {
        for survival in [Survival::Nothing, Survival::Prefix, Survival::Random] {
            let log = FakeDisk::new();
            let mut node = SessionTest::on_log(log.clone());
            let on = node.channel();
            declare_queues(&mut node, on, 60);
            node.send_on(on, durable_queue("last"));
            for _ in 0..turns {
                node.turn();
            }
            declare_queues(&mut node, on, 100);
            node.turn();
            let answered = node.methods(on.0);
            let node = SessionTest::on_log(log.crash(survival, seed));
            for answer in answered {
                let Method::QueueDeclareOk(ok) = answer else { panic!("{answer:?}") };
                let found = node.broker.queue("/", &ok.queue);
                assert!(found.is_some(), "{} is lost after {turns} turns", &*ok.queue);
            }
        }
    }
}
