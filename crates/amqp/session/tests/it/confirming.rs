//! Publisher confirms.

use quelea_amqp_codec::method::{Method, basic, confirm, queue as queue_methods};
use quelea_model::{Properties, Table, Value};

use crate::declaring::{durable_queue, queue};
use crate::session_test::{On, SessionTest, to};

fn ack(delivery_tag: u64, multiple: bool) -> Method {
    basic::Ack { delivery_tag, multiple }.into()
}

fn nack(delivery_tag: u64, multiple: bool) -> Method {
    basic::Nack { delivery_tag, multiple, requeue: false }.into()
}

/// Returns a channel in confirm mode and a durable queue `q`.
fn publisher(node: &mut SessionTest) -> On {
    let on = node.channel();
    assert_eq!(node.call(on, confirm::Select { no_wait: false }), confirm::SelectOk {}.into());
    node.call(on, durable_queue("q"));
    on
}

#[test]
fn what_waits_for_nothing_is_confirmed_at_the_turns_end() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.publish_to(on, "q", "a");
    node.settle();
    assert_eq!(node.methods(on.0), [ack(1, false)]);
    for _ in 0..100 {
        node.publish_to(on, "q", "more");
    }
    node.settle();
    assert_eq!(node.methods(on.0), [ack(101, true)]);
}

#[test]
fn persistent_messages_are_confirmed_when_they_are_on_the_disk() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.is_disk_slow = true;
    for _ in 0..10 {
        node.publish_persistent(on, "q", "safe");
    }
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert!(node.session(on.0).waits_for_progress());
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [ack(10, true)]);
    assert!(!node.session(on.0).waits_for_progress());
}

#[test]
fn a_transient_message_does_not_overtake_a_persistent_one() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.is_disk_slow = true;
    node.publish_persistent(on, "q", "safe");
    node.publish_to(on, "q", "quick");
    node.settle();
    assert_eq!(node.all(on.0), []);
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [ack(2, true)]);
}

#[test]
fn each_channel_counts_for_itself() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    let other = node.open_channel(on.0, 2);
    let plain = node.open_channel(on.0, 3);
    node.call(other, confirm::Select { no_wait: false });
    for (on, count) in [(on, 2), (other, 3), (plain, 4)] {
        for _ in 0..count {
            node.publish_persistent(on, "q", "x");
        }
    }
    node.settle();
    let mut confirms: Vec<_> = node.all(on.0).into_iter().map(|r| (r.channel, r.method)).collect();
    confirms.sort_by_key(|(channel, _)| *channel);
    assert_eq!(confirms, [(1, ack(2, true)), (2, ack(3, true))]);
}

#[test]
fn counting_starts_with_confirm_select_and_never_again() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.publish_to(on, "q", "before");
    node.send_on(on, confirm::Select { no_wait: true });
    node.publish_to(on, "q", "first");
    node.settle();
    assert_eq!(node.methods(on.0), [ack(1, false)]);
    assert_eq!(node.call(on, confirm::Select { no_wait: false }), confirm::SelectOk {}.into());
    node.publish_to(on, "q", "second");
    node.settle();
    assert_eq!(node.methods(on.0), [ack(2, false)]);
}

#[test]
fn a_returned_message_is_confirmed_after_its_return() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    let publish = basic::Publish { mandatory: true, ..to("nowhere") };
    node.publish(on, publish, &Properties::default(), "lost");
    node.settle();
    let methods = node.methods(on.0);
    assert!(matches!(&methods[0], Method::BasicReturn(returned) if returned.reply_code == 312));
    assert_eq!(methods[1..], [ack(1, false)]);
}

#[test]
fn rejected_messages_are_told_in_their_place() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    let arguments = Table::from_iter([
        ("x-max-length", Value::I32(1)),
        ("x-overflow", Value::text("reject-publish")),
    ]);
    node.call(on, queue_methods::Declare { arguments, ..durable_queue("full") });
    node.is_disk_slow = true;
    node.publish_persistent(on, "q", "1");
    node.publish_persistent(on, "full", "2");
    node.publish_persistent(on, "full", "3 is rejected");
    node.publish_persistent(on, "full", "4 is rejected");
    node.publish_persistent(on, "q", "5");
    node.settle();
    assert_eq!(node.all(on.0), [], "nothing is said out of order");
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.methods(on.0), [ack(2, true), nack(4, true), ack(5, false)]);
}

#[test]
fn confirms_are_forgotten_with_their_channel() {
    let mut node = SessionTest::new();
    let on = publisher(&mut node);
    node.is_disk_slow = true;
    node.publish_persistent(on, "q", "1");
    let missing = basic::Publish { exchange: "missing".into(), ..Default::default() };
    node.publish(on, missing, &Properties::default(), "2");
    node.settle();
    let (code, text, class, method) = node.closed(on.0);
    assert_eq!((code, class, method), (404, 60, 40));
    assert_eq!(text, "NOT_FOUND - no exchange 'missing' in vhost '/'");
    node.is_disk_slow = false;
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert!(!node.session(on.0).waits_for_progress());
}
