//! Channels and connections end: by either side, by the operator, by the socket.

use quelea_amqp_codec::method::{Method, basic, channel, connection, queue as queue_methods};
use quelea_amqp_session::Notice;
use quelea_broker::CloseReason;

use crate::consuming::consume;
use crate::declaring::{count, declared, durable_queue, exclusive_queue, queue};
use crate::session_test::{On, SessionTest};

fn close_channel() -> channel::Close {
    channel::Close { reply_code: 200, reply_text: "bye".into(), ..Default::default() }
}

fn close() -> connection::Close {
    connection::Close { reply_code: 200, reply_text: "bye".into(), ..Default::default() }
}

#[test]
fn a_channel_is_closed_and_opened_again() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.publish_to(on, "q", "a");
    node.call(on, basic::Get { queue: "q".into(), no_ack: false });
    assert_eq!(node.call(on, close_channel()), channel::CloseOk {}.into());
    assert_eq!(node.broker.channels().len(), 0);
    let on = node.open_channel(on.0, on.1);
    assert_eq!(count(&mut node, on, "q"), 1, "what was not acknowledged went back");
}

#[test]
fn exclusive_queues_are_gone_before_close_ok() {
    let mut node = SessionTest::new();
    let (first, second) = (node.channel(), node.channel());
    node.call(first, exclusive_queue("mine"));
    let (code, ..) =
        node.refused(second, queue_methods::Purge { queue: "mine".into(), no_wait: false });
    assert_eq!(code, 405);
    node.send_on(second, channel::CloseOk {});
    let second = node.open_channel(second.0, 2);
    node.send(first.0, close());
    // No turn has passed, close-ok is in the output, and the queue's name is free.
    node.receive_only(first.0);
    assert_eq!(node.broker.queues(None).len(), 0);
    assert!(!node.session(first.0).output().is_empty());
    assert!(node.session(first.0).is_finished());
    assert_eq!(node.call(second, exclusive_queue("mine")), declared("mine", 0, 0));
    assert_eq!(node.methods(first.0), [connection::CloseOk {}.into()]);
}

#[test]
fn a_socket_that_breaks_releases_all() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, exclusive_queue("mine"));
    node.call(on, durable_queue("q"));
    node.publish_to(on, "q", "a");
    node.call(on, consume("q", "me"));
    node.disconnect(on.0);
    assert_eq!(node.session(on.0).connection_id(), None);
    let other = node.channel();
    assert_eq!(count(&mut node, other, "q"), 1);
    assert_eq!(node.call(other, exclusive_queue("mine")), declared("mine", 0, 0));
}

#[test]
fn deliveries_for_a_closed_channel_are_dropped_and_counted_as_taken() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(on, queue("q"));
    node.call(other, basic::Consume { no_ack: true, ..consume("q", "me") });
    for _ in 0..100 {
        node.publish_to(on, "q", &"x".repeat(1000));
    }
    node.send_on(other, close_channel());
    node.settle();
    let last = node.all(on.0).pop().expect("close-ok");
    assert_eq!(last.method, channel::CloseOk {}.into());
    assert_eq!(node.broker.connections()[0].output_waiting_bytes, 0);
}

#[test]
fn deliveries_for_a_closed_channel_do_not_reach_its_successor() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(on, queue("q"));
    node.call(other, consume("q", "me"));
    // All is one read, and the get has the consumer served while it is still there.
    node.publish_to(on, "q", "a");
    node.publish_to(on, "q", "b");
    node.send_on(on, basic::Get { queue: "q".into(), no_ack: true });
    node.send_on(other, close_channel());
    node.send_on(other, channel::Open {});
    node.settle();
    let methods = node.methods(on.0);
    assert_eq!(methods[..2], [channel::CloseOk {}.into(), channel::OpenOk {}.into()]);
    assert_eq!(methods[2..], [basic::GetEmpty {}.into()]);
    assert_eq!(count(&mut node, on, "q"), 2);
}

#[test]
fn the_broker_says_goodbye_when_it_stops() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.shut_down();
    let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
    assert_eq!(node.closed(on.0), (320, text.to_owned(), 0, 0));
    assert_eq!(node.broker.connections().len(), 0);
    assert!(!node.session(on.0).is_finished(), "it waits for close-ok");
    node.send(on.0, connection::CloseOk {});
    node.settle();
    assert!(node.session(on.0).is_finished());
}

#[test]
fn an_operator_closes_a_connection() {
    let mut node = SessionTest::new();
    let (on, other) = (node.channel(), node.channel());
    let connection = node.session(on.0).connection_id().unwrap();
    let reason = CloseReason::Administrator { reason: "Closed via management plugin".to_owned() };
    assert!(node.broker.request_close(connection, reason));
    node.settle();
    let text = "CONNECTION_FORCED - Closed via management plugin";
    assert_eq!(node.closed(on.0), (320, text.to_owned(), 0, 0));
    assert!(matches!(node.notices(on.0).last(), Some(Notice::Closed(_))));
    assert_eq!(node.call(other, basic::Qos::default()), basic::QosOk {}.into());
}

#[test]
fn what_comes_after_a_close_is_not_looked_at() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.send_on(on, queue_methods::Purge { queue: "missing".into(), no_wait: false });
    node.send_on(on, queue("q"));
    node.publish_to(on, "q", "a");
    node.settle();
    let (code, text, class, method) = node.closed(on.0);
    assert_eq!((code, class, method), (404, 50, 30));
    assert_eq!(text, "NOT_FOUND - no queue 'missing' in vhost '/'");
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.queues(None).len(), 0);
    node.send_on(on, channel::CloseOk {});
    let on = node.open_channel(on.0, on.1);
    assert_eq!(node.call(on, queue("q")), declared("q", 0, 0));
    let expected = "channel 1 closed: NOT_FOUND - no queue 'missing' in vhost '/'";
    assert!(node.notices(on.0).iter().any(|notice| notice.to_string() == expected));
}

#[test]
fn a_soft_error_leaves_the_other_channels_alone() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.refused(on, queue_methods::Purge { queue: "missing".into(), no_wait: false });
    assert_eq!(node.call(other, basic::Qos::default()), basic::QosOk {}.into());
    let (code, text, class, method) =
        node.refused(other, basic::Qos { prefetch_size: 1, ..Default::default() });
    assert_eq!((code, class, method), (540, 60, 10));
    assert_eq!(text, "NOT_IMPLEMENTED - prefetch_size!=0 (1)");
    node.send_on(On(on.0, 3), channel::Open {});
    node.settle();
    assert_eq!(node.all(on.0), []);
    assert_eq!(node.broker.connections().len(), 0);
}

#[test]
fn both_sides_may_close_at_the_same_time() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.shut_down();
    node.send(on.0, close());
    node.settle();
    assert!(matches!(node.next(on.0).method, Method::ConnectionClose(_)));
    node.send(on.0, connection::CloseOk {});
    node.settle();
    assert!(node.session(on.0).is_finished());
}

#[test]
fn both_sides_may_close_a_channel_at_the_same_time() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.send_on(on, queue_methods::Purge { queue: "missing".into(), no_wait: false });
    node.send_on(on, close_channel());
    node.settle();
    let methods = node.methods(on.0);
    assert!(matches!(&methods[0], Method::ChannelClose(_)));
    assert_eq!(methods[1..], [channel::CloseOk {}.into()]);
    node.send_on(on, channel::CloseOk {});
    node.settle();
    let on = node.open_channel(on.0, on.1);
    assert_eq!(node.call(on, basic::Qos::default()), basic::QosOk {}.into());
}

/// Returns a channel with so many deliveries that it has not acknowledged that they do not go back in
/// one turn.
fn holding(node: &mut SessionTest) -> On {
    let on = node.channel();
    node.call(on, durable_queue("q"));
    node.call(on, consume("q", "me"));
    (0..500).for_each(|_| node.publish_to(on, "q", "a"));
    node.settle();
    assert_eq!(node.all(on.0).len(), 500);
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    on
}

#[test]
fn what_was_not_acknowledged_is_back_before_close_ok() {
    let mut node = SessionTest::new();
    let other = node.channel();
    for is_channel in [true, false] {
        let on = holding(&mut node);
        if is_channel {
            node.send_on(on, close_channel())
        } else {
            node.send(on.0, close())
        }
        node.turn();
        node.turn();
        assert_eq!(node.methods(on.0), [], "it is under way");
        node.settle();
        assert_eq!(count(&mut node, other, "q"), 500);
        let answers = node.methods(on.0);
        let is_close_ok = |method: &Method| {
            matches!(method, Method::ChannelCloseOk(_) | Method::ConnectionCloseOk(_))
        };
        assert!(answers.iter().all(is_close_ok) && answers.len() == 1, "{answers:?}");
        node.call(other, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    }
}
