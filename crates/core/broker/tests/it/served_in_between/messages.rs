//! Floods of messages: many dead letters at once, messages that go to many queues, and many that are settled, expire
//! or are dropped at once.

use bytes::Bytes;
use quelea_broker::{BrokerConfig, Consume, DeclareQueue, Publish, QueueBinding};
use quelea_model::{Properties, Table, Value};

use super::{FLOOD, Flood, NOTHING, STEPS, declare, delete_as, hold_and_stop, publish};
use crate::broker_test::{BrokerTest, StoreKind};

pub(super) const FLOODS: [Flood; 8] = [
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
    Flood {
        name: "300 messages are published to a fanout exchange of 500 queues",
        prepare: |test| bind_fan_out(test, FAN_OUT_QUEUES),
        begin: NOTHING,
        // As a session does, which goes on until it has used up a turn's steps.
        input: |test| {
            let end = test.broker.work_done() + STEPS;
            while test.broker.queue("/", "fan 0").unwrap().messages_ready < 300 {
                if test.broker.work_done() >= end {
                    return true;
                }
                publish_to(test, "amq.fanout", "", &[0, 0], "m");
            }
            false
        },
        turns_min: 300,
        last_steps: 5_000,
        end: |test| {
            for n in 0..FAN_OUT_QUEUES {
                let name = format!("fan {n}");
                assert_eq!(test.broker.queue("/", &name).unwrap().messages_ready, 300);
                delete_as(test, "probe", &name);
            }
        },
        ..FLOOD
    },
    Flood {
        name: "20,000 deliveries are acknowledged by one basic.ack",
        prepare: hold_and_stop,
        begin: |test| {
            let channel = test.client("attacker").channel;
            test.broker.ack(test.now, channel, 20_000, true).unwrap();
            assert!(test.broker.is_returning(channel));
        },
        turns_min: 45,
        end: all_are_gone,
        ..FLOOD
    },
    Flood {
        name: "20,000 deliveries are rejected by one basic.nack",
        prepare: hold_and_stop,
        begin: reject_all,
        turns_min: 90,
        end: all_are_gone,
        ..FLOOD
    },
    Flood {
        name: "20,000 messages expire",
        prepare: |test| {
            declare_with(test, "big", &[("x-message-ttl", Value::I32(1_000))]);
            (0..20_000).for_each(|_| publish(test, "attacker", "big"));
        },
        begin: |test| test.now = test.now.plus_ms(2_000),
        turns_min: 90,
        end: all_are_gone,
        ..FLOOD
    },
    Flood {
        name: "a message takes up all of a queue's bytes, and displaces 20,000 others",
        prepare: |test| {
            declare_with(test, "big", &[("x-max-length-bytes", Value::I32(20_000))]);
            (0..20_000).for_each(|_| publish(test, "attacker", "big"));
        },
        begin: |test| publish_to(test, "", "big", &[0, 0], &"m".repeat(20_000)),
        turns_min: 90,
        end: |test| {
            assert_eq!(test.broker.queue("/", "big").unwrap().messages_ready, 1);
            delete_as(test, "probe", "big");
        },
        ..FLOOD
    },
];

const FAN_OUT_QUEUES: usize = 500;

#[test]
fn publishers_wait_as_soon_as_a_fan_out_has_filled_the_memory() {
    let config = BrokerConfig { resident_bytes_max: 1 << 20, ..BrokerConfig::default() };
    let mut test = BrokerTest::new(config, StoreKind::Memory);
    bind_fan_out(&mut test, FAN_OUT_QUEUES);
    test.settle();
    let mut published = 0;
    // No turn of the broker comes in between.
    while test.broker.accepts_publishes() {
        publish_to(&mut test, "amq.fanout", "", &[0, 0], &"m".repeat(1_000));
        published += 1;
        assert!(published < 10, "{published} messages for 500 queues each are taken");
    }
    assert!(published > 1);
}

/// Binds so many queues, `fan 0` and on, to `amq.fanout`.
fn bind_fan_out(test: &mut BrokerTest, count: usize) {
    for n in 0..count {
        let name = format!("fan {n}");
        declare(test, "attacker", &name, false);
        bind_by(test, "amq.fanout", &name, "");
    }
}

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

/// Returns a key that no other message has.
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
    for n in 0..count {
        publish_to(test, "amq.fanout", &expensive_key(n), &properties, "m");
    }
}

fn publish_to(test: &mut BrokerTest, exchange: &str, key: &str, properties: &[u8], body: &str) {
    let channel = test.client("attacker").channel;
    let publish = Publish {
        exchange,
        routing_key: key,
        properties,
        body: Bytes::copy_from_slice(body.as_bytes()),
        mandatory: false,
        confirm: false,
    };
    test.broker.publish(test.now, channel, publish).unwrap();
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
