//! Consumers: consume, cancel, qos, flow, and the broker's own cancel.

use quelea_amqp_codec::method::{Method, basic, queue as queue_methods};
use quelea_model::{Properties, Table};

use crate::declaring::queue;
use crate::session_test::{On, Received, SessionTest, to};

pub(crate) fn consume(queue: &str, tag: &str) -> basic::Consume {
    basic::Consume { queue: queue.into(), consumer_tag: tag.into(), ..Default::default() }
}

pub(crate) fn consuming(tag: &str) -> Method {
    basic::ConsumeOk { consumer_tag: tag.into() }.into()
}

/// Returns the delivery tags and bodies of what was delivered.
pub(crate) fn deliveries(received: &[Received]) -> Vec<(u64, &str)> {
    let deliveries = received.iter().filter_map(|received| match &received.method {
        Method::BasicDeliver(deliver) => Some((deliver.delivery_tag, received.body())),
        _ => None,
    });
    deliveries.collect()
}

fn publish_all(node: &mut SessionTest, on: On, bodies: &[&str]) {
    for body in bodies {
        node.publish_to(on, "q", body);
    }
    node.settle();
}

#[test]
fn a_consumer_gets_what_is_there_and_what_comes() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    publish_all(&mut node, on, &["a"]);
    assert_eq!(node.call(on, consume("q", "me")), consuming("me"));
    publish_all(&mut node, on, &["b"]);
    let received = node.all(on.0);
    assert_eq!(deliveries(&received), [(1, "a"), (2, "b")]);
    let deliver = basic::Deliver {
        consumer_tag: "me".into(),
        delivery_tag: 1,
        redelivered: false,
        exchange: "".into(),
        routing_key: "q".into(),
    };
    assert_eq!(received[0].method, deliver.into());
}

#[test]
fn consume_ok_comes_before_the_first_delivery() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    publish_all(&mut node, on, &["a"]);
    node.send_on(on, consume("q", "me"));
    node.settle();
    let received = node.all(on.0);
    assert_eq!(received[0].method, consuming("me"));
    assert_eq!(deliveries(&received), [(1, "a")]);
}

#[test]
fn the_broker_makes_up_a_tag() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    let Method::BasicConsumeOk(answer) = node.call(on, consume("q", "")) else {
        panic!("consume-ok");
    };
    assert!(answer.consumer_tag.starts_with("amq.ctag-"));
    node.send_on(on, basic::Consume { no_wait: true, ..consume("q", "silent") });
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.consumers(None).len(), 2);
}

#[test]
fn nothing_is_delivered_after_cancel_ok() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(on, queue("q"));
    node.call(on, consume("q", "me"));
    // All is one read, and the get has the consumers served first: deliveries are under way when
    // the cancel is carried out.
    for body in ["a", "b", "c"] {
        node.publish_to(on, "q", body);
    }
    node.send_on(other, basic::Get { queue: "q".into(), no_ack: true });
    node.send_on(on, basic::Cancel { consumer_tag: "me".into(), no_wait: false });
    node.publish_to(on, "q", "d");
    node.settle();
    let received = node.all(on.0);
    assert_eq!(deliveries(&received).len(), 3);
    let last = received.iter().rfind(|received| received.channel == 1).expect("cancel-ok");
    assert_eq!(last.method, basic::CancelOk { consumer_tag: "me".into() }.into());
    assert_eq!(node.broker.consumers(None).len(), 0);
}

#[test]
fn cancelling_what_is_not_there_is_no_error() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let cancel = basic::Cancel { consumer_tag: "ghost".into(), no_wait: false };
    let answer = basic::CancelOk { consumer_tag: "ghost".into() };
    assert_eq!(node.call(on, cancel), answer.into());
    node.send_on(on, basic::Cancel { consumer_tag: "ghost".into(), no_wait: true });
    node.settle();
    assert_eq!(node.all(on.0), []);
}

#[test]
fn prefetch_holds_deliveries_back_until_they_are_acknowledged() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    let qos = basic::Qos { prefetch_count: 2, ..Default::default() };
    assert_eq!(node.call(on, qos), basic::QosOk {}.into());
    node.call(on, consume("q", "me"));
    publish_all(&mut node, on, &["a", "b", "c", "d"]);
    assert_eq!(deliveries(&node.all(on.0)), [(1, "a"), (2, "b")]);
    node.send_on(on, basic::Ack { delivery_tag: 1, multiple: false });
    node.settle();
    assert_eq!(deliveries(&node.all(on.0)), [(3, "c")]);
    node.send_on(on, basic::Ack { delivery_tag: 0, multiple: true });
    node.settle();
    assert_eq!(deliveries(&node.all(on.0)), [(4, "d")]);
}

#[test]
fn a_consumer_whose_queue_goes_is_told_if_it_wants_to_know() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let deaf = node.accept(true);
    node.open(deaf, "guest", "/", Table::new());
    node.all(deaf);
    let deaf = node.open_channel(deaf, 1);
    node.call(on, queue("q"));
    node.call(on, consume("q", "listens"));
    node.call(deaf, consume("q", "deaf"));
    let owner = node.channel();
    node.call(owner, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    let cancel = basic::Cancel { consumer_tag: "listens".into(), no_wait: true };
    assert_eq!(node.methods(on.0), [cancel.into()]);
    assert_eq!(node.all(deaf.0), []);
}

#[test]
fn two_channels_have_tags_and_numbers_of_their_own() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(on, queue("q"));
    assert_eq!(node.call(on, consume("q", "me")), consuming("me"));
    assert_eq!(node.call(other, consume("q", "me")), consuming("me"));
    publish_all(&mut node, on, &["a", "b"]);
    let mut received: Vec<_> = node.all(on.0).into_iter().map(|r| (r.channel, r.method)).collect();
    received.sort_by_key(|(channel, _)| *channel);
    for (at, (channel, method)) in received.iter().enumerate() {
        assert_eq!(*channel, at as u16 + 1);
        assert!(matches!(method, Method::BasicDeliver(deliver) if deliver.delivery_tag == 1));
    }
}

#[test]
fn a_message_is_delivered_again_with_its_mark() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.publish(on, to("q"), &Properties::default(), "a");
    node.call(on, consume("q", "me"));
    node.all(on.0);
    node.send_on(on, basic::Reject { delivery_tag: 1, requeue: true });
    node.settle();
    let again = node.next(on.0);
    assert!(
        matches!(again.method, Method::BasicDeliver(deliver) if deliver.redelivered && deliver.delivery_tag == 2)
    );
}
