//! Who gets a message.

use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::{ClientId, Epoch, MessageSeq};

use crate::relay::TestRelay;

#[test]
fn every_listener_gets_what_matches_in_order() {
    let relay = TestRelay::start();
    let (mut all, mut eur, mut two, mut usd) =
        (relay.client(), relay.client(), relay.client(), relay.client());
    all.listen(1, &[""]);
    eur.listen(2, &["eur."]);
    two.listen(3, &["eur.usd", "eur.", "chf"]);
    usd.listen(4, &["usd."]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    for listener in [&mut all, &mut eur, &mut two, &mut usd] {
        let start = listener.started();
        assert_eq!((start.slot, start.producer, start.epoch), (slot, ClientId(9), Epoch(1)));
        assert_eq!(start.first, MessageSeq(0));
    }
    let topics = ["eur.usd", "eur.chf", "chf.eur", "usd.eur", "eur"];
    for (sequence, topic) in topics.iter().enumerate() {
        producer.publish(slot, sequence as u64, &[topic.as_bytes(), b"1.07", b"third part"]);
    }
    let first = all.message();
    assert_eq!(first.slot, slot);
    assert_eq!(first.parts, ["eur.usd", "1.07", "third part"]);
    assert_eq!(all.sequences(4), [1, 2, 3, 4]);
    assert_eq!(eur.sequences(2), [0, 1]);
    assert_eq!(two.sequences(3), [0, 1, 2]);
    assert_eq!(usd.sequences(1), [3]);
    producer.acknowledged(slot, 5);
    producer.send(&Frame::Fin { slot, next: MessageSeq(5) });
    for listener in [&mut all, &mut eur, &mut two, &mut usd] {
        assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(5) });
    }
}

#[test]
fn a_listener_that_comes_later_is_told_where_each_producer_is() {
    let relay = TestRelay::start();
    let mut producer = relay.client();
    let slot = producer.produce(9, 3, 100);
    producer.publish_many(slot, 100, 5, "a", 10);
    producer.acknowledged(slot, 105);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let [start] = &listener.present[..] else { panic!("{:?}", listener.present) };
    assert_eq!((start.slot, start.first, start.epoch), (slot, MessageSeq(105), Epoch(3)));
    producer.publish_many(slot, 105, 2, "a", 10);
    assert_eq!(listener.sequences(2), [105, 106]);
}

#[test]
fn subscriptions_are_counted_and_change_while_messages_flow() {
    let relay = TestRelay::start();
    let (mut producer, mut listener) = (relay.client(), relay.client());
    listener.listen(1, &["a", "a"]);
    let slot = producer.produce(9, 1, 0);
    listener.started();
    producer.publish_many(slot, 0, 1, "ab", 10);
    assert_eq!(listener.sequences(1), [0]);
    let changes = [
        (Frame::Unsubscribe("a".into()), true),
        (Frame::Unsubscribe("a".into()), false),
        (Frame::Subscribe("ab".into()), true),
        (Frame::Subscribe("".into()), true),
        (Frame::Unsubscribe("ab".into()), true),
        (Frame::Unsubscribe("".into()), false),
    ];
    for ((change, gets), sequence) in changes.into_iter().zip(1..) {
        listener.send(&change);
        listener.synchronise();
        producer.publish_many(slot, sequence, 1, "ab", 10);
        producer.acknowledged(slot, sequence + 1);
        if gets {
            assert_eq!(listener.sequences(1), [sequence], "after {change:?}");
        } else {
            listener.synchronise();
        }
    }
    listener.send(&Frame::Unsubscribe("ab".into()));
    let error = listener.error();
    assert!(!error.fatal && error.field == "prefix" && error.text.contains("ab"), "{error:?}");
}

#[test]
fn large_messages_and_many_small_ones_arrive_whole() {
    let relay = TestRelay::start();
    let (mut producer, mut all, mut some) = (relay.client(), relay.client(), relay.client());
    all.listen(1, &[""]);
    some.listen(2, &["big"]);
    let slot = producer.produce(9, 1, 0);
    all.started();
    some.started();
    let reader = std::thread::spawn(move || {
        let mut lengths = Vec::new();
        for sequence in 0..2_001 {
            let got = all.message();
            assert_eq!(got.sequence, sequence);
            assert!(got.parts[1].iter().all(|byte| *byte == 7));
            lengths.push(got.parts[1].len());
        }
        lengths
    });
    producer.publish_many(slot, 0, 1_000, "small", 3);
    producer.publish_many(slot, 1_000, 1, "big", 9_000_000);
    producer.publish_many(slot, 1_001, 1_000, "small", 300);
    let lengths = reader.join().expect("all are right");
    assert_eq!(lengths.iter().sum::<usize>(), 3_000 + 9_000_000 + 300_000);
    let big = some.message();
    assert_eq!((big.sequence, big.parts[1].len()), (1_000, 9_000_000));
    producer.acknowledged(slot, 2_001);
}

#[test]
fn one_connection_may_produce_and_listen() {
    let relay = TestRelay::start();
    let mut client = relay.client();
    client.listen(1, &[""]);
    let slot = client.produce(9, 1, 0);
    client.started();
    client.publish(slot, 0, &[b"topic"]);
    assert_eq!(client.message().sequence, 0);
    client.acknowledged(slot, 1);
}
