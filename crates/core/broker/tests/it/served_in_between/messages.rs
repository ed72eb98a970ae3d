//! Floods of messages: many dead letters at once.

use bytes::Bytes;
use quelea_broker::{Consume, DeclareQueue, Publish, QueueBinding};
use quelea_model::{Properties, Table, Value};

use super::{FLOOD, Flood, delete_as};
use crate::broker_test::BrokerTest;

pub(super) const FLOODS: [Flood; 3] = [
    Flood {
        name: "a hundred messages are rejected whose keys take long through a topic exchange",
        prepare: |test| {
            declare_with(test, "big", &[("x-dead-letter-exchange", Value::text("amq.topic"))]);
            bind_expensive_patterns(test, "big");
            fan_in(test, "big", 100, &[]);
            hold_all(test, "big", 100);
        },
        begin: reject_all,
        turns_min: 30,
        last_steps: 5_000,
        end: all_are_gone,
        ..FLOOD
    },
    Flood {
        name: "fifty messages are rejected that have such keys in their CC",
        prepare: |test| {
            declare_with(test, "big", &[("x-dead-letter-exchange", Value::text("amq.topic"))]);
            bind_expensive_patterns(test, "big");
            let copies: Vec<String> = (0..4).map(|n| expensive_key(1_000 + n)).collect();
            fan_in(test, "big", 50, &copies);
            hold_all(test, "big", 50);
        },
        begin: reject_all,
        turns_min: 45,
        last_steps: 25_000,
        end: all_are_gone,
        ..FLOOD
    },
    Flood {
        name: "a hundred messages expire whose keys take long through a topic exchange",
        prepare: |test| {
            let exchange = ("x-dead-letter-exchange", Value::text("amq.topic"));
            declare_with(test, "big", &[exchange, ("x-message-ttl", Value::I32(1_000))]);
            bind_expensive_patterns(test, "big");
            fan_in(test, "big", 100, &[]);
        },
        begin: |test| test.now = test.now.plus_ms(2_000),
        turns_min: 30,
        last_steps: 5_000,
        end: all_are_gone,
        ..FLOOD
    },
];

fn declare_with(test: &mut BrokerTest, name: &str, arguments: &[(&str, Value)]) {
    let channel = test.client("attacker").channel;
    let arguments = arguments.iter().cloned().collect();
    let request = DeclareQueue { name: name.to_owned(), arguments, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
}

fn bind_by(test: &mut BrokerTest, exchange: &str, queue: &str, key: &str) {
    let channel = test.client("attacker").channel;
    let request = QueueBinding {
        queue: queue.to_owned(),
        exchange: exchange.to_owned(),
        routing_key: key.to_owned(),
        arguments: Table::new(),
    };
    test.broker.bind_queue(test.now, channel, &request).unwrap();
}

/// An expensive key comes by many of their places, and fits none.
fn bind_expensive_patterns(test: &mut BrokerTest, queue: &str) {
    for n in 0..60 {
        bind_by(test, "amq.topic", queue, &format!("#.{n:02}.#.b.#.c.#.d.#.e.#.f.#.z"));
    }
}

/// A key that no other message has.
fn expensive_key(n: usize) -> String {
    let words: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    format!("{}.b.c.d.e.f.n{n}", words.join("."))
}

/// Publishes so many messages by expensive keys into a queue, with these keys in `CC`.
fn fan_in(test: &mut BrokerTest, queue: &str, count: usize, copies: &[String]) {
    bind_by(test, "amq.fanout", queue, "");
    let mut properties = Properties::default();
    if !copies.is_empty() {
        let copies = copies.iter().map(|key| Value::text(key)).collect();
        properties.headers = Some([("CC", Value::Array(copies))].into_iter().collect());
    }
    let properties = properties.to_bytes();
    let channel = test.client("attacker").channel;
    for n in 0..count {
        let key = expensive_key(n);
        let publish = Publish {
            exchange: "amq.fanout",
            routing_key: &key,
            properties: &properties,
            body: Bytes::from_static(b"m"),
            mandatory: false,
            confirm: false,
        };
        test.broker.publish(test.now, channel, publish).unwrap();
    }
}

/// Has the attacker consume a queue's messages without acknowledging them.
fn hold_all(test: &mut BrokerTest, queue: &str, count: usize) {
    let channel = test.client("attacker").channel;
    let consume = Consume { queue: queue.to_owned(), ..Consume::default() };
    test.broker.consume(test.now, channel, &consume).unwrap();
    test.settle();
    assert_eq!(test.client("attacker").inbox.len(), count);
}

fn reject_all(test: &mut BrokerTest) {
    let channel = test.client("attacker").channel;
    test.broker.nack(test.now, channel, 0, true, false).unwrap();
}

fn all_are_gone(test: &mut BrokerTest) {
    let queue = test.broker.queue("/", "big").unwrap();
    assert_eq!((queue.messages_ready, queue.messages_unacknowledged), (0, 0));
    delete_as(test, "probe", "big");
}
