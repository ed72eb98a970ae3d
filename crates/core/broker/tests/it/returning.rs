//! What a client has not acknowledged when its channel closes goes back to its old place, also when that takes
//! many turns.

use quelea_broker::{BrokerConfig, Consume, DeclareQueue, Publish};
use quelea_model::{Properties, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{declare, publish};

const MESSAGES: usize = 500;

/// Creates a queue of numbered messages that a client has, and some behind them that it has not.
fn held(store: StoreKind) -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), store);
    declare(&mut test, "publisher", "q", false);
    let channel = test.client("holder").channel;
    let consume = Consume { queue: String::from("q"), ..Consume::default() };
    let tag = test.broker.consume(test.now, channel, &consume).unwrap();
    (0..MESSAGES).for_each(|n| publish_number(&mut test, n));
    test.settle();
    test.broker.cancel(test.now, channel, &tag);
    (MESSAGES..MESSAGES + 10).for_each(|n| publish_number(&mut test, n));
    test.settle();
    // A hundred deliveries a turn.
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    test
}

fn publish_number(test: &mut BrokerTest, n: usize) {
    publish_number_to(test, "q", n);
}

fn publish_number_to(test: &mut BrokerTest, queue: &str, n: usize) {
    let channel = test.client("publisher").channel;
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() }.to_bytes();
    let publish = Publish {
        exchange: "",
        routing_key: queue,
        properties: &properties,
        body: n.to_string().into(),
        mandatory: false,
        confirm: false,
    };
    test.broker.publish(test.now, channel, publish).unwrap();
}

fn close_holder(test: &mut BrokerTest) {
    let channel = test.client("holder").channel;
    test.broker.close_channel(test.now, channel);
}

fn consume(test: &mut BrokerTest, client: &str, queue: &str) {
    let channel = test.client(client).channel;
    let consume = Consume { queue: queue.to_owned(), no_ack: true, ..Consume::default() };
    test.broker.consume(test.now, channel, &consume).unwrap();
}

fn numbers(test: &mut BrokerTest, client: &str) -> Vec<usize> {
    let inbox = std::mem::take(&mut test.client(client).inbox);
    let text = |body: &[u8]| String::from_utf8_lossy(body).parse().unwrap();
    inbox.iter().map(|received| text(received.message.body())).collect()
}

#[test]
fn what_is_returned_comes_to_others_in_its_old_order() {
    let mut test = held(StoreKind::Memory);
    close_holder(&mut test);
    let channel = test.client("holder").channel;
    assert!(test.broker.is_returning(channel), "most is left for later turns");
    consume(&mut test, "other", "q");
    let mut received = Vec::new();
    while test.broker.is_returning(channel) {
        test.turn();
        received.extend(numbers(&mut test, "other"));
    }
    test.settle();
    received.extend(numbers(&mut test, "other"));
    assert_eq!(received, (0..MESSAGES + 10).collect::<Vec<_>>());
}

#[test]
fn a_queue_gives_out_nothing_while_deliveries_come_back_to_it() {
    let mut test = held(StoreKind::Memory);
    close_holder(&mut test);
    let channel = test.client("holder").channel;
    while test.broker.queue("/", "q").unwrap().messages_ready <= 10 {
        assert!(test.broker.is_returning(channel));
        test.turn();
    }
    consume(&mut test, "other", "q");
    declare(&mut test, "publisher", "another", false);
    consume(&mut test, "other", "another");
    while test.broker.is_returning(channel) {
        assert!(test.client("other").inbox.iter().all(|r| r.message.body() == b"m"));
        publish(&mut test, "publisher", "another");
        test.turn();
    }
    test.settle();
    test.client("other").inbox.retain(|received| received.message.body() != b"m");
    assert_eq!(numbers(&mut test, "other"), (0..MESSAGES + 10).collect::<Vec<_>>());
}

/// A process that was the active consumer of two queues dies, with both of its channels.
#[test]
fn the_next_single_active_consumer_gets_everything_in_order() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let connection = test.client("dying").connection;
    let second = test.broker.open_channel(connection, 2).unwrap();
    let channels = [test.client("dying").channel, second];
    for (queue, channel) in ["a", "b"].into_iter().zip(channels) {
        declare_single_active(&mut test, queue);
        let request = Consume { queue: queue.to_owned(), ..Consume::default() };
        test.broker.consume(test.now, channel, &request).unwrap();
        // Named like its queue.
        consume(&mut test, queue, queue);
        (0..MESSAGES).for_each(|n| publish_number_to(&mut test, queue, n));
        test.settle();
        assert_eq!(std::mem::take(&mut test.client("dying").inbox).len(), MESSAGES);
        test.broker.set_prefetch(test.now, channel, 1, true);
        (MESSAGES..MESSAGES + 5).for_each(|n| publish_number_to(&mut test, queue, n));
    }
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    test.broker.close_connection(test.now, connection);
    // Each of these looks at its queue at once.
    let channel = test.client("publisher").channel;
    for queue in ["a", "b"] {
        test.broker.get(test.now, channel, queue, true).unwrap();
    }
    assert!(test.broker.is_returning_of(connection));
    assert!(test.broker.is_returning(channels[0]) && test.broker.is_returning(channels[1]));
    test.settle();
    assert!(!test.broker.is_returning_of(connection));
    let got: Vec<_> = std::mem::take(&mut test.client("publisher").got).into_iter().collect();
    assert!(got.iter().flatten().all(|got| got.message.body() == b"0"));
    assert_eq!(got.iter().flatten().count(), 2);
    for queue in ["a", "b"] {
        assert_eq!(numbers(&mut test, queue), (1..MESSAGES + 5).collect::<Vec<_>>());
    }
}

/// The channel that is closed first has few, for which its queue is looked at at once, since it is full.
#[test]
fn all_channels_of_a_connection_return_before_anybody_gets_more() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let (connection, first) = (test.client("dying").connection, test.client("dying").channel);
    let second = test.broker.open_channel(connection, 2).unwrap();
    declare_single_active(&mut test, "q");
    let request = Consume { queue: String::from("q"), ..Consume::default() };
    for (channel, range) in [(second, 0..MESSAGES), (first, MESSAGES..MESSAGES + 10)] {
        let tag = test.broker.consume(test.now, channel, &request).unwrap();
        range.for_each(|n| publish_number(&mut test, n));
        test.settle();
        if channel == second {
            test.broker.cancel(test.now, channel, &tag);
        }
    }
    consume(&mut test, "next", "q");
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    test.broker.close_connection(test.now, connection);
    test.settle();
    assert_eq!(numbers(&mut test, "next"), (0..MESSAGES + 10).collect::<Vec<_>>());
}

fn declare_single_active(test: &mut BrokerTest, queue: &str) {
    let channel = test.client("publisher").channel;
    let mut arguments = Table::new();
    // What consumers can take at once does not count.
    arguments.set("x-max-length", Value::I64(5));
    arguments.set("x-single-active-consumer", Value::Bool(true));
    let request = DeclareQueue { name: queue.to_owned(), arguments, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
}

#[test]
fn a_get_waits_for_what_comes_back() {
    let mut test = held(StoreKind::Memory);
    close_holder(&mut test);
    while test.broker.queue("/", "q").unwrap().messages_ready <= 10 {
        test.turn();
    }
    let channel = test.client("other").channel;
    test.broker.get(test.now, channel, "q", true).unwrap();
    test.settle();
    let got = test.client("other").got.pop_front().flatten().unwrap();
    assert_eq!(got.message.body(), b"0");
}

#[test]
fn a_crash_or_a_stop_while_deliveries_come_back_loses_none() {
    for turns in 0..8 {
        for is_orderly in [false, true] {
            let mut test = held(StoreKind::Log(64 * 1024));
            close_holder(&mut test);
            for _ in 0..turns {
                test.turn();
            }
            if is_orderly {
                test.shut_down()
            } else {
                test.crash(0)
            }
            consume(&mut test, "other", "q");
            test.settle();
            let held = test.client("other").inbox.iter().take(MESSAGES);
            let redelivered = held.filter(|received| received.redelivered).count();
            assert!(!is_orderly || redelivered == MESSAGES, "{turns} turns: {redelivered}");
            assert_eq!(numbers(&mut test, "other"), (0..MESSAGES + 10).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_queue_deleted_while_deliveries_come_back_to_it_leaves_nothing() {
    let mut test = held(StoreKind::Log(64 * 1024));
    close_holder(&mut test);
    test.turn();
    let channel = test.client("publisher").channel;
    test.broker.delete_queue(test.now, channel, "q", false, false).unwrap();
    test.settle();
    assert_eq!(test.broker.overview().store.live, 0);
    assert!(test.broker.channels().iter().all(|channel| channel.messages_unacknowledged == 0));
}

/// So that a client which returns very many again and again has others served in between.
#[test]
fn deliveries_that_are_returned_at_once_are_counted_as_work() {
    let mut test = held(StoreKind::Memory);
    let channel = test.client("holder").channel;
    let before = test.broker.work_done();
    test.broker.nack(test.now, channel, 90, true, true).unwrap();
    assert!(test.broker.work_done() - before >= 900);
    assert!(!test.broker.is_returning(channel));
    assert_eq!(test.broker.queue("/", "q").unwrap().messages_ready, 90 + 10);
}

/// Those up to the tag in their old order; those behind it stay the client's, who acknowledges some.
#[test]
fn what_one_nack_returns_comes_back_over_turns() {
    for close in [false, true] {
        let mut test = held(StoreKind::Log(64 * 1024));
        let channel = test.client("holder").channel;
        let refused = test.broker.nack(test.now, channel, MESSAGES as u64 + 1, true, true);
        refused.expect_err("no such delivery");
        assert!(!test.broker.is_returning(channel));
        test.broker.nack(test.now, channel, 400, true, true).unwrap();
        consume(&mut test, "other", "q");
        test.turn();
        assert!(test.broker.is_returning(channel), "most is left for later turns");
        assert_eq!(numbers(&mut test, "other"), [0; 0]);
        if close {
            close_holder(&mut test);
        }
        while test.broker.is_returning(channel) {
            test.turn();
        }
        test.settle();
        let mut expected: Vec<_> = (0..MESSAGES + 10).collect();
        if !close {
            test.broker.ack(test.now, channel, 450, true).unwrap();
            test.broker.recover(test.now, channel, true);
            test.settle();
            expected = (0..400).chain(MESSAGES..MESSAGES + 10).chain(450..MESSAGES).collect();
        }
        assert_eq!(numbers(&mut test, "other"), expected);
    }
}

/// Sessions wait; whoever does not has all that was returned before what it does next.
#[test]
fn an_acknowledgement_behind_a_large_nack_finds_it_done() {
    let mut test = held(StoreKind::Memory);
    let channel = test.client("holder").channel;
    test.broker.nack(test.now, channel, 400, true, true).unwrap();
    assert!(test.broker.is_returning(channel));
    test.broker.ack(test.now, channel, 400, false).expect_err("it is returned");
    assert!(!test.broker.is_returning(channel));
    test.broker.ack(test.now, channel, 0, true).unwrap();
    test.settle();
    let queue = test.broker.queue("/", "q").unwrap();
    assert_eq!((queue.messages_ready, queue.messages_unacknowledged), (410, 0));
}

#[test]
fn what_is_on_its_way_back_survives_a_crash_and_a_stop() {
    for stop in [BrokerTest::shut_down, |test: &mut BrokerTest| test.crash(0)] {
        let mut test = held(StoreKind::Log(64 * 1024));
        let channel = test.client("holder").channel;
        test.broker.nack(test.now, channel, 400, true, true).unwrap();
        test.turn();
        assert!(test.broker.is_returning(channel));
        stop(&mut test);
        consume(&mut test, "other", "q");
        test.settle();
        assert_eq!(numbers(&mut test, "other"), (0..MESSAGES + 10).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_is_done_on_a_closed_channel_while_its_deliveries_come_back() {
    let mut test = held(StoreKind::Memory);
    close_holder(&mut test);
    let channel = test.client("holder").channel;
    test.turn();
    test.broker.ack(test.now, channel, 400, false).unwrap();
    test.broker.nack(test.now, channel, 0, true, false).unwrap();
    test.broker.recover(test.now, channel, true);
    test.broker.close_channel(test.now, channel);
    assert!(test.broker.get(test.now, channel, "q", true).is_err());
    consume(&mut test, "other", "q");
    test.settle();
    assert_eq!(numbers(&mut test, "other"), (0..MESSAGES + 10).collect::<Vec<_>>());
}

#[test]
fn a_purge_comes_to_its_end_behind_what_comes_back() {
    let mut test = held(StoreKind::Log(64 * 1024));
    declare(&mut test, "publisher", "purged", false);
    (0..3_000).for_each(|n| publish_number_to(&mut test, "purged", n));
    test.settle();
    // The last turn in which deliveries come back has no step left: 101 of them a turn, and at the end 100.
    test.broker.set_steps_per_turn(1_001);
    let channel = test.client("holder").channel;
    test.broker.ack(test.now, channel, 97, true).unwrap();
    close_holder(&mut test);
    let channel = test.client("publisher").channel;
    test.broker.purge_queue(test.now, channel, "purged").unwrap();
    while test.turn() {}
    let channel = test.client("holder").channel;
    assert!(!test.broker.is_returning(channel));
    assert_eq!(test.broker.overview().store.live, MESSAGES as u64 - 97 + 10);
}

#[test]
fn what_is_acknowledged_bit_by_bit_stays_so_when_the_channel_closes() {
    let mut test = held(StoreKind::Memory);
    let channel = test.client("holder").channel;
    test.broker.ack(test.now, channel, 300, true).unwrap();
    assert!(test.broker.is_returning(channel), "most is left for later turns");
    close_holder(&mut test);
    test.settle();
    let queue = test.broker.queue("/", "q").unwrap();
    assert_eq!(queue.messages_unacknowledged, 0);
    consume(&mut test, "other", "q");
    test.settle();
    assert_eq!(numbers(&mut test, "other"), (300..MESSAGES + 10).collect::<Vec<_>>());
}

#[test]
fn what_is_delivered_while_all_before_it_comes_back_stays_delivered() {
    let mut test = held(StoreKind::Memory);
    let channel = test.client("holder").channel;
    declare(&mut test, "publisher", "another", false);
    let request = Consume { queue: String::from("another"), ..Consume::default() };
    test.broker.consume(test.now, channel, &request).unwrap();
    test.turn();
    test.broker.nack(test.now, channel, 0, true, true).unwrap();
    assert!(test.broker.is_returning(channel), "most is left for later turns");
    publish(&mut test, "publisher", "another");
    test.settle();
    assert!(!test.broker.is_returning(channel));
    assert_eq!(test.broker.queue("/", "q").unwrap().messages_ready, MESSAGES as u64 + 10);
    assert_eq!(test.broker.queue("/", "another").unwrap().messages_unacknowledged, 1);
}
