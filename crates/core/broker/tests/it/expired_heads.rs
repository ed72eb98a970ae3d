//! What has expired and is not dropped yet does not count where something is decided by what a queue has.

use quelea_broker::{BrokerConfig, DeclareQueue, Publish};
use quelea_model::{Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};

/// More than leave a queue on the side.
const MESSAGES: i64 = 300;
const TTL_MS: i64 = 100;

/// Creates a queue whose messages have all expired, and of which nobody has heard.
fn all_expired(arguments: &[(&str, Value)]) -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let channel = test.client("client").channel;
    let mut table = Table::new();
    table.set("x-message-ttl", Value::I64(TTL_MS));
    arguments.iter().for_each(|(name, value)| table.set(name, value.clone()));
    let request = DeclareQueue { name: "q".into(), arguments: table, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
    (0..MESSAGES).for_each(|_| assert!(!is_rejected(&mut test)));
    test.settle();
    test.now = test.now.plus_ms(2 * TTL_MS as u64);
    test
}

fn is_rejected(test: &mut BrokerTest) -> bool {
    let channel = test.client("client").channel;
    let publish = Publish {
        exchange: "",
        routing_key: "q",
        properties: &[],
        body: "m".into(),
        mandatory: false,
        confirm: false,
    };
    test.broker.publish(test.now, channel, publish).unwrap().rejected
}

#[test]
fn a_queue_full_of_expired_messages_takes_another_one() {
    let limit = ("x-max-length", Value::I64(MESSAGES));
    let refuses = ("x-overflow", Value::text("reject-publish"));
    let mut test = all_expired(&[limit, refuses]);
    assert!(!is_rejected(&mut test));
}

#[test]
fn a_queue_of_expired_messages_is_empty_for_who_deletes_it() {
    let mut test = all_expired(&[]);
    let channel = test.client("client").channel;
    let deleted = test.broker.delete_queue(test.now, channel, "q", false, true).unwrap();
    assert_eq!(deleted.messages, 0);
}

#[test]
fn what_has_expired_in_a_queue_that_is_too_long_has_expired() {
    let mut test = all_expired(&[("x-max-length", Value::I64(MESSAGES))]);
    (0..MESSAGES / 2).for_each(|_| assert!(!is_rejected(&mut test)));
    test.settle();
    let counted = test.broker.overview().counters;
    assert_eq!((counted.expired, counted.overflowed), (MESSAGES as u64, 0));
}
