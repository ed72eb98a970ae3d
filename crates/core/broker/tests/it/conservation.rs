//! No message is lost and none is doubled, whatever way it takes: acknowledged, dead-lettered for
//! any reason, or still waiting, with little memory, small segments and crashes in between.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use quelea_broker::{BrokerConfig, Consume, DeclareQueue, Publish};
use quelea_model::{Properties, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};

#[derive(Clone, Debug)]
enum Operation {
    Publish { ttl_ms: Option<u16>, bytes: usize },
    Settle { which: usize, multiple: bool, how: How },
    Consume { prefetch: u16 },
    CloseChannel,
    Wait { ms: u64 },
    Crash,
    PowerCut { seed: u64 },
}

#[derive(Clone, Copy, Debug)]
enum How {
    Ack,
    Requeue,
    Reject,
}

fn operation() -> impl Strategy<Value = Operation> {
    let how = prop_oneof![Just(How::Ack), Just(How::Requeue), Just(How::Reject)];
    prop_oneof![
        8 => (proptest::option::of(0..500u16), 0..600usize)
            .prop_map(|(ttl_ms, bytes)| Operation::Publish { ttl_ms, bytes }),
        4 => (0..8usize, any::<bool>(), how)
            .prop_map(|(which, multiple, how)| Operation::Settle { which, multiple, how }),
        2 => (0..4u16).prop_map(|prefetch| Operation::Consume { prefetch }),
        1 => Just(Operation::CloseChannel),
        2 => (0..300u64).prop_map(|ms| Operation::Wait { ms }),
        1 => Just(Operation::Crash),
        1 => any::<u64>().prop_map(|seed| Operation::PowerCut { seed }),
    ]
}

struct Ledger {
    test: BrokerTest,
    published: u64,
    acknowledged: BTreeSet<u64>,
    /// Acknowledged before a power cut, but perhaps not yet synced: they may have come back.
    uncertain: BTreeSet<u64>,
    consumes: bool,
}

impl Ledger {
    fn new(store_kind: StoreKind, max_length: i32) -> Self {
        let config = BrokerConfig {
            resident_bytes_max: 2_000,
            read_ahead_bytes_max: 1_000,
            ..BrokerConfig::default()
        };
        let mut test = BrokerTest::new(config, store_kind);
        let dead_letters = [
            ("x-dead-letter-exchange", Value::text("")),
            ("x-dead-letter-routing-key", Value::text("dead")),
            ("x-max-length", Value::I32(max_length)),
            ("x-delivery-limit", Value::I32(3)),
        ];
        for (name, arguments) in [("dead", Table::new()), ("q", dead_letters.into_iter().collect())]
        {
            let channel = test.client("me").channel;
            let request = DeclareQueue {
                name: name.to_owned(),
                durable: true,
                arguments,
                ..DeclareQueue::default()
            };
            test.broker.declare_queue(test.now, channel, &request).unwrap();
        }
        test.settle();
        let (acknowledged, uncertain) = (BTreeSet::new(), BTreeSet::new());
        Self { test, published: 0, acknowledged, uncertain, consumes: false }
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.test.now;
        match *operation {
            Operation::Publish { ttl_ms, bytes } => self.publish(ttl_ms, bytes),
            Operation::Settle { which, multiple, how } => self.settle(which, multiple, how),
            Operation::Consume { prefetch } => {
                if !std::mem::replace(&mut self.consumes, true) {
                    let channel = self.test.client("me").channel;
                    self.test.broker.set_prefetch(now, channel, prefetch, false);
                    let request = Consume { queue: String::from("q"), ..Consume::default() };
                    self.test.broker.consume(now, channel, &request).unwrap();
                }
            }
            Operation::CloseChannel => {
                let client = self.test.client("me");
                client.held.clear();
                let (connection, channel) = (client.connection, client.channel);
                self.test.broker.close_channel(now, channel);
                let channel = self.test.broker.open_channel(connection, 1).unwrap();
                self.test.client("me").channel = channel;
                self.consumes = false;
            }
            Operation::Wait { ms } => self.test.wait(ms),
            Operation::Crash => {
                self.test.crash(0);
                self.consumes = false;
            }
            Operation::PowerCut { seed } => {
                self.test.power_cut(seed);
                self.consumes = false;
                self.uncertain.append(&mut self.acknowledged);
            }
        }
        self.test.settle();
        self.check();
    }

    fn publish(&mut self, ttl_ms: Option<u16>, bytes: usize) {
        let properties = Properties {
            delivery_mode: Some(2),
            expiration: ttl_ms.map(|ms| ms.to_string().into_boxed_str()),
            ..Properties::default()
        };
        let mut body = self.published.to_string().into_bytes();
        body.resize(body.len() + bytes, b' ');
        self.published += 1;
        let channel = self.test.client("me").channel;
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            properties: &properties.to_bytes(),
            body: Bytes::from(body),
            mandatory: false,
            confirm: true,
        };
        self.test.broker.publish(self.test.now, channel, publish).unwrap();
    }

    fn settle(&mut self, which: usize, multiple: bool, how: How) {
        let now = self.test.now;
        let client = self.test.client("me");
        let Some(tag) = client.held.get(which).map(|held| held.delivery_tag) else {
            return;
        };
        let is_meant = |held: u64| held == tag || (multiple && held < tag);
        let meant = client.held.iter().filter(|held| is_meant(held.delivery_tag));
        let ids: Vec<u64> = meant.map(|held| id_of(held.message.body())).collect();
        client.held.retain(|held| !is_meant(held.delivery_tag));
        let channel = client.channel;
        let broker = &mut self.test.broker;
        match how {
            How::Ack => broker.ack(now, channel, tag, multiple).unwrap(),
            How::Requeue => broker.nack(now, channel, tag, multiple, true).unwrap(),
            How::Reject => broker.nack(now, channel, tag, multiple, false).unwrap(),
        };
        if matches!(how, How::Ack) {
            self.uncertain.retain(|id| !ids.contains(id));
            self.acknowledged.extend(ids);
        }
    }

    /// Every message is in exactly one place.
    fn check(&mut self) {
        let [q, dead] = ["q", "dead"].map(|name| self.test.broker.queue("/", name).unwrap());
        assert_eq!(q.messages_in_transit, 0, "dead letters have come to rest");
        let waiting = q.messages_ready + q.messages_unacknowledged + dead.messages_ready;
        let known = waiting + self.acknowledged.len() as u64;
        assert!(known <= self.published, "{known} of {}", self.published);
        assert!(known + self.uncertain.len() as u64 >= self.published, "{known}, some are lost");
    }

    /// Takes everything out: each message once, and those of the queue in their order.
    fn drain(mut self) {
        if let Some(client) = self.test.clients.remove("me") {
            self.test.broker.close_connection(self.test.now, client.connection);
        }
        let mut seen = self.acknowledged.clone();
        for name in ["q", "dead"] {
            let mut last = None;
            while let Some(id) = self.take(name) {
                assert!(seen.insert(id), "message {id} is there twice");
                assert!(name == "dead" || last < Some(id), "message {id} is out of order");
                last = Some(id);
            }
        }
        seen.append(&mut self.uncertain);
        assert_eq!(seen.len() as u64, self.published);
        self.test.settle();
        assert_eq!(self.test.broker.overview().store.live, 0, "nothing is left in the log");
    }

    fn take(&mut self, queue: &str) -> Option<u64> {
        let now = self.test.now;
        let channel = self.test.client("drain").channel;
        self.test.broker.get(now, channel, queue, true).unwrap();
        self.test.settle();
        let got = self.test.client("drain").got.pop_front().expect("an answer");
        got.map(|got| id_of(got.message.body()))
    }
}

fn id_of(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().trim_end().parse().unwrap()
}

fn play(store_kind: StoreKind, max_length: i32, operations: &[Operation]) {
    let mut ledger = Ledger::new(store_kind, max_length);
    for operation in operations {
        ledger.perform(operation);
    }
    ledger.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_in_one_place(
        operations in proptest::collection::vec(operation(), 1..100),
        max_length in 1..12i32,
    ) {
        play(StoreKind::Memory, max_length, &operations);
    }

    #[test]
    fn every_message_is_in_one_place_of_the_log(
        operations in proptest::collection::vec(operation(), 1..100),
        max_length in 1..12i32,
    ) {
        play(StoreKind::Log(8 * 1024), max_length, &operations);
    }
}

/// More dead letters than a slice of a checkpoint holds: while they are written the oldest are moved on.
#[test]
fn a_crash_after_a_checkpoint_of_many_dead_letters_loses_none() {
    const LETTERS: u64 = 20_000;
    let config = BrokerConfig::default();
    let mut test = BrokerTest::new(config, StoreKind::Log(1 << 20));
    let channel = test.client("me").channel;
    let exchange = ("x-dead-letter-exchange", Value::text(""));
    let arguments = [exchange, ("x-dead-letter-routing-key", Value::text("dead"))];
    for (name, arguments) in [("dead", Table::new()), ("q", arguments.into_iter().collect())] {
        let name = name.to_owned();
        let request = DeclareQueue { name, durable: true, arguments, ..DeclareQueue::default() };
        test.broker.declare_queue(test.now, channel, &request).unwrap();
    }
    let consume = Consume { queue: String::from("q"), ..Consume::default() };
    test.broker.consume(test.now, channel, &consume).unwrap();
    test.fill("me", "q", LETTERS);
    test.settle();
    test.broker.set_steps_per_turn(10_000_000);
    test.turn();
    test.broker.nack(test.now, channel, 0, true, false).unwrap();
    // Few of them are moved in a turn.
    test.broker.set_steps_per_turn(1_000);
    let checkpoints = test.broker.store_mut().stats().checkpoints;
    test.broker.begin_shutdown(test.now);
    while test.broker.store_mut().stats().checkpoints == checkpoints {
        test.turn();
    }
    let moved = test.broker.queue("/", "dead").unwrap().messages_ready;
    assert!((1..LETTERS).contains(&moved), "{moved} are moved before the crash");
    test.crash(0);
    let ready = |queue| test.broker.queue("/", queue).unwrap().messages_ready;
    assert_eq!(ready("q") + ready("dead"), LETTERS);
}
