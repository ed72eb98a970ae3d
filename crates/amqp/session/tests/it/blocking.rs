//! Publishers are held back while the disk is full, and while fast consumers have too much before them.

use quelea_amqp_codec::method::{Method, basic, connection};
use quelea_model::{Properties, Table};

use crate::consuming::{consume, deliveries};
use crate::declaring::{durable_queue, queue};
use crate::session_test::{On, SessionTest, to};

fn blocked(method: &Method) -> bool {
    matches!(method, Method::ConnectionBlocked(_))
}

/// Returns a client that has published to the durable queue `q`.
fn publisher(node: &mut SessionTest) -> On {
    let on = node.channel();
    node.call(on, durable_queue("q"));
    node.publish_persistent(on, "q", "before");
    node.settle();
    on
}

#[test]
fn publishers_are_notified_and_held_back_until_the_disk_has_space() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.disk_is_full(true);
    node.settle();
    let blocked = node.next(on.0);
    assert_eq!(blocked.channel, 0);
    let Method::ConnectionBlocked(connection::Blocked { reason }) = blocked.method else {
        panic!("{blocked:?}");
    };
    assert!(!reason.is_empty());
    assert!(node.session(on.0).wants_input(), "it has not tried to publish since");
    node.publish_persistent(on, "q", "during");
    node.publish_persistent(on, "q", "during");
    node.settle();
    assert!(!node.session(on.0).wants_input());
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 1);
    node.disk_is_full(false);
    node.settle();
    assert_eq!(node.methods(on.0), [connection::Unblocked {}.into()]);
    assert!(node.session(on.0).wants_input());
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 3);
}

#[test]
fn who_only_consumes_goes_on_and_is_not_notified() {
    let mut node = SessionTest::new();
    let publisher = publisher(&mut node);
    let consumer = node.channel();
    node.disk_is_full(true);
    node.settle();
    node.call(consumer, consume("q", "me"));
    assert_eq!(deliveries(&node.all(consumer.0)), [(1, "before")]);
    node.send_on(consumer, basic::Ack { delivery_tag: 1, multiple: false });
    node.settle();
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_unacknowledged, 0);
    node.disk_is_full(false);
    node.settle();
    assert_eq!(node.all(consumer.0), []);
    assert_eq!(node.all(publisher.0).len(), 2);
}

#[test]
fn who_connects_meanwhile_is_notified_when_it_publishes() {
    let mut node = SessionTest::new();
    publisher(&mut node);
    node.disk_is_full(true);
    node.settle();
    let late = node.channel();
    node.call(late, basic::Qos::default());
    node.publish_persistent(late, "q", "late");
    node.settle();
    assert!(node.methods(late.0).iter().all(blocked));
    node.disk_is_full(false);
    node.settle();
    assert_eq!(node.methods(late.0), [connection::Unblocked {}.into()]);
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 2);
}

#[test]
fn who_does_not_understand_the_notice_is_held_back_in_silence() {
    let mut node = SessionTest::new();
    publisher(&mut node);
    let client = node.accept(true);
    node.open(client, "guest", "/", Table::new());
    node.all(client);
    let on = node.open_channel(client, 1);
    node.disk_is_full(true);
    node.settle();
    node.publish_persistent(on, "q", "late");
    node.settle();
    assert!(!node.session(client).wants_input());
    node.disk_is_full(false);
    node.settle();
    assert_eq!(node.all(client), []);
    assert!(node.session(client).wants_input());
}

#[test]
fn a_blocked_client_is_not_dropped_for_heartbeats_that_nobody_reads() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.disk_is_full(true);
    node.settle();
    node.publish_persistent(on, "q", "during");
    node.settle();
    assert!(!node.session(on.0).wants_input());
    node.advance(600_000);
    assert!(!node.session(on.0).is_finished());
    assert!(node.heartbeats(on.0) > 10);
    node.disk_is_full(false);
    node.advance(1);
    assert!(!node.session(on.0).is_finished());
    node.advance(600_000);
    assert!(node.session(on.0).is_finished(), "heartbeats count again");
}

#[test]
fn a_publisher_to_a_memory_queue_is_held_back_too() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.call(on, queue("m"));
    node.disk_is_full(true);
    node.settle();
    node.publish_to(on, "m", "x");
    node.settle();
    assert!(node.session(on.0).is_stalled());
    node.disconnect(on.0);
    assert_eq!(node.broker.connections().len(), 0);
}

#[test]
fn only_a_publish_that_the_broker_does_not_take_waits_for_room() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.is_disk_slow = true;
    node.send_on(on, durable_queue("r"));
    node.publish_to(on, "q", "behind an answer");
    node.settle();
    assert!(node.session(on.0).is_stalled());
    assert_eq!(node.session(on.0).awaited_bytes(), None);
    node.is_disk_slow = false;
    node.settle();
    node.disk_is_full(true);
    node.settle();
    node.publish_to(on, "q", "too much");
    node.settle();
    assert_eq!(node.session(on.0).awaited_bytes(), Some("too much".len()));
    node.disk_is_full(false);
    node.settle();
    assert!(!node.session(on.0).is_stalled());
    assert_eq!(node.session(on.0).awaited_bytes(), None);
    node.reads(on.0, false);
    for _ in 0..200 {
        let mandatory = basic::Publish { mandatory: true, ..to("nobody") };
        node.publish(on, mandatory, &Properties::default(), &"x".repeat(10_000));
    }
    node.settle();
    assert!(node.session(on.0).is_stalled(), "it reads none of what comes back");
    assert_eq!(node.session(on.0).awaited_bytes(), None);
}

/// Publishes and takes for so many milliseconds, a lot more than is taken.
fn flood(node: &mut SessionTest, publisher: On, consumer: On, ms: u64) {
    for _ in 0..ms {
        for _ in 0..100 {
            node.publish_to(publisher, "q", "m");
        }
        take(node, consumer, 1);
    }
}

/// A fast consumer takes for so many milliseconds.
fn take(node: &mut SessionTest, consumer: On, ms: u64) {
    for _ in 0..ms {
        node.settle();
        if let Some((last, _)) = deliveries(&node.all(consumer.0)).last() {
            node.send_on(consumer, basic::Ack { delivery_tag: *last, multiple: true });
        }
        node.advance(1);
    }
}

#[test]
fn a_publisher_ahead_of_a_fast_consumer_is_read_less() {
    let mut node = SessionTest::new();
    let (publisher, consumer) = (publisher(&mut node), node.channel());
    node.send_on(consumer, basic::Qos { prefetch_count: 20, ..basic::Qos::default() });
    node.call(consumer, consume("q", "me"));
    flood(&mut node, publisher, consumer, 1_000);
    let ready = node.broker.queue("/", "q").unwrap().messages_ready;
    assert!(ready < 10_000, "{ready} of 100,000 wait in the queue");
    let counted = node.broker.overview().counters;
    assert!(counted.slowed > 0 && counted.publish < 100_000, "the rest waits outside: {counted:?}");
    // What else it sends waits behind that, and is answered: it is read again and again.
    node.send_on(publisher, queue("other"));
    for _ in 0..100 {
        take(&mut node, consumer, 100);
    }
    let answers = node.methods(publisher.0);
    assert!(matches!(answers[..], [Method::QueueDeclareOk(_)]), "{answers:?}");
    assert_eq!(node.broker.overview().counters.publish, 100_001);
}
