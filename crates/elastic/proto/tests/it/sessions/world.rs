//! Relays, a directory and the network between them and the sessions, simulated: every step is chosen
//! by a seed. A relay here does what docs/formats/elastic.md says and nothing more.

mod absent;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{Acknowledge, Frame, RelayAddress, Start};
use quelea_elastic_proto::session::{
    Event, Link, ListenerConfig, ListenerSession, Output, ProducerConfig, ProducerSession,
    Session as _,
};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot, Time, parts};

pub(crate) const QUEUE: &str = "prices";
const WINDOW_BYTES: u64 = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Producer(usize),
    Listener(usize),
}

/// A connection: frames under way in both directions.
#[derive(Default)]
struct Wire {
    relay: RelayId,
    greeted: bool,
    /// The client closed it: the relay still reads what was sent.
    closing: bool,
    up: VecDeque<Frame>,
    down: VecDeque<Frame>,
    /// The relay is dead: what is under way may come, then the end.
    broken: bool,
    /// Of a listener: DATA frames sent, and what waits for RECEIVED.
    sent: u64,
    prefixes: Option<Vec<Bytes>>,
}

#[derive(Default)]
struct Relay {
    up: bool,
    last_slot: u32,
    slots: BTreeMap<Slot, Hosted>,
    /// Listeners whose connection broke.
    absent: BTreeSet<ClientId>,
}

/// A listener's connection, and the count of its messages at which it has this one.
type Awaited = ((Who, Link), u64);

struct Hosted {
    wire: (Who, Link),
    producer: ClientId,
    epoch: Epoch,
    started: Option<Start>,
    /// MISSED of its producer, until START.
    missed: Vec<Frame>,
    next: MessageSeq,
    finished: bool,
    acknowledged: MessageSeq,
    bytes: u64,
    granted: u64,
    /// Who has to take which message at which count of its connection.
    awaiting: VecDeque<(MessageSeq, Vec<Awaited>)>,
}

pub(crate) struct SessionWorld {
    pub(crate) now: Time,
    pub(crate) dice: fastrand::Rng,
    pub(crate) level: Acknowledge,
    pub(crate) producers: Vec<ProducerSession>,
    pub(crate) listeners: Vec<ListenerSession>,
    pub(crate) seen: Vec<Vec<Event>>,
    /// What listeners have of messages that they did not acknowledge by hand (all listeners count, the
    /// second one is asked to).
    unacknowledged: Vec<usize>,
    resting: bool,
    relays: BTreeMap<RelayId, Relay>,
    wires: BTreeMap<(Who, Link), Wire>,
    epoch: u64,
    generation: u64,
    /// Where each producer is sent.
    places: BTreeMap<usize, RelayId>,
    listening: BTreeMap<usize, Vec<RelayId>>,
    /// Moves that wait until all listeners are at the relay.
    moves: Vec<(usize, RelayId)>,
}

impl SessionWorld {
    pub(crate) fn new(
        seed: u64,
        level: Acknowledge,
        producers: usize,
        prefixes: &[&[&str]],
    ) -> Self {
        let mut world = Self {
            now: Time::ZERO,
            dice: fastrand::Rng::with_seed(seed),
            level,
            producers: Vec::new(),
            listeners: Vec::new(),
            seen: vec![Vec::new(); prefixes.len()],
            unacknowledged: vec![0; prefixes.len()],
            resting: false,
            relays: BTreeMap::new(),
            wires: BTreeMap::new(),
            epoch: 0,
            generation: 0,
            places: BTreeMap::new(),
            listening: BTreeMap::new(),
            moves: Vec::new(),
        };
        for prefixes in prefixes {
            let prefixes = prefixes.iter().map(|prefix| Bytes::copy_from_slice(prefix.as_bytes()));
            let listener = ClientId(1_000 + world.listeners.len() as u128);
            let config = ListenerConfig {
                queue: QUEUE.to_owned(),
                listener,
                slow: None,
                prefixes: prefixes.collect(),
                acknowledge_by_hand: world.listeners.len() == 1,
            };
            let mut session = ListenerSession::new(config).expect("a few short prefixes");
            session.handle_directory_connected(world.now);
            world.listeners.push(session);
        }
        for index in 0..producers {
            let config = ProducerConfig::new(QUEUE.to_owned(), ClientId(1 + index as u128));
            let mut session = ProducerSession::new(config, world.now);
            session.handle_directory_connected(world.now);
            world.producers.push(session);
        }
        world
    }

    /// A relay starts; it is announced to listeners.
    pub(crate) fn start_relay(&mut self, relay: u64) {
        self.relays.insert(RelayId(relay), Relay { up: true, ..Relay::default() });
        self.notify_relays();
    }

    /// The relays that are up are announced to all listeners.
    pub(crate) fn notify_relays(&mut self) {
        self.generation += 1;
        let up = self.relays.iter().filter(|(_, relay)| relay.up);
        let relays: Vec<RelayAddress> = up.map(|(id, _)| address(*id)).collect();
        for index in 0..self.listeners.len() {
            let frame = Frame::ListenAt {
                queue: QUEUE.to_owned(),
                listener: ClientId(1_000 + index as u128),
                fence: Fence(1),
                generation: self.generation,
                relays: relays.clone(),
            };
            self.listeners[index].handle_directory_frame(frame, self.now);
        }
    }

    /// The producer is to go there when all listeners are.
    pub(crate) fn move_to(&mut self, producer: usize, relay: u64) {
        self.moves.retain(|(of, _)| *of != producer);
        self.moves.push((producer, RelayId(relay)));
    }

    /// The relay dies. Of what it had sent some may still come.
    pub(crate) fn kill(&mut self, relay: u64) {
        let relay = RelayId(relay);
        if let Some(state) = self.relays.get_mut(&relay) {
            state.up = false;
            state.slots.clear();
        }
        for wire in self.wires.values_mut().filter(|wire| wire.relay == relay) {
            wire.broken = true;
            wire.up.clear();
            let keep = self.dice.usize(..(wire.down.len() + 1));
            wire.down.truncate(keep);
        }
    }

    /// A connection breaks; its relay goes on.
    pub(crate) fn cut(&mut self, who: Who) {
        let wires: Vec<(Who, Link)> =
            self.wires.keys().copied().filter(|key| key.0 == who).collect();
        if let Some(key) = wires.first() {
            self.relay_loses(*key);
            let wire = self.wires.get_mut(key).expect("it was listed");
            wire.broken = true;
            wire.up.clear();
            wire.down.clear();
        }
    }

    pub(crate) fn alive(&self) -> Vec<u64> {
        self.relays.iter().filter(|(_, relay)| relay.up).map(|(id, _)| id.0).collect()
    }

    pub(crate) fn publish(&mut self, producer: usize, topic: &str) -> bool {
        let sequence = self.producers[producer].next_sequence().0;
        let body = format!("{producer}:{sequence}");
        self.producers[producer].publish(&[topic.as_bytes(), body.as_bytes()]).is_ok()
    }

    /// Takes one step of someone, chosen by the dice. Returns whether anything could happen.
    pub(crate) fn step(&mut self) -> bool {
        self.sessions_act();
        self.directory_acts();
        let ready: Vec<(Who, Link)> =
            self.wires.iter().filter(|(_, w)| w.is_ready()).map(|(key, _)| *key).collect();
        if ready.is_empty() {
            return false;
        }
        let key = ready[self.dice.usize(..ready.len())];
        self.wire_acts(key);
        for index in 0..self.listeners.len() {
            if self.dice.usize(..4) == 0 {
                self.take_events(index);
            }
        }
        true
    }

    /// Until nothing happens any more, with all the time that it takes.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200_000 {
            if self.step() {
                continue;
            }
            self.resting = true;
            (0..self.listeners.len()).for_each(|index| self.take_events(index));
            self.resting = false;
            self.sessions_act();
            if self.wires.values().any(Wire::is_ready) {
                continue;
            }
            let deadlines = self.producers.iter().filter_map(ProducerSession::next_deadline);
            let listeners = self.listeners.iter().filter_map(ListenerSession::next_deadline);
            let Some(at) = deadlines.chain(listeners).min() else { return };
            if at > Time::ZERO.plus_ms(600_000) {
                return; // Only reconnecting to the dead goes on.
            }
            self.pass_to(at.max(self.now));
        }
        panic!("it does not come to rest");
    }

    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.pass_to(self.now.plus_ms(ms));
    }

    fn pass_to(&mut self, at: Time) {
        self.now = at;
        let now = self.now;
        self.producers.iter_mut().for_each(|session| session.handle_timeout(now));
        self.listeners.iter_mut().for_each(|session| session.handle_timeout(now));
    }

    /// As a program does: it is woken only when there is something.
    fn take_events(&mut self, index: usize) {
        let mut events = VecDeque::new();
        if self.listeners[index].waiting_events() > 0 {
            self.listeners[index].take_events(&mut events);
        }
        let is_message = |event: &&Event| matches!(event, Event::Message(_));
        self.unacknowledged[index] += events.iter().filter(is_message).count();
        self.seen[index].extend(events);
        // Now and then some of what it has; all when nothing else goes on.
        let all = self.unacknowledged[index];
        let messages = if self.resting { all } else { self.dice.usize(..(all + 1)) };
        self.unacknowledged[index] -= messages;
        if messages > 0 {
            self.listeners[index].acknowledge(messages as u64);
        }
    }

    fn sessions_act(&mut self) {
        for index in 0..self.producers.len() {
            while let Some(output) = self.producers[index].poll() {
                self.act(Who::Producer(index), output);
            }
        }
        for index in 0..self.listeners.len() {
            while let Some(output) = self.listeners[index].poll() {
                self.act(Who::Listener(index), output);
            }
        }
    }

    fn act(&mut self, who: Who, output: Output) {
        match output {
            Output::Connect { link, relay } => {
                let broken = !self.relays.get(&relay.relay).is_some_and(|relay| relay.up);
                let wire = Wire { relay: relay.relay, broken, ..Wire::default() };
                self.wires.insert((who, link), wire);
            }
            Output::Send { link, mut bytes } => {
                if let Some(wire) = self.wires.get_mut(&(who, link)).filter(|wire| !wire.broken) {
                    while let Some(frame) = Frame::decode(&mut bytes).expect("ours are well-formed")
                    {
                        wire.up.push_back(frame);
                    }
                    assert!(bytes.is_empty(), "only whole frames are sent");
                }
            }
            Output::Close { link } => {
                if let Some(wire) = self.wires.get_mut(&(who, link)) {
                    wire.closing = true;
                    wire.down.clear();
                }
            }
            Output::Directory(frame) => self.directory(who, frame),
        }
    }

    fn directory(&mut self, who: Who, frame: Frame) {
        match (who, frame) {
            (Who::Producer(index), Frame::OpenProducer(open)) if open.current.is_none() => {
                self.assign(index);
            }
            (Who::Producer(index), Frame::RelayLost { relay, .. })
                if self.places.get(&index) == Some(&relay) =>
            {
                self.assign(index);
            }
            (Who::Listener(index), Frame::Listening { relays, generation, .. })
                if generation == self.generation =>
            {
                self.listening.insert(index, relays);
            }
            _ => {}
        }
    }

    /// Some relay that is up, when all listeners are there.
    fn assign(&mut self, producer: usize) {
        let alive = self.alive();
        if !alive.is_empty() {
            let relay = alive[self.dice.usize(..alive.len())];
            self.move_to(producer, relay);
        }
    }

    fn produce_at(&mut self, producer: usize, relay: RelayId) {
        self.epoch += 1;
        self.places.insert(producer, relay);
        let frame = Frame::ProduceAt {
            queue: QUEUE.to_owned(),
            producer: ClientId(1 + producer as u128),
            fence: Fence(1),
            epoch: Epoch(self.epoch),
            relay: address(relay),
        };
        self.producers[producer].handle_directory_frame(frame, self.now);
    }

    fn directory_acts(&mut self) {
        for (producer, relay) in std::mem::take(&mut self.moves) {
            let alive = self.relays.get(&relay).is_some_and(|relay| relay.up);
            let all = (0..self.listeners.len())
                .all(|index| self.listening.get(&index).is_some_and(|at| at.contains(&relay)));
            if alive && all {
                self.produce_at(producer, relay);
            } else if alive {
                self.moves.push((producer, relay));
            }
        }
    }
}

impl Wire {
    fn is_ready(&self) -> bool {
        !self.greeted || self.broken || self.closing || !self.up.is_empty() || !self.down.is_empty()
    }
}

fn address(relay: RelayId) -> RelayAddress {
    RelayAddress { relay, address: format!("127.0.0.1:{}", 10_000 + relay.0) }
}

/// The wires and the relays behind them.
impl SessionWorld {
    fn wire_acts(&mut self, key: (Who, Link)) {
        let up_first = self.dice.usize(..2) == 0;
        let wire = self.wires.get_mut(&key).expect("it was listed");
        if !wire.greeted && !wire.broken {
            wire.greeted = true;
            self.connected(key);
        } else if !wire.up.is_empty() && (up_first || wire.down.is_empty()) {
            let frame = wire.up.pop_front().expect("it is not empty");
            self.relay_takes(key, frame);
        } else if wire.closing {
            self.relay_loses(key);
            self.wires.remove(&key);
        } else if let Some(frame) = wire.down.pop_front() {
            self.client_takes(key, frame);
        } else if wire.broken {
            self.wires.remove(&key);
            match key.0 {
                Who::Producer(index) => self.producers[index].handle_lost(key.1, "gone", self.now),
                Who::Listener(index) => self.listeners[index].handle_lost(key.1, "gone", self.now),
            }
        }
    }

    fn connected(&mut self, (who, link): (Who, Link)) {
        match who {
            Who::Producer(index) => self.producers[index].handle_connected(link, self.now),
            Who::Listener(index) => self.listeners[index].handle_connected(link, self.now),
        }
    }

    fn client_takes(&mut self, (who, link): (Who, Link), frame: Frame) {
        match who {
            Who::Producer(index) => self.producers[index].handle_frame(link, frame, self.now),
            Who::Listener(index) => {
                let mut bytes = BytesMut::new();
                frame.encode(&mut bytes).expect("a relay's frames are within the limits");
                let frames = bytes.freeze();
                self.listeners[index]
                    .handle_frames(link, frames, self.now)
                    .expect("a relay's frames are well-formed");
            }
        }
    }

    fn relay_takes(&mut self, key: (Who, Link), frame: Frame) {
        let id = self.wires[&key].relay;
        match frame {
            Frame::AttachProducer { producer, epoch, .. } => {
                let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
                relay.last_slot += 1;
                let slot = Slot(relay.last_slot);
                relay.slots.insert(
                    slot,
                    Hosted {
                        wire: key,
                        producer,
                        epoch,
                        started: None,
                        missed: Vec::new(),
                        next: MessageSeq(0),
                        finished: false,
                        acknowledged: MessageSeq(0),
                        bytes: 0,
                        granted: WINDOW_BYTES,
                        awaiting: VecDeque::new(),
                    },
                );
                let (acknowledge, credit_bytes) = (self.level, WINDOW_BYTES);
                self.down(key, Frame::Attached { slot, acknowledge, credit_bytes });
            }
            Frame::AttachListener(attach) => {
                let slots = self.relays[&id].slots.values();
                let present = slots.filter(|slot| !slot.finished).filter_map(|slot| {
                    slot.started.map(|start| Start { first: slot.next, ..start })
                });
                let starts: Vec<Start> = present.collect();
                starts.into_iter().for_each(|start| self.down(key, Frame::Start(start)));
                let (slot, acknowledge) = (Slot(0), self.level);
                self.down(key, Frame::Attached { slot, acknowledge, credit_bytes: 0 });
                self.wires.get_mut(&key).expect("it is there").prefixes = Some(attach.prefixes);
                self.misses_no_more(id, attach.listener);
            }
            Frame::Ping(number) => self.down(key, Frame::Pong(number)),
            Frame::Received(count) => self.received(id, key, count),
            Frame::Start(start) => {
                let slot = self.hosted(id, start.slot);
                assert!(slot.started.is_none() && slot.epoch == start.epoch && slot.wire == key);
                assert_eq!(slot.producer, start.producer);
                slot.started = Some(start);
                slot.next = start.first;
                slot.acknowledged = start.first;
                self.notify_who_missed(id, start.slot);
                self.notify_listeners(id, &Frame::Start(start));
                self.notify_absent(id, start.slot);
            }
            Frame::Missed { producer, .. } => self.take_missed(id, key, producer, frame),
            Frame::Data { slot, sequence, parts } => self.message(id, slot, sequence, parts),
            Frame::Fin { slot, next } => {
                let hosted = self.hosted(id, slot);
                assert_eq!(hosted.next, next, "FIN says what was sent");
                hosted.finished = true;
                self.notify_listeners(id, &Frame::Fin { slot, next });
                self.acknowledge(id, slot);
            }
            other => panic!("{other:?} is not for a relay"),
        }
    }

    fn hosted(&mut self, relay: RelayId, slot: Slot) -> &mut Hosted {
        let relay = self.relays.get_mut(&relay).expect("a relay that was connected to");
        relay.slots.get_mut(&slot).expect("a slot that was given out")
    }

    fn message(&mut self, id: RelayId, slot: Slot, sequence: MessageSeq, body: Bytes) {
        let topic = Bytes::copy_from_slice(parts::first(&body).expect("it was decoded"));
        let hosted = self.hosted(id, slot);
        assert!(!hosted.finished && hosted.started.is_some());
        assert_eq!(hosted.next, sequence, "a slot's messages are contiguous");
        assert!(hosted.bytes < hosted.granted, "a message begins within the credit");
        hosted.next.0 += 1;
        hosted.bytes += 20 + body.len() as u64;
        let mut waits = Vec::new();
        for (key, wire) in &mut self.wires {
            let matches = |prefix: &Bytes| topic.starts_with(prefix);
            let wants = wire.prefixes.as_ref().is_some_and(|all| all.iter().any(matches));
            if wire.relay == id && wants && !wire.broken && !wire.closing {
                wire.sent += 1;
                let parts = body.clone();
                wire.down.push_back(Frame::Data { slot, sequence, parts });
                if self.level != Acknowledge::Relayed {
                    waits.push((*key, wire.sent));
                }
            }
        }
        self.hosted(id, slot).awaiting.push_back((sequence, waits));
        self.acknowledge(id, slot);
    }

    fn received(&mut self, id: RelayId, key: (Who, Link), count: u64) {
        let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
        let slots: Vec<Slot> = relay.slots.keys().copied().collect();
        for slot in slots {
            for (_, waits) in &mut self.hosted(id, slot).awaiting {
                waits.retain(|(of, sent)| *of != key || *sent > count);
            }
            self.acknowledge(id, slot);
        }
    }

    fn acknowledge(&mut self, id: RelayId, slot: Slot) {
        let hosted = self.hosted(id, slot);
        while hosted.awaiting.front().is_some_and(|(_, waits)| waits.is_empty()) {
            hosted.awaiting.pop_front();
        }
        let below = hosted.awaiting.front().map_or(hosted.next, |(sequence, _)| *sequence);
        let (wire, granted) = (hosted.wire, hosted.bytes + WINDOW_BYTES);
        if below > hosted.acknowledged || hosted.finished {
            hosted.acknowledged = below;
            self.down(wire, Frame::Ack { slot, below });
        }
        let hosted = self.hosted(id, slot);
        if hosted.awaiting.is_empty() && granted > hosted.granted {
            hosted.granted = granted;
            self.down(wire, Frame::Credit { slot, bytes: granted });
        }
    }

    /// A client is gone: a producer's slots end, nobody waits for a listener.
    fn relay_loses(&mut self, key: (Who, Link)) {
        let id = self.wires[&key].relay;
        let Some(relay) = self.relays.get_mut(&id).filter(|relay| relay.up) else { return };
        let ended = relay.slots.iter_mut().filter(|(_, slot)| slot.wire == key && !slot.finished);
        let fins: Vec<Frame> = ended
            .filter_map(|(id, slot)| {
                slot.finished = true;
                slot.started.map(|_| Frame::Fin { slot: *id, next: slot.next })
            })
            .collect();
        fins.iter().for_each(|fin| self.notify_listeners(id, fin));
        if let Who::Listener(index) = key.0
            && self.wires[&key].prefixes.is_some()
        {
            self.may_miss(id, ClientId(1_000 + index as u128));
        }
        self.received(id, key, u64::MAX);
    }

    fn notify_listeners(&mut self, id: RelayId, frame: &Frame) {
        for wire in self.wires.values_mut() {
            if wire.relay == id && wire.prefixes.is_some() && !wire.broken && !wire.closing {
                wire.down.push_back(frame.clone());
            }
        }
    }

    fn down(&mut self, key: (Who, Link), frame: Frame) {
        if let Some(wire) = self.wires.get_mut(&key).filter(|wire| !wire.broken && !wire.closing) {
            wire.down.push_back(frame);
        }
    }
}
