//! basic.publish, basic.return, basic.get.

use bytes::Bytes;
use quelea_amqp_codec::method::{Method, basic, queue as queue_methods};
use quelea_model::{Properties, Table, Value};

use crate::declaring::{bind, exchange, queue};
use crate::session_test::{On, Received, SessionTest, to};

pub(crate) fn get(node: &mut SessionTest, on: On, queue: &str) -> Option<Received> {
    node.send_on(on, basic::Get { queue: queue.into(), no_ack: true });
    node.settle();
    let answer = node.next(on.0);
    match answer.method {
        Method::BasicGetOk(_) => Some(answer),
        Method::BasicGetEmpty(_) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_published_can_be_got_with_its_properties() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    let properties = Properties {
        content_type: Some("text/plain".into()),
        headers: Some(Table::from_iter([("attempt", Value::I32(7))])),
        correlation_id: Some("42".into()),
        ..Properties::default()
    };
    node.publish(on, to("q"), &properties, "hello");
    node.publish_to(on, "q", "world");
    let got = get(&mut node, on, "q").unwrap();
    let answer = basic::GetOk {
        delivery_tag: 1,
        redelivered: false,
        exchange: "".into(),
        routing_key: "q".into(),
        message_count: 1,
    };
    assert_eq!(got.method, answer.into());
    assert_eq!(got.body(), "hello");
    let (wire, _) = got.content.unwrap();
    assert_eq!(Properties::decode(&wire).unwrap(), properties);
    assert_eq!(get(&mut node, on, "q").unwrap().body(), "world");
    assert_eq!(get(&mut node, on, "q"), None);
}

#[test]
fn an_empty_body_is_a_message_too() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.publish_to(on, "q", "");
    assert_eq!(get(&mut node, on, "q").unwrap().body(), "");
    assert_eq!(get(&mut node, on, "q"), None);
}

#[test]
fn a_body_of_many_frames_arrives_whole() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    let body = "0123456789".repeat(50_000);
    node.publish_to(on, "q", &body);
    assert_eq!(get(&mut node, on, "q").unwrap().body(), body);
}

#[test]
fn a_mandatory_message_that_no_queue_takes_comes_back_whole() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, exchange("logs", "topic"));
    let publish = |mandatory| basic::Publish {
        exchange: "logs".into(),
        routing_key: "a.b".into(),
        mandatory,
        ..Default::default()
    };
    let properties = Properties { message_id: Some("m1".into()), ..Properties::default() };
    node.publish(on, publish(true), &properties, "lost");
    node.publish(on, publish(false), &properties, "dropped");
    node.settle();
    let returned = node.next(on.0);
    let method = basic::Return {
        reply_code: 312,
        reply_text: "NO_ROUTE".into(),
        exchange: "logs".into(),
        routing_key: "a.b".into(),
    };
    assert_eq!(returned.method, method.into());
    assert_eq!(returned.body(), "lost");
    let (wire, _) = returned.content.unwrap();
    assert_eq!(Properties::decode(&wire).unwrap(), properties);
    assert_eq!(node.all(on.0), []);
    node.call(on, queue("q"));
    node.call(on, bind("q", "logs", "a.#"));
    node.publish(on, publish(true), &properties, "kept");
    assert_eq!(get(&mut node, on, "q").unwrap().body(), "kept");
}

#[test]
fn channels_interleave_their_content() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(on, queue("q"));
    for number in 0..10 {
        node.publish_to(on, "q", &format!("a{number}"));
        node.publish_to(other, "q", &format!("b{number}"));
    }
    for number in 0..10 {
        assert_eq!(get(&mut node, on, "q").unwrap().body(), format!("a{number}"));
        assert_eq!(get(&mut node, other, "q").unwrap().body(), format!("b{number}"));
    }
}

#[test]
fn gets_that_are_sent_without_waiting_are_answered_in_order() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.publish_to(on, "q", "a");
    node.publish_to(on, "q", "b");
    for _ in 0..3 {
        node.send_on(on, basic::Get { queue: "q".into(), no_ack: true });
    }
    node.send_on(on, basic::Qos::default());
    node.settle();
    let answers = node.all(on.0);
    assert_eq!(answers[0].body(), "a");
    assert_eq!(answers[1].body(), "b");
    assert_eq!(answers[2].method, basic::GetEmpty {}.into());
    assert_eq!(answers[3].method, basic::QosOk {}.into());
}

#[test]
fn a_reply_finds_the_one_who_asked() {
    let mut node = SessionTest::new();
    let (client, server) = (node.channel(), node.channel());
    node.call(server, queue("rpc"));
    let consume = basic::Consume {
        queue: "amq.rabbitmq.reply-to".into(),
        no_ack: true,
        ..Default::default()
    };
    assert!(matches!(node.call(client, consume), Method::BasicConsumeOk(_)));
    let reply_to = Some("amq.rabbitmq.reply-to".into());
    node.publish(client, to("rpc"), &Properties { reply_to, ..Properties::default() }, "2+2");
    let (wire, _) = get(&mut node, server, "rpc").unwrap().content.unwrap();
    let address = Properties::decode(&wire).unwrap().reply_to.unwrap();
    assert!(address.starts_with("amq.rabbitmq.reply-to."));
    node.publish_to(server, &address, "4");
    node.settle();
    let passive = queue_methods::Declare { passive: true, ..queue(&address) };
    let there =
        queue_methods::DeclareOk { queue: (&*address).into(), message_count: 0, consumer_count: 1 };
    assert_eq!(node.call(server, passive.clone()), there.into(), "the one who asked still waits");
    let reply = node.next(client.0);
    assert!(matches!(reply.method, Method::BasicDeliver(_)));
    assert_eq!(reply.content.unwrap().1, Bytes::from_static(b"4"));
    node.disconnect(client.0);
    assert_eq!(node.refused(server, passive).0, 404);
}
