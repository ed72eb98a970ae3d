//! However the bytes arrive, the same comes of them.

use proptest::prelude::*;
use quelea_amqp_codec::method::{Method, basic, confirm, tx};
use quelea_model::Properties;

use crate::consuming::consume;
use crate::declaring::{bind, durable_queue, exchange, queue};
use crate::session_test::{Received, SessionTest, to};

/// Plays a conversation with a bit of everything, and returns all that the client got in it.
fn conversation(read_bytes: usize) -> Vec<Received> {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.read_bytes(on.0, read_bytes);
    node.send_on(on, exchange("logs", "topic"));
    node.send_on(on, durable_queue("q"));
    node.send_on(on, bind("q", "logs", "a.#"));
    node.send_on(on, confirm::Select { no_wait: false });
    node.settle();
    let publish = || basic::Publish {
        exchange: "logs".into(),
        routing_key: "a.b".into(),
        mandatory: true,
        ..Default::default()
    };
    for number in 0..20 {
        node.publish(on, publish(), &Properties::default(), &"x".repeat(number * 10));
        node.settle();
    }
    node.publish(
        on,
        basic::Publish { mandatory: true, ..to("nowhere") },
        &Properties::default(),
        "lost",
    );
    node.settle();
    node.send_on(on, basic::Qos { prefetch_count: 3, ..Default::default() });
    node.send_on(on, consume("q", "me"));
    node.settle();
    for delivery_tag in [3, 6, 9] {
        node.send_on(on, basic::Ack { delivery_tag, multiple: true });
        node.settle();
    }
    node.send_on(on, basic::Get { queue: "q".into(), no_ack: true });
    node.settle();
    node.send_on(on, tx::Select {});
    node.settle();
    node.all(on.0)
}

#[test]
fn the_conversation_is_what_it_should_be() {
    let received = conversation(0);
    let names: Vec<&str> = received.iter().map(|received| received.method.name()).collect();
    let count = |name| names.iter().filter(|n| **n == name).count();
    assert_eq!(count("basic.ack"), 21);
    assert_eq!(count("basic.deliver"), 12);
    assert_eq!(count("basic.return"), 1);
    assert_eq!(count("basic.get-ok"), 1);
    assert!(
        matches!(&received.last().unwrap().method, Method::ChannelClose(close) if close.reply_code == 406)
    );
}

#[test]
fn bytes_that_come_one_by_one_make_no_difference() {
    assert_eq!(conversation(1), conversation(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn bytes_that_come_in_pieces_make_no_difference(read_bytes in 2_usize..300) {
        prop_assert_eq!(conversation(read_bytes), conversation(0));
    }
}

#[test]
fn a_queue_of_a_thousand_messages_survives_being_split_in_every_frame() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.read_bytes(on.0, 7);
    for number in 0..1000 {
        node.publish_to(on, "q", &number.to_string());
    }
    node.settle();
    node.call(on, basic::Consume { no_ack: true, ..consume("q", "me") });
    let bodies: Vec<String> = node.all(on.0).iter().map(|r| r.body().to_owned()).collect();
    assert_eq!(bodies, (0..1000).map(|number| number.to_string()).collect::<Vec<_>>());
}
