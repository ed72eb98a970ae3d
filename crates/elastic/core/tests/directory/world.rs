//! Everything around a directory: time, the metadata store, the provider, and the ends of its connections.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_elastic_core::directory::{
    Address, Directory, Effect, Event, Input, Peer, ProviderOutcome, QueueStatus, RelayHandle,
    SaveError, Settings,
};
use quelea_elastic_core::plan::Action;
use quelea_elastic_proto::frame::{
    Capacity, Frame, OpenListener, OpenProducer, ProducerReport, Register, RelayAddress, Report,
    Role,
};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, RelayId, Time};

/// Where all clients are.
pub(crate) const HERE: Address = Address(1);

/// The queue of most tests.
pub(crate) const QUEUE: &str = "prices";

/// What the store and the provider answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    Well,
    Never,
    Failing,
}

/// A directory and its surroundings.
pub(crate) struct DirectoryWorld {
    pub(crate) now: Time,
    pub(crate) directory: Directory,
    pub(crate) fence: u64,
    pub(crate) store: BTreeMap<String, Bytes>,
    pub(crate) store_answers: Answers,
    pub(crate) provider_answers: Answers,
    pub(crate) running: BTreeMap<RelayId, RelayHandle>,
    /// The provider knows of each relay that does not run that it has ended.
    pub(crate) knows_ends: bool,
    pub(crate) effects: Vec<Effect>,
    pub(crate) events: Vec<Event>,
    mail: BTreeMap<Peer, Vec<Frame>>,
    next_peer: u64,
}

impl DirectoryWorld {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self {
            now: Time::from_micros(1_000_000),
            directory: Directory::new(settings),
            fence: 7,
            store: BTreeMap::new(),
            store_answers: Answers::Well,
            provider_answers: Answers::Well,
            running: BTreeMap::new(),
            knows_ends: false,
            effects: Vec::new(),
            events: Vec::new(),
            mail: BTreeMap::new(),
            next_peer: 1,
        }
    }

    /// The directory dies; another one takes over, with a higher fence. Connections are gone.
    pub(crate) fn replace_directory(&mut self) {
        self.directory = Directory::new(Settings::default());
        self.fence += 1;
        self.mail.clear();
        self.events.clear();
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.directory.handle(self.now, input);
        self.pump();
    }

    /// An action that a plan could have.
    pub(crate) fn act(&mut self, action: Action) {
        self.give(Input::Act { queue: QUEUE.to_owned(), action, reason: "a test".to_owned() });
    }

    /// Lets time pass, with all ticks at their deadlines.
    pub(crate) fn pass_ms(&mut self, ms: u64) {
        let until = self.now.plus_ms(ms);
        while let Some(at) = self.directory.next_deadline().filter(|at| *at <= until) {
            assert!(at >= self.now || at == self.now, "a deadline lies in the past");
            self.now = self.now.max(at);
            self.give(Input::Tick);
            let next = self.directory.next_deadline();
            assert!(next.is_none_or(|next| next > self.now), "a tick does not set its deadline on");
        }
        self.now = until;
    }

    fn pump(&mut self) {
        while let Some(effect) = self.directory.poll_effect() {
            self.effects.push(effect.clone());
            if let Some(input) = self.carry_out(effect) {
                self.directory.handle(self.now, input);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Send { peer, frame } => {
                self.mail.entry(peer).or_default().push(frame);
                None
            }
            Effect::Claim { queue } => {
                (self.store_answers == Answers::Well).then(|| Input::Owned {
                    record: self.store.get(&queue).cloned(),
                    fence: Fence(self.fence),
                    running: self.running.values().cloned().collect(),
                    queue,
                })
            }
            Effect::Save { queue, save, fence, record } => {
                self.write(queue, save, fence, Some(record))
            }
            Effect::Remove { queue, fence } => self.write(queue, 0, fence, None),
            Effect::StartRelay { queue, spec } => {
                let handle = RelayHandle {
                    relay: spec.relay,
                    request: spec.request,
                    name: format!("process {}", 1_000 + spec.relay.0),
                };
                let outcome = match self.provider_answers {
                    Answers::Never => return None,
                    Answers::Failing => ProviderOutcome::Failed("no room".to_owned()),
                    Answers::Well => {
                        self.running.insert(spec.relay, handle.clone());
                        ProviderOutcome::Started(handle)
                    }
                };
                Some(Input::Provider { queue, relay: spec.relay, outcome })
            }
            Effect::CheckRelay { queue, relay, .. } => self.knows_ends.then(|| Input::Provider {
                queue,
                relay,
                outcome: ProviderOutcome::Ended("it is not there any more".to_owned()),
            }),
            Effect::StopRelay { queue, relay, name } => {
                if self.provider_answers == Answers::Never {
                    return None;
                }
                self.running.retain(|id, handle| *id != relay || handle.name != name);
                let outcome = ProviderOutcome::Ended("exit code 0".to_owned());
                Some(Input::Provider { queue, relay, outcome })
            }
            Effect::Event(event) => {
                self.events.push(event);
                None
            }
            Effect::Close { .. } | Effect::DrainRelay { .. } => None,
        }
    }

    fn write(
        &mut self,
        queue: String,
        save: u64,
        fence: Fence,
        record: Option<Bytes>,
    ) -> Option<Input> {
        let result = match self.store_answers {
            Answers::Never => return None,
            Answers::Failing => Err(SaveError::Unavailable),
            Answers::Well if fence.0 < self.fence => Err(SaveError::Fenced),
            Answers::Well => {
                match record {
                    Some(record) => drop(self.store.insert(queue.clone(), record)),
                    None => drop(self.store.remove(&queue)),
                }
                Ok(())
            }
        };
        Some(Input::Saved { queue, save, result })
    }

    pub(crate) fn connect(&mut self, role: Role) -> Peer {
        let peer = Peer(self.next_peer);
        self.next_peer += 1;
        self.give(Input::Connected { peer, role, address: HERE });
        peer
    }

    pub(crate) fn say(&mut self, peer: Peer, frame: Frame) {
        self.give(Input::Received { peer, frame });
    }

    /// Takes all that came to this connection since the last call.
    pub(crate) fn mail(&mut self, peer: Peer) -> Vec<Frame> {
        self.mail.remove(&peer).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> QueueStatus {
        self.directory.queue(self.now, QUEUE).expect("the queue is owned")
    }

    pub(crate) fn happened(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event.kind == kind).count()
    }

    pub(crate) fn started(&self) -> Vec<RelayId> {
        let starts = self.effects.iter().filter_map(|effect| match effect {
            Effect::StartRelay { spec, .. } => Some(spec.relay),
            _ => None,
        });
        starts.collect()
    }

    pub(crate) fn stopped(&self) -> Vec<RelayId> {
        let stops = self.effects.iter().filter_map(|effect| match effect {
            Effect::StopRelay { relay, .. } => Some(*relay),
            _ => None,
        });
        stops.collect()
    }
}

/// A relay's end of its connection.
pub(crate) struct FakeRelay {
    pub(crate) id: RelayId,
    pub(crate) peer: Peer,
    request: String,
    report: Report,
}

/// Returns the REGISTER of a relay of the queue.
pub(crate) fn register(relay: u64, request: &str, address: &str, fence: Fence) -> Frame {
    Frame::Register(Register {
        relay: RelayId(relay),
        queue: QUEUE.to_owned(),
        request: request.to_owned(),
        address: address.to_owned(),
        zmtp: (String::new(), String::new()),
        capacity: Capacity::default(),
        fence,
    })
}

impl FakeRelay {
    /// Registers the relay that the provider was asked for last.
    pub(crate) fn register(world: &mut DirectoryWorld, id: u64) -> Self {
        let peer = world.connect(Role::Relay);
        let request = world.running.get(&RelayId(id)).map(|handle| handle.request.clone());
        let request = request.unwrap_or_else(|| format!("request of {id}"));
        let mut relay = Self { id: RelayId(id), peer, request, report: Report::default() };
        relay.register_again(world);
        relay
    }

    pub(crate) fn register_again(&mut self, world: &mut DirectoryWorld) {
        let address = format!("127.0.0.1:{}", 7_000 + self.id.0);
        world.say(self.peer, register(self.id.0, &self.request, &address, Fence(0)));
    }

    /// Registers again with what it can carry.
    pub(crate) fn register_with(&mut self, world: &mut DirectoryWorld, capacity: Capacity) {
        let address = format!("127.0.0.1:{}", 7_000 + self.id.0);
        let mut frame = register(self.id.0, &self.request, &address, Fence(0));
        if let Frame::Register(register) = &mut frame {
            register.capacity = capacity;
        }
        world.say(self.peer, frame);
    }

    pub(crate) fn reconnect(&mut self, world: &mut DirectoryWorld) {
        self.peer = world.connect(Role::Relay);
        self.register_again(world);
    }

    /// A heartbeat with so many listeners, and no producer.
    pub(crate) fn report_listeners(&mut self, world: &mut DirectoryWorld, listeners: u32) {
        self.report.listeners = listeners;
        self.report(world, &[]);
    }

    /// A heartbeat, a second after the last one, with these producers.
    pub(crate) fn report(
        &mut self,
        world: &mut DirectoryWorld,
        producers: &[(&FakeProducer, u64)],
    ) {
        self.report.number += 1;
        self.report.uptime_ms += 1_000;
        let mut all = Vec::new();
        for (producer, bytes) in producers {
            self.report.bytes_in += bytes;
            all.push(ProducerReport {
                producer: producer.id,
                epoch: producer.epoch,
                next: MessageSeq(0),
                messages: 0,
                bytes: *bytes * self.report.number,
                bytes_out: 0,
                foreign: false,
            });
        }
        self.report.producers = all;
        world.say(self.peer, Frame::Report(self.report.clone()));
    }
}

/// A producer's end of its connection to the directory.
pub(crate) struct FakeProducer {
    pub(crate) id: ClientId,
    pub(crate) peer: Peer,
    pub(crate) relay: Option<RelayId>,
    pub(crate) epoch: Epoch,
}

impl FakeProducer {
    pub(crate) fn open(world: &mut DirectoryWorld, id: u128) -> Self {
        let peer = world.connect(Role::Client);
        let mut producer = Self { id: ClientId(id), peer, relay: None, epoch: Epoch::default() };
        producer.open_again(world);
        producer
    }

    pub(crate) fn open_again(&mut self, world: &mut DirectoryWorld) {
        world.say(
            self.peer,
            Frame::OpenProducer(OpenProducer {
                queue: QUEUE.to_owned(),
                producer: self.id,
                current: self.relay.map(|relay| (relay, self.epoch, MessageSeq(1))),
                expected_bytes_per_s: 0,
            }),
        );
    }

    /// Returns what the last PRODUCE_AT that has come says, if one has.
    pub(crate) fn assigned(&mut self, world: &mut DirectoryWorld) -> Option<(RelayId, Epoch)> {
        world.mail(self.peer).into_iter().rev().find_map(|frame| match frame {
            Frame::ProduceAt { epoch, relay, .. } => Some((relay.relay, epoch)),
            _ => None,
        })
    }

    /// Goes where it was assigned, and says so.
    pub(crate) fn follow(&mut self, world: &mut DirectoryWorld) -> RelayId {
        let (relay, epoch) = self.assigned(world).expect("PRODUCE_AT came");
        assert!(epoch > self.epoch, "epochs grow");
        (self.relay, self.epoch) = (Some(relay), epoch);
        let (queue, producer, first) = (QUEUE.to_owned(), self.id, MessageSeq(1));
        world.say(self.peer, Frame::Producing { queue, producer, epoch, relay, first });
        relay
    }

    pub(crate) fn lost(&mut self, world: &mut DirectoryWorld, relay: RelayId) {
        let (queue, client, cause) = (QUEUE.to_owned(), self.id, "reset".to_owned());
        world.say(self.peer, Frame::RelayLost { queue, client, relay, cause });
    }
}

/// A listener's end of its connection to the directory.
pub(crate) struct FakeListener {
    pub(crate) id: ClientId,
    pub(crate) peer: Peer,
    pub(crate) relays: Vec<RelayId>,
}

impl FakeListener {
    pub(crate) fn open(world: &mut DirectoryWorld, id: u128) -> Self {
        let peer = world.connect(Role::Client);
        let mut listener = Self { id: ClientId(id), peer, relays: Vec::new() };
        listener.open_again(world);
        listener
    }

    pub(crate) fn open_again(&mut self, world: &mut DirectoryWorld) {
        world.say(
            self.peer,
            Frame::OpenListener(OpenListener {
                queue: QUEUE.to_owned(),
                listener: self.id,
                attached: self.relays.clone(),
            }),
        );
    }

    /// Its directory is another one now.
    pub(crate) fn reconnect(&mut self, world: &mut DirectoryWorld) {
        self.peer = world.connect(Role::Client);
        self.open_again(world);
    }

    /// Returns what the last LISTEN_AT that has come says, if one has.
    pub(crate) fn assigned(
        &mut self,
        world: &mut DirectoryWorld,
    ) -> Option<(u64, Vec<RelayAddress>)> {
        world.mail(self.peer).into_iter().rev().find_map(|frame| match frame {
            Frame::ListenAt { generation, relays, .. } => Some((generation, relays)),
            _ => None,
        })
    }

    /// Listens where it was assigned, and says so.
    pub(crate) fn follow(&mut self, world: &mut DirectoryWorld) -> Vec<RelayId> {
        let (generation, relays) = self.assigned(world).expect("LISTEN_AT came");
        self.relays = relays.iter().map(|relay| relay.relay).collect();
        let (queue, listener, relays) = (QUEUE.to_owned(), self.id, self.relays.clone());
        world.say(self.peer, Frame::Listening { queue, listener, generation, relays });
        self.relays.clone()
    }

    pub(crate) fn lost(&mut self, world: &mut DirectoryWorld, relay: RelayId) {
        let (queue, client, cause) = (QUEUE.to_owned(), self.id, "reset".to_owned());
        world.say(self.peer, Frame::RelayLost { queue, client, relay, cause });
    }
}
