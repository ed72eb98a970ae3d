//! What is counted of each exchange: publishes of clients to it, and the queues that they were routed to.

use bytes::Bytes;
use quelea_broker::report::ExchangeCounters;
use quelea_broker::{BrokerConfig, Publish, PublishRoute, QueueBinding};
use quelea_model::{Properties, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{bind_exchange, bind_to, declare, declare_exchange};

/// The key of a binding by [`bind_to`].
const KEY: &str = "key 0";

/// Creates an exchange `orders` that leads to two queues.
fn with_orders() -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    declare_exchange(&mut test, "me", "orders");
    for queue in ["a", "b"] {
        declare(&mut test, "me", queue, false);
        bind_to(&mut test, "orders", queue, 1);
    }
    test
}

fn message<'a>(exchange: &'a str, routing_key: &'a str, properties: &'a [u8]) -> Publish<'a> {
    let body = Bytes::from_static(b"m");
    Publish { exchange, routing_key, properties, body, mandatory: false, confirm: false }
}

fn publish(test: &mut BrokerTest, exchange: &str, key: &str, properties: &[u8]) {
    let channel = test.client("me").channel;
    test.broker.publish(test.now, channel, message(exchange, key, properties)).unwrap();
}

/// Checks what is published later, as in a transaction. Returns its route.
fn check(test: &mut BrokerTest, exchange: &str) -> PublishRoute {
    let channel = test.client("me").channel;
    test.broker.check_publish(channel, exchange, KEY, &[0, 0]).unwrap()
}

fn publish_checked(test: &mut BrokerTest, exchange: &str, route: PublishRoute) {
    let channel = test.client("me").channel;
    let publish = message(exchange, KEY, &[0, 0]);
    test.broker.publish_routed(test.now, channel, publish, route).unwrap();
}

/// Returns what is counted of an exchange, in and out.
fn counted(test: &BrokerTest, exchange: &str) -> (u64, u64) {
    let exchanges = test.broker.exchanges(Some("/"));
    let found = exchanges.iter().find(|one| one.name.as_str() == exchange).unwrap();
    let ExchangeCounters { publish_in, publish_out } = found.counters;
    (publish_in, publish_out)
}

#[test]
fn each_publish_counts_once_in_and_once_for_each_queue_out() {
    let mut test = with_orders();
    // The first finds its way by the bindings, the next ones by what the channel and the router remember.
    (0..3).for_each(|_| publish(&mut test, "orders", KEY, &[0, 0]));
    publish(&mut test, "orders", "leads nowhere", &[0, 0]);
    publish(&mut test, "orders", KEY, &[0, 0]);
    let mut headers = Table::new();
    headers.set("h", Value::I32(1));
    let properties = Properties { headers: Some(headers), ..Properties::default() };
    publish(&mut test, "orders", KEY, &properties.to_bytes());
    assert_eq!(counted(&test, "orders"), (6, 10));
    publish(&mut test, "", "a", &[0, 0]);
    assert_eq!(counted(&test, ""), (1, 1));
    assert_eq!(counted(&test, "amq.direct"), (0, 0));
}

#[test]
fn an_exchange_on_the_way_counts_nothing() {
    let mut test = with_orders();
    declare_exchange(&mut test, "me", "all");
    bind_exchange(&mut test, "all", "orders");
    // A binding of exchanges has an empty key here.
    publish(&mut test, "all", "", &[0, 0]);
    assert_eq!((counted(&test, "all"), counted(&test, "orders")), ((1, 0), (0, 0)));
    let channel = test.client("me").channel;
    for queue in ["a", "b"] {
        let (queue, exchange) = (queue.to_owned(), String::from("orders"));
        let (routing_key, arguments) = (String::new(), Table::new());
        let request = QueueBinding { queue, exchange, routing_key, arguments };
        test.broker.bind_queue(test.now, channel, &request).unwrap();
    }
    publish(&mut test, "all", "", &[0, 0]);
    assert_eq!((counted(&test, "all"), counted(&test, "orders")), ((2, 2), (0, 0)));
}

#[test]
fn a_refused_publish_is_not_counted() {
    let mut test = with_orders();
    let channel = test.client("me").channel;
    let wrong = Properties { expiration: Some("soon".into()), ..Properties::default() }.to_bytes();
    test.broker.publish(test.now, channel, message("orders", KEY, &wrong)).unwrap_err();
    assert_eq!(counted(&test, "orders"), (0, 0));
}

#[test]
fn what_is_checked_counts_when_it_is_published() {
    let mut test = with_orders();
    let route = check(&mut test, "orders");
    assert_eq!(counted(&test, "orders"), (0, 0));
    publish_checked(&mut test, "orders", route);
    assert_eq!(counted(&test, "orders"), (1, 2));
}

#[test]
fn counts_go_with_their_exchange_and_to_no_later_one() {
    let mut test = with_orders();
    publish(&mut test, "orders", KEY, &[0, 0]);
    let route = check(&mut test, "orders");
    let channel = test.client("me").channel;
    test.broker.delete_exchange(test.now, channel, "orders", false).unwrap();
    test.settle();
    declare_exchange(&mut test, "me", "others");
    publish_checked(&mut test, "orders", route);
    assert_eq!(counted(&test, "others"), (0, 0));
    declare_exchange(&mut test, "me", "orders");
    assert_eq!(counted(&test, "orders"), (0, 0));
}

#[test]
fn samples_have_the_exchanges_that_were_published_to() {
    let mut test = with_orders();
    publish(&mut test, "orders", KEY, &[0, 0]);
    let start = test.broker.begin_samples(1_000);
    assert!(start.exchanges.are_all);
    let (mut samples, mut from, keys) = (Vec::new(), 0, start.exchanges.keys);
    while from < keys.len() {
        let (found, looked_at) = test.broker.sample_exchanges(&keys[from..]);
        samples.extend(found);
        from += looked_at;
    }
    let counters = ExchangeCounters { publish_in: 1, publish_out: 2 };
    let [sample] = &samples[..] else { panic!("{samples:?}") };
    assert_eq!(sample.counters, counters);
    let few = test.broker.begin_samples(0).exchanges;
    assert!(few.keys.is_empty() && !few.are_all);
}
