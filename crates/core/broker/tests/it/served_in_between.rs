//! Whatever one client asks for, however much there is of it, others are served in between: what a turn
//! does is counted, and bounded, and another client's message goes through in each.

use std::sync::Arc;

use bytes::Bytes;
use quelea_broker::{
    BrokerConfig, ConnectionInfo, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Fifo,
    Publish, QueueAttributes, QueueBinding, QueueSettings, Receive, Send,
};

use crate::broker_test::{BrokerTest, StoreKind};

mod messages;

/// Steps that a turn may have, and what one more thing that is begun within them may take.
const STEPS: u64 = 2_000;
const LAST_STEPS_MAX: u64 = 200;

/// An operation whose cost depends on a size.
struct Flood {
    name: &'static str,
    prepare: fn(&mut BrokerTest),
    begin: fn(&mut BrokerTest),
    /// What the attacker's session carries out in each turn. True: it has more.
    input: fn(&mut BrokerTest) -> bool,
    /// Turns that it takes at least with so many steps each: so that it is a flood.
    turns_min: usize,
    /// Steps that it takes at once, however few a turn has.
    steps_at_once: u64,
    /// Steps that the last thing may take which is begun within a turn's, beyond what is usual.
    last_steps: u64,
    /// What is left to be checked and taken away.
    end: fn(&mut BrokerTest),
}

const NOTHING: fn(&mut BrokerTest) = |_| {};

/// What most floods have in common.
const FLOOD: Flood = Flood {
    name: "",
    prepare: NOTHING,
    begin: NOTHING,
    input: |_| false,
    turns_min: 0,
    steps_at_once: 0,
    last_steps: 0,
    end: NOTHING,
};

const FLOODS: [Flood; 12] = [
    Flood {
        name: "a queue with 2,000 bindings is deleted",
        prepare: |test| bind(test, "big", 2_000),
        begin: |test| delete(test, "big"),
        turns_min: 50,
        ..FLOOD
    },
    Flood {
        name: "an exchange with 2,000 bindings is deleted",
        prepare: |test| {
            declare_exchange(test, "attacker", "big");
            bind_to(test, "big", "q", 1_999);
            bind_exchange(test, "amq.fanout", "big");
        },
        begin: |test| delete_exchange(test, "big"),
        turns_min: 50,
        ..FLOOD
    },
    Flood {
        name: "a queue with 50,000 messages is deleted",
        prepare: |test| {
            declare(test, "attacker", "big", false);
            (0..50_000).for_each(|_| publish(test, "attacker", "big"));
        },
        begin: |test| delete(test, "big"),
        turns_min: 20,
        ..FLOOD
    },
    Flood {
        name: "a queue with 50,000 messages is purged, and deleted",
        prepare: |test| {
            declare(test, "attacker", "big", false);
            (0..50_000).for_each(|_| publish(test, "attacker", "big"));
        },
        begin: |test| {
            let channel = test.client("attacker").channel;
            let purged = test.broker.purge_queue(test.now, channel, "big").unwrap();
            assert_eq!(purged.messages, 50_000);
            delete(test, "big");
        },
        turns_min: 20,
        ..FLOOD
    },
    Flood {
        name: "a FIFO queue is purged that has 3,000 messages in flight and 3,000 in groups",
        prepare: |test| fill_fifo(test, "big", 6_000, 3_000),
        begin: |test| {
            let queue = test.broker.queue_id("/", "big").unwrap();
            let purged = test.broker.purge_queue_by_id(test.now, queue).unwrap();
            assert_eq!(purged.messages, 3_000);
            assert_eq!(test.broker.queue("/", "big").unwrap().messages_unacknowledged, 0);
        },
        turns_min: 9,
        end: |test| delete_as(test, "probe", "big"),
        ..FLOOD
    },
    Flood {
        name: "a FIFO queue is deleted that has 3,000 messages in flight and 3,000 in groups",
        prepare: |test| fill_fifo(test, "big", 6_000, 3_000),
        begin: |test| delete(test, "big"),
        turns_min: 9,
        ..FLOOD
    },
    Flood {
        name: "a connection with 2,000 exclusive queues is closed",
        prepare: |test| {
            (0..2_000).for_each(|n| declare(test, "attacker", &format!("own {n}"), true));
        },
        begin: |test| {
            let connection = test.client("attacker").connection;
            test.broker.close_connection(test.now, connection);
        },
        turns_min: 100,
        ..FLOOD
    },
    Flood {
        name: "a connection is closed that has not acknowledged 20,000 deliveries",
        prepare: |test| {
            let _ = hold_deliveries(test, "attacker", "big", 20_000);
        },
        begin: |test| {
            let connection = test.client("attacker").connection;
            test.broker.close_connection(test.now, connection);
        },
        turns_min: 90,
        steps_at_once: 20_000,
        end: |test| {
            assert_eq!(test.broker.queue("/", "big").unwrap().messages_ready, 20_000);
            delete_as(test, "probe", "big");
        },
        ..FLOOD
    },
    Flood {
        name: "20,000 deliveries are returned by one basic.nack",
        prepare: hold_and_stop,
        begin: |test| {
            let channel = test.client("attacker").channel;
            test.broker.nack(test.now, channel, 20_000, true, true).unwrap();
            assert!(test.broker.is_returning(channel));
        },
        turns_min: 90,
        steps_at_once: 20_000,
        end: all_are_back,
        ..FLOOD
    },
    Flood {
        name: "20,000 deliveries are returned by one basic.recover",
        prepare: hold_and_stop,
        begin: |test| {
            let channel = test.client("attacker").channel;
            test.broker.recover(test.now, channel, true);
            assert!(test.broker.is_returning(channel));
        },
        turns_min: 90,
        steps_at_once: 20_000,
        end: all_are_back,
        ..FLOOD
    },
    Flood {
        name: "a virtual host with 1,000 queues, 1,000 exchanges and their bindings is deleted",
        prepare: |test| fill_vhost(test, 1_000),
        begin: |test| {
            test.broker.delete_vhost(test.now, "full").unwrap();
        },
        turns_min: 100,
        ..FLOOD
    },
    Flood {
        name: "five hundred queues end that nobody used",
        prepare: |test| {
            let channel = test.client("attacker").channel;
            for n in 0..500 {
                let arguments = [("x-expires", quelea_model::Value::I32(1_000))];
                let request = DeclareQueue {
                    name: format!("unused {n}"),
                    arguments: arguments.into_iter().collect(),
                    ..DeclareQueue::default()
                };
                test.broker.declare_queue(test.now, channel, &request).unwrap();
            }
        },
        begin: |test| test.now = test.now.plus_ms(2_000),
        turns_min: 20,
        ..FLOOD
    },
];

pub(crate) fn declare(test: &mut BrokerTest, client: &str, name: &str, exclusive: bool) {
    let channel = test.client(client).channel;
    let name = name.to_owned();
    let request = DeclareQueue { name, exclusive, durable: !exclusive, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
}

/// Declares a queue and binds it to `amq.direct` by so many keys.
pub(crate) fn bind(test: &mut BrokerTest, queue: &str, bindings: usize) {
    declare(test, "attacker", queue, false);
    bind_to(test, "amq.direct", queue, bindings);
}

/// Binds a queue by so many keys.
pub(crate) fn bind_to(test: &mut BrokerTest, exchange: &str, queue: &str, bindings: usize) {
    let channel = test.client("attacker").channel;
    for n in 0..bindings {
        let request = QueueBinding {
            queue: queue.to_owned(),
            exchange: exchange.to_owned(),
            routing_key: format!("key {n}"),
            arguments: quelea_model::Table::new(),
        };
        test.broker.bind_queue(test.now, channel, &request).unwrap();
    }
}

/// Declares a durable direct exchange.
pub(crate) fn declare_exchange(test: &mut BrokerTest, client: &str, name: &str) {
    let channel = test.client(client).channel;
    let request = DeclareExchange {
        name: name.to_owned(),
        kind: String::from("direct"),
        durable: true,
        ..DeclareExchange::default()
    };
    test.broker.declare_exchange(test.now, channel, &request).unwrap();
}

/// Binds an exchange to another one.
pub(crate) fn bind_exchange(test: &mut BrokerTest, source: &str, destination: &str) {
    let channel = test.client("attacker").channel;
    let request = ExchangeBinding {
        source: source.to_owned(),
        destination: destination.to_owned(),
        routing_key: String::new(),
        arguments: quelea_model::Table::new(),
    };
    test.broker.bind_exchange(test.now, channel, &request).unwrap();
}

pub(crate) fn delete_exchange(test: &mut BrokerTest, name: &str) {
    let channel = test.client("attacker").channel;
    test.broker.delete_exchange(test.now, channel, name, false).unwrap();
}

/// Makes a virtual host `full` with so many queues, as many exchanges, and a binding between each two.
pub(crate) fn fill_vhost(test: &mut BrokerTest, count: usize) {
    let now = test.now;
    test.broker.put_vhost(now, "full").unwrap();
    test.broker.set_permissions(now, "guest", "full", ".*", ".*", ".*").unwrap();
    let info = ConnectionInfo {
        user: String::from("guest"),
        vhost: String::from("full"),
        loopback: true,
        ..ConnectionInfo::default()
    };
    let connection = test.broker.open_connection(now, info).unwrap();
    let channel = test.broker.open_channel(connection, 1).unwrap();
    for n in 0..count {
        let name = format!("n{n}");
        let request = DeclareQueue { name: name.clone(), durable: true, ..DeclareQueue::default() };
        test.broker.declare_queue(now, channel, &request).unwrap();
        let (kind, exchange) = (String::from("fanout"), name.clone());
        let request = DeclareExchange {
            name: exchange.clone(),
            kind,
            durable: true,
            ..DeclareExchange::default()
        };
        test.broker.declare_exchange(now, channel, &request).unwrap();
        let arguments = quelea_model::Table::new();
        let request = QueueBinding { queue: name, exchange, routing_key: String::new(), arguments };
        test.broker.bind_queue(now, channel, &request).unwrap();
    }
}

/// Lets a client consume so many messages of a queue without acknowledging them. Returns the
/// consumer's tag.
pub(crate) fn hold_deliveries(
    test: &mut BrokerTest,
    client: &str,
    queue: &str,
    count: usize,
) -> Arc<str> {
    declare(test, client, queue, false);
    let channel = test.client(client).channel;
    let consume = Consume { queue: queue.to_owned(), ..Consume::default() };
    let tag = test.broker.consume(test.now, channel, &consume).unwrap();
    for _ in 0..count {
        publish(test, client, queue);
    }
    test.settle();
    assert_eq!(test.client(client).inbox.len(), count);
    tag
}

/// Has the attacker hold 20,000 deliveries and take no more.
fn hold_and_stop(test: &mut BrokerTest) {
    let tag = hold_deliveries(test, "attacker", "big", 20_000);
    let channel = test.client("attacker").channel;
    assert!(test.broker.cancel(test.now, channel, &tag));
}

fn all_are_back(test: &mut BrokerTest) {
    let channel = test.client("attacker").channel;
    assert!(!test.broker.is_returning(channel));
    assert_eq!(test.broker.queue("/", "big").unwrap().messages_ready, 20_000);
    delete_as(test, "probe", "big");
}

/// Makes a FIFO queue with so many messages, each of a group of its own, and receives some of them.
fn fill_fifo(test: &mut BrokerTest, queue: &str, count: usize, in_flight: usize) {
    let fifo = Some(Fifo { deduplicates_by_group: false });
    let settings = QueueSettings { fifo, ..QueueSettings::default() };
    let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
    let (id, _) = test.broker.create_queue(test.now, "/", queue, attributes).unwrap();
    for n in 0..count {
        let send = Send {
            properties: Bytes::from_static(&[0, 0]),
            body: Bytes::from_static(b"m"),
            delay_ms: None,
            group: Some(n.to_string().into()),
            deduplication: None,
            message_id: [0; 16],
        };
        test.broker.send(test.now, id, vec![send]).unwrap().0.remove(0).unwrap();
    }
    for _ in 0..in_flight / 10 {
        let receive = Receive { max: 10, visibility_timeout_ms: 60_000, wait_ms: 0, attempt: None };
        let receive = test.broker.receive(test.now, id, receive).unwrap();
        test.settle();
        assert_eq!(test.received.remove(&receive).flatten().map_or(0, |got| got.len()), 10);
    }
}

pub(crate) fn delete(test: &mut BrokerTest, queue: &str) {
    delete_as(test, "attacker", queue);
}

fn delete_as(test: &mut BrokerTest, client: &str, queue: &str) {
    let channel = test.client(client).channel;
    test.broker.delete_queue(test.now, channel, queue, false, false).unwrap();
}

pub(crate) fn publish(test: &mut BrokerTest, client: &str, queue: &str) {
    publish_body(test, client, queue, Bytes::from_static(b"m"));
}

pub(crate) fn publish_body(test: &mut BrokerTest, client: &str, queue: &str, body: Bytes) {
    let channel = test.client(client).channel;
    let publish = Publish {
        exchange: "",
        routing_key: queue,
        properties: &[0, 0],
        body,
        mandatory: false,
        confirm: false,
    };
    test.broker.publish(test.now, channel, publish).unwrap();
}

#[test]
fn others_are_served_in_between() {
    for flood in FLOODS.into_iter().chain(messages::FLOODS) {
        let name = flood.name;
        let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
        declare(&mut test, "probe", "q", false);
        let channel = test.client("probe").channel;
        let consume = Consume { queue: String::from("q"), no_ack: true, ..Consume::default() };
        test.broker.consume(test.now, channel, &consume).unwrap();
        (flood.prepare)(&mut test);
        test.settle();
        test.broker.set_steps_per_turn(STEPS);
        // The turn before has left the flood as much as any other.
        test.turn();
        let mut done = test.broker.work_done();
        (flood.begin)(&mut test);
        let mut turns = 0;
        loop {
            publish(&mut test, "probe", "q");
            let mut more = (flood.input)(&mut test);
            more |= test.turn();
            let steps = test.broker.work_done() - done;
            done = test.broker.work_done();
            // The first turn comes on top of what was done when it was asked for.
            let allowed = if turns == 0 { 2 * STEPS + flood.steps_at_once } else { STEPS };
            let allowed = allowed + 2 * LAST_STEPS_MAX + flood.last_steps;
            assert!(steps <= allowed, "{name}: {steps} steps in turn {turns}");
            let served = std::mem::take(&mut test.client("probe").inbox).len();
            assert_eq!(served, 1, "{name}: turn {turns} serves the probe");
            turns += 1;
            if !more {
                break;
            }
        }
        assert!(turns >= flood.turns_min, "{name}: {turns} turns");
        test.settle();
        (flood.end)(&mut test);
        test.settle();
        let queues = test.broker.queues(None);
        assert_eq!(queues.len(), 1, "{name}: nothing but the probe's queue is left");
        assert_eq!(test.broker.bindings(None).len(), 1, "{name}: and its binding");
    }
}

/// A checkpoint writes so many entries in a turn (docs/operate/limits.md).
const CHECKPOINT_ENTRIES: u64 = 8_192;

#[test]
fn others_are_served_while_a_checkpoint_gathers_what_is_in_the_queues() {
    const MESSAGES: u64 = 10 * CHECKPOINT_ENTRIES;
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(1 << 24));
    declare(&mut test, "probe", "q", false);
    let channel = test.client("probe").channel;
    let consume = Consume { queue: String::from("q"), no_ack: true, ..Consume::default() };
    test.broker.consume(test.now, channel, &consume).unwrap();
    let channel = test.client("me").channel;
    let request =
        DeclareQueue { name: String::from("long"), durable: true, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
    test.fill("me", "long", MESSAGES);
    test.settle();
    let checkpoints = test.broker.store_mut().stats().checkpoints;
    test.broker.begin_shutdown(test.now);
    let mut turns = 0;
    while test.broker.store_mut().stats().checkpoints == checkpoints {
        publish(&mut test, "probe", "q");
        test.turn();
        let served = std::mem::take(&mut test.client("probe").inbox).len();
        assert_eq!(served, 1, "turn {turns} serves the probe");
        turns += 1;
    }
    assert!(turns > MESSAGES / CHECKPOINT_ENTRIES, "{turns} turns");
}
