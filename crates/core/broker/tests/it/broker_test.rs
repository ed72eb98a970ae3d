//! A broker with its clients, in virtual time: what a story acts on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use quelea_broker::{
    Broker, BrokerConfig, BrowsedPage, ChannelId, ConnectionId, ConnectionInfo, Effect, Publish,
    ReceiveId, ReceivedMessage,
};
use quelea_model::{Message, Properties, Timestamp};
use quelea_store::{Disk, Durability, MemStore, StoreState, Ticket};
use quelea_testkit::broker::{memory_of, open_log, open_memory, start};
use quelea_testkit::disk::{FakeDisk, Survival};

/// What the broker stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The store in memory: the model.
    Memory,
    /// The log, on a disk in memory, with segments of so many bytes.
    Log(u32),
}

/// What a crash leaves beside the broker.
enum CrashImage {
    /// The broker's own store.
    Memory,
    Log(FakeDisk, u32),
}

/// How a broker ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// In good order.
    Shutdown,
    Crash,
}

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
    pub(crate) looked_at: VecDeque<BrowsedPage>,
    pub(crate) cancelled: Vec<String>,
    /// Whether its output is taken at once.
    pub(crate) reads: bool,
    pub(crate) closed: Option<String>,
}

pub(crate) struct BrokerTest {
    pub(crate) broker: Broker,
    crash_image: CrashImage,
    pub(crate) config: BrokerConfig,
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) blocked: Vec<Option<String>>,
    /// Publishers that flow control let go on.
    pub(crate) resumed: Vec<ConnectionId>,
    /// Answers to receives.
    pub(crate) received: BTreeMap<ReceiveId, Option<Vec<ReceivedMessage>>>,
    /// What was said of messages that cannot be read, behind the names of their queues.
    pub(crate) unreadable: Vec<String>,
    /// Not yet reached.
    promises: Vec<Ticket>,
}

impl BrokerTest {
    pub(crate) fn new(config: BrokerConfig, store_kind: StoreKind) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        let (opened, crash_image) = match store_kind {
            StoreKind::Memory => (open_memory(MemStore::new()), CrashImage::Memory),
            StoreKind::Log(segment_bytes) => {
                let disk = FakeDisk::new();
                (open_log(&disk, segment_bytes, now), CrashImage::Log(disk, segment_bytes))
            }
        };
        let broker = start(config.clone(), opened, now);
        let (clients, blocked, promises) = (BTreeMap::new(), Vec::new(), Vec::new());
        let received = BTreeMap::new();
        let unreadable = Vec::new();
        let mut test = Self {
            broker,
            crash_image,
            config,
            now,
            clients,
            blocked,
            resumed: Vec::new(),
            received,
            unreadable,
            promises,
        };
        test.settle();
        test
    }

    /// A client publishes so many persistent messages to a queue.
    pub(crate) fn fill(&mut self, client: &str, queue: &str, messages: u64) {
        let channel = self.client(client).channel;
        let properties = Properties { delivery_mode: Some(2), ..Properties::default() }.to_bytes();
        for _ in 0..messages {
            let publish = Publish {
                exchange: "",
                routing_key: queue,
                properties: &properties,
                body: Bytes::from_static(b"m"),
                mandatory: false,
                confirm: false,
            };
            self.broker.publish(self.now, channel, publish).unwrap();
        }
    }

    /// The process dies: connections, transient messages and memory are gone. What the log was
    /// told is written first, so that a story may crash at any line. It is down for so long.
    pub(crate) fn crash(&mut self, down_ms: u64) {
        self.broker.store_mut().ticket(Durability::Os);
        self.pump_store();
        self.now = self.now.plus_ms(down_ms);
        self.restart(End::Crash, Survival::All, 0);
    }

    /// The process ends as it should, with a last checkpoint, and starts again.
    pub(crate) fn shut_down(&mut self) {
        self.broker.begin_shutdown(self.now);
        self.settle();
        self.restart(End::Shutdown, Survival::All, 0);
    }

    /// The log's disk takes so many bytes from now on.
    pub(crate) fn set_disk_capacity(&mut self, bytes: u64) {
        let CrashImage::Log(disk, _) = &self.crash_image else { panic!("the story has no log") };
        disk.set_capacity(Some(bytes));
    }

    /// Appends until the disk is full: until it has not been ready for another for five times this pause.
    pub(crate) fn append_until_full(&mut self, pause_ms: u64, mut append: impl FnMut(&mut Self)) {
        let mut looks = 0;
        // Now and then it only waits for its next file.
        while looks < 5 {
            if self.broker.accepts_publishes() {
                looks = 0;
                append(self);
            } else {
                looks += 1;
                self.now = self.now.plus_ms(pause_ms);
            }
            self.settle();
        }
    }

    /// Flips a bit of the log where this text lies in it.
    pub(crate) fn damage(&mut self, text: &str) {
        let CrashImage::Log(disk, _) = &self.crash_image else { panic!("the story has no log") };
        for name in disk.list().unwrap() {
            let mut content = disk.content(&name).unwrap();
            let found = content.windows(text.len()).position(|bytes| bytes == text.as_bytes());
            if let Some(at) = found {
                content[at] ^= 1;
                disk.set_content(&name, content);
                return;
            }
        }
        panic!("{text} is nowhere in the log");
    }

    /// The machine loses its power: any part of what was not synced is lost. To the store in
    /// memory nothing happens.
    pub(crate) fn power_cut(&mut self, seed: u64) {
        self.restart(End::Crash, Survival::Random, seed);
    }

    fn restart(&mut self, end: End, survival: Survival, seed: u64) {
        let (store, mut recovered) = match &mut self.crash_image {
            CrashImage::Memory => open_memory(std::mem::take(memory_of(&mut self.broker))),
            CrashImage::Log(disk, segment_bytes) => {
                *disk = disk.crash(survival, seed);
                open_log(disk, *segment_bytes, self.now)
            }
        };
        // As the node says it, which finds the data directory as it was left.
        recovered.after_crash = end == End::Crash;
        self.broker = start(self.config.clone(), (store, recovered), self.now);
        self.clients.clear();
        self.promises.clear();
        self.settle();
    }

    pub(crate) fn set_state(&mut self, state: StoreState) {
        memory_of(&mut self.broker).set_state(state);
        self.settle();
    }

    /// Something has been promised for when the ticket is reached.
    pub(crate) fn promise(&mut self, ticket: Ticket) {
        self.promises.push(ticket);
    }

    /// Returns whether all promises could be kept.
    pub(crate) fn promises_are_kept(&mut self) -> bool {
        let progress = self.broker.progress();
        self.promises.drain(..).all(|ticket| progress.reached(ticket))
    }

    /// Returns the client of that name; it connects when it is first named.
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
                looked_at: VecDeque::new(),
                cancelled: Vec::new(),
                reads: true,
                closed: None,
            };
            self.clients.insert(name.to_owned(), client);
        }
        self.clients.get_mut(name).unwrap()
    }

    /// Runs the broker and its store until nothing is left to do now.
    pub(crate) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            let more = self.broker.run(self.now);
            let any = self.pump_store() | self.carry_out_effects();
            quiet = if more || any { 0 } else { quiet + 1 };
            // Once more, for what the last turn has brought about.
            if quiet == 2 {
                return;
            }
        }
        panic!("the broker never comes to rest");
    }

    /// Runs one turn of the broker, and one job of its store. Returns whether the broker has more
    /// to do.
    pub(crate) fn turn(&mut self) -> bool {
        let more = self.broker.run(self.now);
        let store = self.broker.store_mut();
        if let (Some(job), CrashImage::Log(disk, _)) = (store.poll_job(self.now), &self.crash_image)
        {
            store.complete(job.run(disk));
        }
        self.carry_out_effects();
        more
    }

    fn pump_store(&mut self) -> bool {
        let mut any = false;
        let store = self.broker.store_mut();
        while let Some(job) = store.poll_job(self.now) {
            let CrashImage::Log(disk, _) = &self.crash_image else {
                unreachable!("the store in memory has no jobs: {job:?}");
            };
            store.complete(job.run(disk));
            any = true;
        }
        any
    }

    fn carry_out_effects(&mut self) -> bool {
        let mut any = false;
        while let Some(effect) = self.broker.poll_effect() {
            self.receive(effect);
            any = true;
        }
        any
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
            Effect::Browsed { connection, page } => {
                if let Some(client) = by_connection(&mut self.clients, connection) {
                    client.looked_at.push_back(*page);
                }
            }
            Effect::Received { receive, messages, .. } => {
                self.received.insert(receive, messages);
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
            Effect::PublisherResumed { connection } => self.resumed.push(connection),
            Effect::MessagesUnreadable { queue, error, .. } => {
                self.unreadable.push(format!("{}: {error}", queue.as_str()));
            }
            Effect::DefinitionLost { problem } => self.unreadable.push(problem),
        }
    }
}

fn by_connection(
    clients: &mut BTreeMap<String, Client>,
    connection: ConnectionId,
) -> Option<&mut Client> {
    clients.values_mut().find(|client| client.connection == connection)
}
