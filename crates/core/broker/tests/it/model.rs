//! The broker against a naive queue: random operations, and after each of them every delivery and
//! every count has to be one that the naive queue explains.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use quelea_broker::{BrokerConfig, Consume, DeclareQueue, Publish};
use quelea_model::{Properties, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};

const CLIENTS: usize = 3;
const PRIORITY_MAX: u8 = 2;

#[derive(Clone, Debug)]
enum Operation {
    Publish { persistent: bool, priority: u8, bytes: usize },
    Consume { client: usize, prefetch: u16 },
    Cancel { client: usize },
    Ack { client: usize, which: usize, multiple: bool },
    Nack { client: usize, which: usize, multiple: bool, requeue: bool },
    Get { client: usize },
    CloseChannel { client: usize },
    CloseConnection { client: usize },
    Purge,
    Crash,
}

fn operation() -> impl Strategy<Value = Operation> {
    let client = 0..CLIENTS;
    let tag = || (0..CLIENTS, 0..20usize, any::<bool>());
    prop_oneof![
        8 => (any::<bool>(), 0..=PRIORITY_MAX, 0..400usize).prop_map(
            |(persistent, priority, bytes)| Operation::Publish { persistent, priority, bytes }
        ),
        2 => (client.clone(), 0..4u16)
            .prop_map(|(client, prefetch)| Operation::Consume { client, prefetch }),
        1 => client.clone().prop_map(|client| Operation::Cancel { client }),
        4 => tag().prop_map(|(client, which, multiple)| Operation::Ack { client, which, multiple }),
        4 => (tag(), any::<bool>()).prop_map(|((client, which, multiple), requeue)| {
            Operation::Nack { client, which, multiple, requeue }
        }),
        2 => client.clone().prop_map(|client| Operation::Get { client }),
        1 => client.clone().prop_map(|client| Operation::CloseChannel { client }),
        1 => client.prop_map(|client| Operation::CloseConnection { client }),
        1 => Just(Operation::Purge),
        1 => Just(Operation::Crash),
    ]
}

/// A message as the naive queue knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    priority: u8,
    persistent: bool,
    /// `None` after a crash: what the process knew of it is best effort.
    delivered: Option<bool>,
}

#[derive(Debug, Default)]
struct NaiveClient {
    /// Prefetch of its consumer, if it has one.
    consumes: Option<u16>,
    /// Deliveries to its consumer and by get: message and tag; whether it came by the consumer
    /// that it has now.
    held: Vec<(u64, u64, bool)>,
}

/// Messages in a sorted set, and nothing clever.
#[derive(Debug)]
struct NaiveQueue {
    has_priorities: bool,
    messages: BTreeMap<u64, Known>,
    ready: BTreeSet<u64>,
    clients: Vec<NaiveClient>,
}

impl NaiveQueue {
    fn new(has_priorities: bool) -> Self {
        let clients = (0..CLIENTS).map(|_| NaiveClient::default()).collect();
        Self { has_priorities, messages: BTreeMap::new(), ready: BTreeSet::new(), clients }
    }

    /// Returns what has to come next.
    fn next(&self) -> Option<u64> {
        let rank = |id: &u64| {
            let priority = if self.has_priorities { self.messages[id].priority } else { 0 };
            (std::cmp::Reverse(priority), *id)
        };
        self.ready.iter().copied().min_by_key(rank)
    }

    fn has_credit(&self, client: usize) -> bool {
        let state = &self.clients[client];
        let unacked = state.held.iter().filter(|(_, _, by_consumer)| *by_consumer).count();
        state.consumes.is_some_and(|prefetch| prefetch == 0 || unacked < usize::from(prefetch))
    }

    fn deliver(&mut self, client: usize, id: u64, tag: u64, again: bool, by_consumer: bool) {
        assert_eq!(self.next(), Some(id), "the first ready message is delivered");
        let known = self.messages.get_mut(&id).expect("it was published");
        let expected = known.delivered.replace(true);
        assert!(expected.is_none_or(|before| before == again), "redelivered is said of {id}");
        if by_consumer {
            assert!(self.has_credit(client), "client {client} holds as many as it may");
        }
        self.ready.remove(&id);
        self.clients[client].held.push((id, tag, by_consumer));
    }

    fn requeue(&mut self, ids: Vec<u64>) {
        self.ready.extend(ids);
    }

    fn forget(&mut self, ids: Vec<u64>) {
        for id in ids {
            self.messages.remove(&id);
        }
    }

    fn crash(&mut self) {
        for client in &mut self.clients {
            *client = NaiveClient::default();
        }
        self.messages.retain(|_, known| known.persistent);
        self.messages.values_mut().for_each(|known| known.delivered = None);
        self.ready = self.messages.keys().copied().collect();
    }
}

struct Pair {
    test: BrokerTest,
    naive: NaiveQueue,
    next: u64,
}

impl Pair {
    fn new(store_kind: StoreKind, has_priorities: bool, resident_bytes_max: usize) -> Self {
        let config = BrokerConfig {
            resident_bytes_max,
            read_ahead_bytes_max: resident_bytes_max / 2,
            ..BrokerConfig::default()
        };
        let mut test = BrokerTest::new(config, store_kind);
        let now = test.now;
        let channel = test.client("declarer").channel;
        let mut arguments = Table::new();
        if has_priorities {
            arguments.set("x-max-priority", Value::I32(i32::from(PRIORITY_MAX)));
        }
        let request = DeclareQueue {
            name: String::from("q"),
            durable: true,
            arguments,
            ..DeclareQueue::default()
        };
        test.broker.declare_queue(now, channel, &request).unwrap();
        test.settle();
        Self { test, naive: NaiveQueue::new(has_priorities), next: 0 }
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.test.now;
        match *operation {
            Operation::Publish { persistent, priority, bytes } => {
                self.publish(persistent, priority, bytes);
            }
            Operation::Consume { client, prefetch } => {
                if self.naive.clients[client].consumes.is_some() {
                    return;
                }
                let channel = self.test.client(&name(client)).channel;
                self.test.broker.set_prefetch(now, channel, prefetch, false);
                let request = Consume {
                    queue: String::from("q"),
                    consumer_tag: String::from("t"),
                    ..Consume::default()
                };
                self.test.broker.consume(now, channel, &request).unwrap();
                self.naive.clients[client].consumes = Some(prefetch);
            }
            Operation::Cancel { client } => {
                let channel = self.test.client(&name(client)).channel;
                let known = self.test.broker.cancel(now, channel, "t");
                let state = &mut self.naive.clients[client];
                assert_eq!(known, state.consumes.take().is_some());
                state.held.iter_mut().for_each(|held| held.2 = false);
            }
            Operation::Ack { client, which, multiple } => {
                self.settle(client, which, multiple, None);
            }
            Operation::Nack { client, which, multiple, requeue } => {
                self.settle(client, which, multiple, Some(requeue));
            }
            Operation::Get { client } => self.get(client),
            Operation::CloseChannel { client } => {
                let open = self.test.client(&name(client));
                let (connection, channel) = (open.connection, open.channel);
                self.give_all_back(client);
                self.test.broker.close_channel(now, channel);
                let channel = self.test.broker.open_channel(connection, 1).unwrap();
                self.test.client(&name(client)).channel = channel;
            }
            Operation::CloseConnection { client } => {
                if let Some(open) = self.test.clients.remove(&name(client)) {
                    self.give_all_back(client);
                    self.test.broker.close_connection(now, open.connection);
                }
            }
            Operation::Purge => {
                let channel = self.test.client("declarer").channel;
                let purged = self.test.broker.purge_queue(now, channel, "q").unwrap();
                assert_eq!(purged.messages as usize, self.naive.ready.len());
                let gone = std::mem::take(&mut self.naive.ready);
                self.naive.forget(gone.into_iter().collect());
            }
            Operation::Crash => {
                self.test.crash(0);
                self.naive.crash();
            }
        }
    }

    fn publish(&mut self, persistent: bool, priority: u8, bytes: usize) {
        let now = self.test.now;
        let id = self.next;
        self.next += 1;
        let properties = Properties {
            delivery_mode: persistent.then_some(2),
            priority: Some(priority),
            ..Properties::default()
        };
        let mut body = id.to_string().into_bytes();
        body.resize(body.len() + bytes, b' ');
        let channel = self.test.client("declarer").channel;
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            properties: &properties.to_bytes(),
            body: Bytes::from(body),
            mandatory: true,
            confirm: true,
        };
        assert!(self.test.broker.publish(now, channel, publish).unwrap().routed);
        self.naive.messages.insert(id, Known { priority, persistent, delivered: Some(false) });
        self.naive.ready.insert(id);
    }

    fn settle(&mut self, client: usize, which: usize, multiple: bool, nack: Option<bool>) {
        let state = &mut self.naive.clients[client];
        let Some(&(_, tag, _)) = state.held.get(which) else {
            return;
        };
        let is_meant = |held: u64| held == tag || (multiple && held < tag);
        let ids = state.held.iter().filter(|held| is_meant(held.1)).map(|held| held.0).collect();
        state.held.retain(|held| !is_meant(held.1));
        let now = self.test.now;
        let channel = self.test.client(&name(client)).channel;
        let broker = &mut self.test.broker;
        match nack {
            None => broker.ack(now, channel, tag, multiple),
            Some(requeue) => broker.nack(now, channel, tag, multiple, requeue),
        }
        .unwrap();
        if nack == Some(true) {
            self.naive.requeue(ids);
        } else {
            self.naive.forget(ids);
        }
    }

    fn get(&mut self, client: usize) {
        let now = self.test.now;
        let channel = self.test.client(&name(client)).channel;
        self.test.broker.get(now, channel, "q", false).unwrap();
        self.test.settle();
        let got = self.test.client(&name(client)).got.pop_front().expect("an answer");
        match got {
            None => assert_eq!(self.naive.next(), None, "it is empty"),
            Some(got) => {
                let id = id_of(got.message.body());
                self.naive.deliver(client, id, got.delivery_tag, got.redelivered, false);
            }
        }
    }

    fn give_all_back(&mut self, client: usize) {
        let state = std::mem::take(&mut self.naive.clients[client]);
        self.naive.requeue(state.held.into_iter().map(|held| held.0).collect());
    }

    /// Compares everything that can be seen.
    fn check(&mut self) {
        self.test.settle();
        let mut deliveries = Vec::new();
        for (name, open) in &mut self.test.clients {
            let came = std::mem::take(&mut open.inbox);
            deliveries.extend(came.into_iter().map(|received| (name.clone(), received)));
        }
        // Each client's deliveries come in order; who was served first is the rank of the message.
        deliveries.sort_by_key(|(_, received)| {
            let id = id_of(received.message.body());
            let priority = self.naive.messages.get(&id).map_or(0, |known| known.priority);
            let priority = if self.naive.has_priorities { priority } else { 0 };
            (std::cmp::Reverse(priority), id)
        });
        for (client, received) in deliveries {
            let client: usize = client.parse().expect("clients are numbers");
            let id = id_of(received.message.body());
            self.naive.deliver(client, id, received.delivery_tag, received.redelivered, true);
        }
        if self.naive.next().is_some() {
            let idle = (0..CLIENTS).find(|client| self.naive.has_credit(*client));
            assert_eq!(idle, None, "a message waits although a consumer could take it");
        }
        let report = self.test.broker.queue("/", "q").unwrap();
        let held: usize = self.naive.clients.iter().map(|client| client.held.len()).sum();
        assert_eq!(report.messages_ready as usize, self.naive.ready.len());
        assert_eq!(report.messages_unacknowledged as usize, held);
    }
}

fn name(client: usize) -> String {
    client.to_string()
}

fn id_of(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().trim_end().parse().unwrap()
}

fn play(
    store_kind: StoreKind,
    has_priorities: bool,
    resident_bytes_max: usize,
    operations: &[Operation],
) {
    let mut pair = Pair::new(store_kind, has_priorities, resident_bytes_max);
    for operation in operations {
        pair.perform(operation);
        pair.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_does_what_the_naive_queue_does(
        operations in proptest::collection::vec(operation(), 1..120),
    ) {
        play(StoreKind::Memory, false, usize::MAX / 4, &operations);
    }

    #[test]
    fn a_priority_queue_does_what_the_naive_queue_does(
        operations in proptest::collection::vec(operation(), 1..120),
    ) {
        play(StoreKind::Memory, true, usize::MAX / 4, &operations);
    }

    #[test]
    fn little_memory_changes_nothing(
        operations in proptest::collection::vec(operation(), 1..120),
        has_priorities: bool,
    ) {
        play(StoreKind::Memory, has_priorities, 1_500, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_log_changes_nothing(
        operations in proptest::collection::vec(operation(), 1..120),
        has_priorities: bool,
    ) {
        play(StoreKind::Log(8 * 1024), has_priorities, 1_500, &operations);
    }
}
