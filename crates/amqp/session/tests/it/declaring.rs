//! Exchanges, queues and bindings: every method with and without its answer.

use quelea_amqp_codec::method::{Method, access, basic, channel, exchange, queue};
use quelea_model::{Properties, Table, Value};

use crate::session_test::{On, SessionTest};

pub(crate) fn exchange(name: &str, kind: &str) -> exchange::Declare {
    exchange::Declare { exchange: name.into(), kind: kind.into(), ..Default::default() }
}

pub(crate) fn queue(name: &str) -> queue::Declare {
    queue::Declare { queue: name.into(), ..Default::default() }
}

pub(crate) fn durable_queue(name: &str) -> queue::Declare {
    queue::Declare { durable: true, ..queue(name) }
}

pub(crate) fn exclusive_queue(name: &str) -> queue::Declare {
    queue::Declare { exclusive: true, ..queue(name) }
}

pub(crate) fn bind(queue: &str, exchange: &str, key: &str) -> queue::Bind {
    queue::Bind {
        queue: queue.into(),
        exchange: exchange.into(),
        routing_key: key.into(),
        ..Default::default()
    }
}

pub(crate) fn declared(name: &str, message_count: u32, consumer_count: u32) -> Method {
    queue::DeclareOk { queue: name.into(), message_count, consumer_count }.into()
}

fn passive(name: &str) -> queue::Declare {
    queue::Declare { passive: true, ..queue(name) }
}

pub(crate) fn count(node: &mut SessionTest, on: On, name: &str) -> u32 {
    match node.call(on, passive(name)) {
        Method::QueueDeclareOk(declared) => declared.message_count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exchange_is_declared_found_and_deleted() {
    let mut node = SessionTest::new();
    let on = node.channel();
    assert_eq!(node.call(on, exchange("logs", "topic")), exchange::DeclareOk {}.into());
    let found = exchange::Declare { passive: true, ..exchange("logs", "topic") };
    assert_eq!(node.call(on, found), exchange::DeclareOk {}.into());
    let delete = exchange::Delete { exchange: "logs".into(), ..Default::default() };
    assert_eq!(node.call(on, delete.clone()), exchange::DeleteOk {}.into());
    assert_eq!(node.call(on, delete), exchange::DeleteOk {}.into(), "deleting twice is no error");
}

#[test]
fn a_queue_is_declared_found_purged_and_deleted() {
    let mut node = SessionTest::new();
    let on = node.channel();
    assert_eq!(node.call(on, queue("q")), declared("q", 0, 0));
    for body in ["a", "b", "c"] {
        node.publish_to(on, "q", body);
    }
    assert_eq!(node.call(on, passive("q")), declared("q", 3, 0));
    let purge = queue::Purge { queue: "q".into(), no_wait: false };
    assert_eq!(node.call(on, purge), queue::PurgeOk { message_count: 3 }.into());
    node.publish_to(on, "q", "d");
    let delete = queue::Delete { queue: "q".into(), ..Default::default() };
    assert_eq!(node.call(on, delete.clone()), queue::DeleteOk { message_count: 1 }.into());
    assert_eq!(node.call(on, delete), queue::DeleteOk { message_count: 0 }.into());
}

#[test]
fn the_broker_makes_up_a_name_and_the_channel_remembers_it() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let Method::QueueDeclareOk(answer) = node.call(on, exclusive_queue("")) else {
        panic!("declare-ok");
    };
    assert!(answer.queue.starts_with("amq.gen-"));
    assert_eq!(node.call(on, bind("", "amq.fanout", "")), queue::BindOk {}.into());
    node.publish(
        on,
        basic::Publish { exchange: "amq.fanout".into(), ..Default::default() },
        &Properties::default(),
        "hello",
    );
    let purge = queue::Purge::default();
    assert_eq!(node.call(on, purge), queue::PurgeOk { message_count: 1 }.into());
}

#[test]
fn a_binding_routes_until_it_is_removed() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    assert_eq!(node.call(on, bind("q", "amq.direct", "k")), queue::BindOk {}.into());
    let publish = || basic::Publish {
        exchange: "amq.direct".into(),
        routing_key: "k".into(),
        ..Default::default()
    };
    node.publish(on, publish(), &Properties::default(), "in");
    let unbind = queue::Unbind {
        queue: "q".into(),
        exchange: "amq.direct".into(),
        routing_key: "k".into(),
        arguments: Table::new(),
    };
    assert_eq!(node.call(on, unbind), queue::UnbindOk {}.into());
    node.publish(on, publish(), &Properties::default(), "out");
    assert_eq!(count(&mut node, on, "q"), 1);
}

#[test]
fn exchanges_are_bound_to_exchanges() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, exchange("inner", "fanout"));
    node.call(on, queue("q"));
    node.call(on, bind("q", "inner", ""));
    let ends = || exchange::Bind {
        destination: "inner".into(),
        source: "amq.topic".into(),
        routing_key: "a.#".into(),
        ..Default::default()
    };
    assert_eq!(node.call(on, ends()), exchange::BindOk {}.into());
    let publish = || basic::Publish {
        exchange: "amq.topic".into(),
        routing_key: "a.b.c".into(),
        ..Default::default()
    };
    node.publish(on, publish(), &Properties::default(), "through");
    let exchange::Bind { destination, source, routing_key, no_wait, arguments } = ends();
    let unbind = exchange::Unbind { destination, source, routing_key, no_wait, arguments };
    assert_eq!(node.call(on, unbind), exchange::UnbindOk {}.into());
    node.publish(on, publish(), &Properties::default(), "lost");
    assert_eq!(count(&mut node, on, "q"), 1);
}

#[test]
fn a_topic_pattern_beyond_the_limit_is_refused_with_the_limit() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, durable_queue("q"));
    let pattern = "#.a.".repeat(8) + "#";
    let text = format!(
        "PRECONDITION_FAILED - a topic pattern may have 8 separate '#', this one has 9: \
         exchange 'amq.topic' in vhost '/', pattern '{pattern}'"
    );
    assert_eq!(node.refused(on, bind("q", "amq.topic", &pattern)), (406, text, 50, 20));
    // With one less it is bound.
    let on = node.channel();
    let bound = node.call(on, bind("q", "amq.topic", &pattern[4..]));
    assert_eq!(bound, queue::BindOk {}.into());
}

#[test]
fn who_does_not_wait_gets_no_answer() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let no_wait = true;
    node.send_on(on, exchange::Declare { no_wait, ..exchange("e", "fanout") });
    node.send_on(on, exchange::Declare { no_wait, ..exchange("f", "fanout") });
    node.send_on(on, queue::Declare { no_wait, ..durable_queue("q") });
    node.send_on(on, queue::Bind { no_wait, ..bind("q", "e", "") });
    let (destination, source) = ("e".into(), "f".into());
    node.send_on(on, exchange::Bind { destination, source, no_wait, ..Default::default() });
    let (destination, source) = ("e".into(), "f".into());
    node.send_on(on, exchange::Unbind { destination, source, no_wait, ..Default::default() });
    node.send_on(on, queue::Purge { queue: "q".into(), no_wait });
    node.send_on(on, exchange::Delete { exchange: "f".into(), no_wait, ..Default::default() });
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.call(on, passive("q")), declared("q", 0, 0));
    node.send_on(on, queue::Delete { queue: "q".into(), no_wait, ..Default::default() });
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.queues(None).len(), 0);
}

#[test]
fn a_queue_knows_its_arguments() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let arguments = Table::from_iter([("x-max-length", Value::I32(2))]);
    node.call(on, queue::Declare { arguments, ..queue("short") });
    for body in ["a", "b", "c"] {
        node.publish_to(on, "short", body);
    }
    assert_eq!(count(&mut node, on, "short"), 2);
}

#[test]
fn realms_and_flow_are_answered() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let request = access::Request { realm: "/data".into(), ..Default::default() };
    assert_eq!(node.call(on, request), access::RequestOk { ticket: 1 }.into());
    let flow = || channel::Flow { active: true };
    assert_eq!(node.call(on, flow()), channel::FlowOk { active: true }.into());
    let (code, text, class, method) = node.refused(on, channel::Flow { active: false });
    assert_eq!((code, class, method), (540, 20, 20));
    assert_eq!(text, "NOT_IMPLEMENTED - active=false");
}

#[test]
fn line_ends_are_no_part_of_a_name() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let Method::QueueDeclareOk(declared) = node.call(on, queue("a\r\nqueue\n")) else {
        panic!("it is declared");
    };
    assert_eq!(&*declared.queue, "aqueue");
    node.call(on, exchange("an\nexchange", "fanout"));
    node.call(on, bind("aqueue\n", "anexchange\r\n", ""));
    assert_eq!(count(&mut node, on, "aqueue"), 0);
    let delete = exchange::Delete { exchange: "anexchange\n".into(), ..Default::default() };
    node.call(on, delete);
    let delete = queue::Delete { queue: "aqueue\n".into(), ..Default::default() };
    node.call(on, delete);
    assert!(node.broker.queue("/", "aqueue").is_none());
}
