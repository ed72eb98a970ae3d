//! A broker with its clients, in virtual time: what a story acts on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quelea_broker::{Broker, BrokerConfig, ChannelId, ConnectionId, ConnectionInfo, Effect};
use quelea_model::{Message, Timestamp};
use quelea_store::{MemStore, Recovered, StoreState};

use crate::memory_store::{Keeper, MemoryStore};

/// A delivery that a client has received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) delivery_tag: u64,
    pub(crate) consumer_tag: Option<Arc<str>>,
    pub(crate) redelivered: bool,
    pub(crate) message: Arc<Message>,
}

/// A connection with one channel.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelId,
    /// Not yet expected.
    pub(crate) inbox: VecDeque<Received>,
    /// Not yet settled.
    pub(crate) held: Vec<Received>,
    pub(crate) got: VecDeque<Option<Received>>,
    pub(crate) cancelled: Vec<String>,
    /// Whether its output is taken at once.
    pub(crate) reads: bool,
    pub(crate) closed: Option<String>,
}

pub(crate) struct World {
    pub(crate) broker: Broker,
    keeper: Keeper,
    pub(crate) config: BrokerConfig,
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) blocked: Vec<Option<String>>,
}

impl World {
    pub(crate) fn new(config: BrokerConfig) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let (store, keeper) = MemoryStore::new(MemStore::new());
        let empty = MemStore::new().recover();
        let broker = start(config.clone(), store, empty, now);
        Self { broker, keeper, config, now, clients: BTreeMap::new(), blocked: Vec::new() }
    }

    /// The process dies: connections, transient messages and memory are gone.
    pub(crate) fn crash(&mut self) {
        let (nothing, _) = MemoryStore::new(MemStore::new());
        let empty = MemStore::new().recover();
        self.broker = start(self.config.clone(), nothing, empty, self.now);
        let store = self.keeper.back.recv().expect("the old broker gave its store back");
        let recovered = store.recover();
        let (store, keeper) = MemoryStore::new(store);
        self.broker = start(self.config.clone(), store, recovered, self.now);
        self.keeper = keeper;
        self.clients.clear();
    }

    pub(crate) fn set_state(&mut self, state: StoreState) {
        self.keeper.orders.send(state).expect("the store is there");
        self.settle();
    }

    /// The client of that name; it connects when it is first named.
    pub(crate) fn client(&mut self, name: &str) -> &mut Client {
        if !self.clients.contains_key(name) {
            let info = ConnectionInfo {
                user: String::from("guest"),
                vhost: String::from("/"),
                loopback: true,
                name: name.to_owned(),
                ..ConnectionInfo::default()
            };
            let connection = self.broker.open_connection(self.now, info).unwrap();
            let channel = self.broker.open_channel(connection, 1).unwrap();
            let client = Client {
                connection,
                channel,
                inbox: VecDeque::new(),
                held: Vec::new(),
                got: VecDeque::new(),
                cancelled: Vec::new(),
                reads: true,
                closed: None,
            };
            self.clients.insert(name.to_owned(), client);
        }
        self.clients.get_mut(name).unwrap()
    }

    /// Runs the broker until nothing is left to do now.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let more = self.broker.run(self.now);
            let store = self.broker.store_mut();
            while let Some(job) = store.poll_job(self.now) {
                unreachable!("the store in memory has no jobs: {job:?}");
            }
            let mut any = false;
            while let Some(effect) = self.broker.poll_effect() {
                any = true;
                self.receive(effect);
            }
            if !more && !any {
                // Once more, for what was read or blocked by the last turn.
                if !self.broker.run(self.now) {
                    return;
                }
            }
        }
        panic!("the broker never comes to rest");
    }

    /// Lets time pass, stopping at every deadline on the way.
    pub(crate) fn wait(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        while let Some(deadline) = self.broker.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.settle();
            if self.broker.deadline() == Some(deadline) {
                panic!("a deadline that has come stays");
            }
        }
        self.now = end;
        self.settle();
    }

    fn receive(&mut self, effect: Effect) {
        match effect {
            Effect::Deliver {
                connection,
                consumer_tag,
                delivery_tag,
                redelivered,
                message,
                ..
            } => {
                let now = self.now;
                let bytes = message.resident_bytes() + 300;
                let Some(client) = by_connection(&mut self.clients, connection) else { return };
                let consumer_tag = Some(consumer_tag);
                let received = Received { delivery_tag, consumer_tag, redelivered, message };
                client.inbox.push_back(received.clone());
                client.held.push(received);
                if client.reads {
                    self.broker.output_drained(now, connection, bytes);
                }
            }
            Effect::Got { connection, delivery_tag, redelivered, message, .. } => {
                let Some(client) = by_connection(&mut self.clients, connection) else { return };
                let received = Received { delivery_tag, consumer_tag: None, redelivered, message };
                client.got.push_back(Some(received.clone()));
                client.held.push(received);
            }
            Effect::GotEmpty { connection, .. } => {
                if let Some(client) = by_connection(&mut self.clients, connection) {
                    client.got.push_back(None);
                }
            }
            Effect::ConsumerCancelled { connection, consumer_tag, .. } => {
                if let Some(client) = by_connection(&mut self.clients, connection) {
                    client.cancelled.push(consumer_tag.to_string());
                }
            }
            Effect::CloseConnection { connection, reason } => {
                if let Some(client) = by_connection(&mut self.clients, connection) {
                    client.closed = Some(reason.text());
                }
                self.broker.close_connection(self.now, connection);
            }
            Effect::PublishersBlocked { reason } => self.blocked.push(Some(reason)),
            Effect::PublishersUnblocked => self.blocked.push(None),
        }
    }
}

fn by_connection(
    clients: &mut BTreeMap<String, Client>,
    connection: ConnectionId,
) -> Option<&mut Client> {
    clients.values_mut().find(|client| client.connection == connection)
}

fn start(config: BrokerConfig, store: MemoryStore, recovered: Recovered, now: Timestamp) -> Broker {
    let mut broker = Broker::new(config, Box::new(store), recovered, 7, now).unwrap();
    broker.bootstrap("");
    broker
}
