//! Bytes that were damaged on their way hurt nobody but their own connection.

use bytes::BytesMut;
use proptest::prelude::*;
use quelea_amqp_codec::Output;
use quelea_amqp_codec::method::{basic, confirm, queue as queue_methods, tx};

use crate::consuming::{consume, deliveries};
use crate::declaring::{bind, durable_queue, exchange, queue};
use crate::session_test::{SessionTest, persistent, to};

/// Returns what a client sends after the handshake, with a bit of everything.
fn conversation() -> BytesMut {
    let mut properties = BytesMut::new();
    persistent().encode(&mut properties);
    let mut out = Output::new();
    let content = |out: &mut Output, body: &'static [u8]| {
        out.content(1, &to("q").into(), &properties, body.into(), 4_096);
    };
    out.method(1, &durable_queue("q").into());
    out.method(1, &exchange("logs", "topic").into());
    out.method(1, &bind("q", "logs", "a.#").into());
    out.method(1, &confirm::Select { no_wait: false }.into());
    content(&mut out, b"hello");
    content(&mut out, &[b'x'; 9_000]);
    out.method(1, &consume("q", "me").into());
    out.method(1, &basic::Ack { delivery_tag: 1, multiple: false }.into());
    out.method(1, &basic::Qos { prefetch_count: 3, ..Default::default() }.into());
    out.method(1, &basic::Cancel { consumer_tag: "me".into(), no_wait: false }.into());
    out.method(1, &queue_methods::Delete { queue: "q".into(), ..Default::default() }.into());
    out.method(1, &tx::Select {}.into());
    BytesMut::from(&out.to_bytes()[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_hurt_only_their_own_connection(
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        read_bytes in 0_usize..200,
    ) {
        let mut node = SessionTest::new();
        let (victim, other) = (node.channel(), node.channel());
        node.call(other, queue("safe"));
        node.call(other, consume("safe", "me"));
        let mut bytes = conversation();
        for (at, octet) in damages {
            let at = at.index(bytes.len());
            bytes[at] = octet;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        node.read_bytes(victim.0, read_bytes);
        node.send_bytes(victim.0, &bytes);
        node.settle();
        node.publish_to(other, "safe", "still there");
        node.settle();
        let received = node.all(other.0);
        prop_assert_eq!(deliveries(&received), [(1, "still there")]);
        node.disconnect(victim.0);
        prop_assert_eq!(node.broker.connections().len(), 1);
        prop_assert_eq!(node.broker.consumers(None).len(), 1);
    }
}
