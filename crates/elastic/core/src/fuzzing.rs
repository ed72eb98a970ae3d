//! What the fuzzer calls: a relay between honest clients and hostile ones.

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    Acknowledge, AttachListener, Frame, Hello, RelaySettings, Role, SlowPolicy, Start,
};
use quelea_elastic_proto::limits::{DATA_HEADER_BYTES, VERSION};
use quelea_elastic_proto::{
    ClientId, Epoch, Fence, FrameBuffer, MessageSeq, RelayId, Slot, Time, parts,
};

use crate::relay::{Port, Relay, RelayConfig, default_settings};

/// Who the honest ones are: no input knows it, unless it reads this.
const PRODUCER: ClientId = ClientId(0x5eed_0001_f00d_cafe_0bad_beef_1234_5678);
const LISTENER: ClientId = ClientId(0x5eed_0002_f00d_cafe_0bad_beef_1234_5678);
/// Hostile connections at a time.
const HOSTILE: usize = 3;
/// Turns of one step: what is to be written comes to an end.
const TURNS_MAX: usize = 10_000;

/// Byte 0 says how the relay is set up: 0 to 3 what it does with slow listeners, 0x04 that it acknowledges
/// when messages are delivered. Then steps of two bytes and more: what happens, and how much.
///
/// Whatever hostile connections send, however they read, the relay does not panic, has no endless work,
/// stays within its limits, and the honest listener gets every message of the honest producer, once, in order.
pub fn fuzz_relay(data: &[u8]) {
    let Some((&set_up, mut steps)) = data.split_first() else { return };
    let mut world = RelayWorld::new(set_up);
    while let Some((&[what, amount], rest)) = steps.split_first_chunk() {
        steps = rest;
        let who = usize::from(what >> 4) % HOSTILE;
        match what & 0x0f {
            0..=5 => {
                let bytes = usize::from(amount).min(steps.len());
                let (sent, rest) = steps.split_at(bytes);
                steps = rest;
                world.send(who, sent);
            }
            6 => world.greet(who),
            7 => world.leave(who),
            8 => world.read(who, usize::from(amount) * 64),
            9 => world.wait(u64::from(amount) * 10),
            10 => world.relay.drain(u32::from(amount)),
            11 => world.relay.fence_producer(ClientId(u128::from(amount)), Epoch(1 << 40)),
            _ => world.publish(usize::from(amount)),
        }
        world.turn();
    }
    world.publish(1);
    world.turn();
    world.check();
}

struct RelayWorld {
    relay: Relay,
    now: Time,
    hostile: [Option<Hostile>; HOSTILE],
    producer: Honest,
    listener: Honest,
    slot: Slot,
    sent: u64,
    sent_bytes: u64,
    credit_bytes: u64,
    received: u64,
    /// The honest producer's slot was ended, by who knows its id.
    ended: bool,
}

struct Hostile {
    port: Port,
    input: FrameBuffer,
}

struct Honest {
    port: Port,
    output: BytesMut,
}

impl RelayWorld {
    fn new(set_up: u8) -> Self {
        let slow = match set_up & 0x03 {
            0 => SlowPolicy::DropNewest,
            1 => SlowPolicy::DropOldest,
            2 => SlowPolicy::Disconnect,
            _ => SlowPolicy::HoldProducers,
        };
        let acknowledge =
            if set_up & 0x04 == 0 { Acknowledge::Relayed } else { Acknowledge::Delivered };
        let settings =
            RelaySettings { slow, acknowledge, ring_bytes_max: 64 << 10, ..default_settings() };
        let config = RelayConfig {
            queue: "q".to_owned(),
            relay: RelayId(0),
            key: Bytes::new(),
            connections_max: HOSTILE + 2,
            settings,
        };
        let mut relay = Relay::new(config, Time::ZERO);
        let mut honest = || {
            let port = relay.connect().expect("there is room");
            Honest { port, output: BytesMut::new() }
        };
        let (producer, listener) = (honest(), honest());
        let mut world = Self {
            relay,
            now: Time::ZERO,
            hostile: [const { None }; HOSTILE],
            producer,
            listener,
            slot: Slot(0),
            sent: 0,
            sent_bytes: 0,
            credit_bytes: 0,
            received: 0,
            ended: false,
        };
        world.introduce();
        world
    }

    fn introduce(&mut self) {
        let attach = Frame::AttachListener(AttachListener {
            queue: "q".to_owned(),
            listener: LISTENER,
            slow: Some(SlowPolicy::HoldProducers),
            prefixes: vec![Bytes::from_static(b"honest.")],
        });
        self.send_frames(self.listener.port, &[hello(), attach]);
        let (queue, producer) = ("q".to_owned(), PRODUCER);
        let (fence, epoch) = (Fence(1), Epoch(1));
        let attach = Frame::AttachProducer { queue, producer, fence, epoch };
        self.send_frames(self.producer.port, &[hello(), attach]);
        self.turn();
        let (slot, first, previous) = (self.slot, MessageSeq(0), Epoch(0));
        let start = Frame::Start(Start { slot, producer, epoch, first, previous });
        self.send_frames(self.producer.port, &[start]);
        self.turn();
    }

    fn send_frames(&mut self, port: Port, frames: &[Frame]) {
        let mut bytes = BytesMut::new();
        for frame in frames {
            frame.encode(&mut bytes).expect("a small frame");
        }
        self.relay.received(port, bytes.freeze());
    }

    /// The honest producer sends so many messages, as far as its credit goes.
    fn publish(&mut self, count: usize) {
        for _ in 0..count {
            if self.ended || self.sent_bytes >= self.credit_bytes {
                return;
            }
            let number = self.sent.to_le_bytes();
            let parts = parts::encode(&[b"honest.".as_slice(), &number]).expect("a small message");
            let data = Frame::Data { slot: self.slot, sequence: MessageSeq(self.sent), parts };
            self.sent += 1;
            let mut bytes = BytesMut::new();
            data.encode(&mut bytes).expect("a small frame");
            self.sent_bytes += bytes.len() as u64;
            self.relay.received(self.producer.port, bytes.freeze());
            self.turn();
        }
    }

    fn connection(&mut self, who: usize) -> Option<&mut Hostile> {
        if self.hostile[who].is_none() {
            let port = self.relay.connect().ok()?;
            self.hostile[who] = Some(Hostile { port, input: FrameBuffer::new() });
        }
        self.hostile[who].as_mut()
    }

    /// As `quelea relay` reads a socket.
    fn send(&mut self, who: usize, bytes: &[u8]) {
        let Some(hostile) = self.connection(who) else { return };
        hostile.input.room().extend_from_slice(bytes);
        let (port, mut taken) = (hostile.port, Ok(Bytes::new()));
        while let Some(hostile) = &mut self.hostile[who]
            && !self.relay.is_closing(port)
        {
            if self.relay.is_greeted(port) {
                hostile.input.greeted();
            }
            taken = hostile.input.take();
            match &taken {
                Ok(frames) if !frames.is_empty() => self.relay.received(port, frames.clone()),
                _ => break,
            }
        }
        if let Err(error) = taken {
            self.relay.malformed(port, error);
        }
    }

    /// It says a lawful HELLO, so that an input need not find one.
    fn greet(&mut self, who: usize) {
        let mut bytes = BytesMut::new();
        hello().encode(&mut bytes).expect("a small frame");
        self.send(who, &bytes);
    }

    fn leave(&mut self, who: usize) {
        if let Some(hostile) = self.hostile[who].take() {
            self.relay.disconnected(hostile.port);
        }
    }

    /// The only way in which a hostile connection reads.
    fn read(&mut self, who: usize, bytes: usize) {
        let Some(port) = self.hostile[who].as_ref().map(|hostile| hostile.port) else { return };
        self.relay.unblocked(port);
        take(&mut self.relay, port, bytes, &mut BytesMut::new());
        self.relay.blocked(port);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.relay.begin_turn(self.now);
        // The honest ones are alive.
        self.send_frames(self.producer.port, &[Frame::Ping(0)]);
        self.send_frames(self.listener.port, &[Frame::Ping(0)]);
        if self.relay.deadline() <= self.now {
            self.relay.tick();
        }
        for who in 0..HOSTILE {
            let overdue = |hostile: &Hostile| self.relay.is_overdue(hostile.port);
            if self.hostile[who].as_ref().is_some_and(overdue) {
                self.leave(who);
            }
        }
    }

    /// Writes to the honest ones until nobody has anything.
    fn turn(&mut self) {
        self.relay.begin_turn(self.now);
        for turn in 0.. {
            assert!(turn < TURNS_MAX, "a turn comes to its end");
            let mut wrote = false;
            while let Some(port) = self.relay.poll_writable() {
                for honest in [&mut self.producer, &mut self.listener] {
                    if honest.port == port {
                        wrote |= take(&mut self.relay, port, usize::MAX, &mut honest.output) > 0;
                    }
                }
            }
            self.relay.settle();
            while self.relay.poll_subscription_change().is_some() {}
            while self.relay.poll_keep().is_some() {}
            assert!(self.relay.poll_spill().is_none(), "nothing was allowed to spill");
            self.heard();
            if !wrote && !self.relay.has_writable() {
                break;
            }
        }
    }

    /// What was sent to the honest ones.
    fn heard(&mut self) {
        let mut frames = self.producer.output.split().freeze();
        while let Some(frame) = Frame::decode(&mut frames).expect("a relay writes frames") {
            match frame {
                Frame::Attached { slot, credit_bytes, .. } => {
                    (self.slot, self.credit_bytes) = (slot, credit_bytes);
                }
                Frame::Credit { bytes, .. } => {
                    assert!(bytes >= self.credit_bytes, "credit only grows");
                    self.credit_bytes = bytes;
                }
                Frame::Ack { below, .. } => assert!(below.0 <= self.sent, "ACK of what was sent"),
                Frame::Error(_) => self.ended = true,
                _ => {}
            }
        }
        let mut frames = self.listener.output.split().freeze();
        let before = self.received;
        while let Some(frame) = Frame::decode(&mut frames).expect("a relay writes frames") {
            match frame {
                Frame::Data { slot, sequence, parts } if slot == self.slot => {
                    assert_eq!(sequence.0, self.received, "each once, in order");
                    assert_eq!(parts.len() + DATA_HEADER_BYTES, 20 + 2 + 7 + 2 + 8);
                    self.received += 1;
                }
                Frame::Gap(gap) if gap.slot == self.slot => panic!("{gap:?} for who reads"),
                Frame::Fin { slot, .. } if slot == self.slot => self.ended = true,
                Frame::Error(_) => self.ended = true,
                _ => {}
            }
        }
        if self.received > before {
            self.send_frames(self.listener.port, &[Frame::Received(self.received)]);
        }
    }

    fn check(&self) {
        assert!(self.ended || self.received == self.sent, "all that was sent has come");
        assert!(self.relay.connections() <= HOSTILE + 2);
    }
}

fn hello() -> Frame {
    let (version, role) = (VERSION, Role::Client);
    Frame::Hello(Hello { version, role, name: "fuzz".to_owned(), key: Bytes::new() })
}

/// Takes up to so many bytes of what is to be written to a client; gives how many there were.
fn take(relay: &mut Relay, port: Port, bytes_max: usize, into: &mut BytesMut) -> usize {
    let mut all = 0;
    while all < bytes_max {
        let mut slices = [IoSlice::new(&[]); 8];
        let count = relay.slices(port, &mut slices);
        let mut bytes = 0;
        for slice in &slices[..count] {
            let part = slice.len().min(bytes_max - all - bytes);
            into.extend_from_slice(&slice[..part]);
            bytes += part;
        }
        if bytes == 0 {
            break;
        }
        relay.written(port, bytes);
        all += bytes;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns a strategy for frames as a client sends them, of few slots, producers and numbers,
    /// so that some fit each other.
    fn frame() -> impl Strategy<Value = Frame> {
        let small = 0..4_u64;
        let queue = || "q".to_owned();
        prop_oneof![
            (small.clone(), small.clone(), small.clone()).prop_map(move |(id, fence, epoch)| {
                let producer = ClientId(u128::from(id));
                let (fence, epoch) = (Fence(fence), Epoch(epoch));
                Frame::AttachProducer { queue: queue(), producer, fence, epoch }
            }),
            (small.clone(), small.clone(), small.clone(), small.clone()).prop_map(
                |(slot, id, epoch, first)| Frame::Start(Start {
                    slot: Slot(slot as u32),
                    producer: ClientId(u128::from(id)),
                    epoch: Epoch(epoch),
                    first: MessageSeq(first),
                    previous: Epoch(0),
                })
            ),
            (small.clone(), small.clone(), 0..9_000_usize).prop_map(|(slot, sequence, size)| {
                let body = vec![7; size];
                let parts = parts::encode(&[b"honest.".as_slice(), &body]).unwrap();
                Frame::Data { slot: Slot(slot as u32), sequence: MessageSeq(sequence), parts }
            }),
            (small.clone(), small.clone()).prop_map(|(slot, next)| Frame::Fin {
                slot: Slot(slot as u32),
                next: MessageSeq(next),
            }),
            (small.clone(), 0..5_u8).prop_map(move |(id, slow)| {
                let slow = [
                    None,
                    Some(SlowPolicy::DropNewest),
                    Some(SlowPolicy::DropOldest),
                    Some(SlowPolicy::Disconnect),
                    Some(SlowPolicy::HoldProducers),
                ][usize::from(slow)];
                Frame::AttachListener(AttachListener {
                    queue: queue(),
                    listener: ClientId(u128::from(id)),
                    slow,
                    prefixes: vec![Bytes::new(), Bytes::from_static(b"hon")],
                })
            }),
            small.clone().prop_map(|at| Frame::Subscribe(Bytes::from(vec![b'h'; at as usize]))),
            small.clone().prop_map(|at| Frame::Unsubscribe(Bytes::from(vec![b'h'; at as usize]))),
            small.clone().prop_map(Frame::Received),
            small.prop_map(Frame::Ping),
        ]
    }

    /// Returns a strategy for what one connection does: sends frames, or one of the other steps.
    fn step() -> impl Strategy<Value = Vec<u8>> {
        let sent = (0..HOSTILE as u8, vec(frame(), 1..4)).prop_map(|(who, frames)| {
            let mut bytes = BytesMut::new();
            frames.iter().for_each(|frame| frame.encode(&mut bytes).unwrap());
            let pieces = bytes.chunks(255);
            pieces.flat_map(|piece| [&[who << 4, piece.len() as u8], piece].concat()).collect()
        });
        let other = (0..HOSTILE as u8, 6..16_u8, any::<u8>())
            .prop_map(|(who, what, amount)| vec![who << 4 | what, amount]);
        prop_oneof![3 => sent, 2 => other]
    }

    proptest! {
        #[test]
        fn hostile_connections_harm_nobody_but_themselves(set_up in 0..8_u8, steps in vec(step(), 0..60)) {
            let greetings = (0..HOSTILE as u8).flat_map(|who| [who << 4 | 6, 0]);
            let data: Vec<u8> = [set_up].into_iter().chain(greetings).chain(steps.concat()).collect();
            fuzz_relay(&data);
        }
    }
}
