//! A relay's core without sockets: what its clients say is given to it, and what it has for them is read
//! when the test says so.

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    AttachListener, ErrorCode, Frame, Hello, RelaySettings, Role, SlowPolicy, Start, WireError,
};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::encode_data;
use quelea_elastic_proto::{ClientId, Epoch, Fence, FrameBuffer, MessageSeq, RelayId, Slot, Time};

use crate::relay::limits::{RING_BYTES_MIN, RING_ITEMS_LOW, RING_ITEMS_MAX};
use crate::relay::{Command, Port, Relay, RelayConfig, default_settings};

const QUEUE: &str = "q";

struct World {
    relay: Relay,
}

impl World {
    fn new(change: impl FnOnce(&mut RelaySettings)) -> Self {
        let mut settings = default_settings();
        change(&mut settings);
        let config = RelayConfig {
            queue: QUEUE.to_owned(),
            relay: RelayId(0),
            key: Bytes::new(),
            connections_max: 16,
            settings,
        };
        Self { relay: Relay::new(config, Time::from_micros(0)) }
    }

    fn client(&mut self) -> Port {
        let port = self.relay.connect().expect("there is room");
        let (version, role) = (VERSION, Role::Client);
        let hello = Hello { version, role, name: String::new(), key: Bytes::new() };
        self.say(port, &[Frame::Hello(hello)]);
        assert!(matches!(self.read(port)[..], [Frame::Welcome(_)]));
        port
    }

    fn say(&mut self, port: Port, frames: &[Frame]) {
        let mut bytes = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes).expect("within limits"));
        self.relay.received(port, bytes.freeze());
    }

    /// Takes all that waits for a client.
    fn read(&mut self, port: Port) -> Vec<Frame> {
        let mut buffer = FrameBuffer::new();
        buffer.greeted();
        loop {
            let mut slices = [IoSlice::new(&[]); 64];
            let count = self.relay.slices(port, &mut slices);
            let bytes: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            if bytes.is_empty() {
                break;
            }
            buffer.room_of(bytes.len()).extend_from_slice(&bytes);
            self.relay.written(port, bytes.len());
        }
        std::iter::from_fn(|| buffer.next_frame().expect("the relay speaks the protocol")).collect()
    }

    /// Does what is left to do at the end of a turn, without writing anything.
    fn turn(&mut self) {
        while self.relay.poll_writable().is_some() {}
        self.relay.settle();
    }

    fn listener(&mut self, id: u128, slow: SlowPolicy) -> Port {
        let port = self.client();
        let (queue, listener) = (QUEUE.to_owned(), ClientId(id));
        let (slow, prefixes) = (Some(slow), vec![Bytes::new()]);
        self.say(
            port,
            &[Frame::AttachListener(AttachListener { queue, listener, slow, prefixes })],
        );
        port
    }

    fn attach(&mut self, port: Port, id: u128, fence: u64) -> Result<Slot, WireError> {
        let (queue, producer) = (QUEUE.to_owned(), ClientId(id));
        let (fence, epoch) = (Fence(fence), Epoch(1));
        self.say(port, &[Frame::AttachProducer { queue, producer, fence, epoch }]);
        match self.read(port).pop() {
            Some(Frame::Attached { slot, .. }) => Ok(slot),
            Some(Frame::Error(error)) => Err(error),
            other => panic!("{other:?} is no answer to ATTACH_PRODUCER"),
        }
    }

    fn producer(&mut self, id: u128) -> (Port, Slot) {
        let port = self.client();
        let slot = self.attach(port, id, 0).expect("it may");
        let (producer, epoch) = (ClientId(id), Epoch(1));
        let (first, previous) = (MessageSeq(0), Epoch(0));
        self.say(port, &[Frame::Start(Start { slot, producer, epoch, first, previous })]);
        (port, slot)
    }

    /// One message, in a read of its own: a stretch.
    fn publish(&mut self, (port, slot): (Port, Slot), sequence: u64, body: &[u8]) {
        let mut bytes = BytesMut::new();
        encode_data(&mut bytes, slot, MessageSeq(sequence), &[body]).expect("within limits");
        self.relay.received(port, bytes.freeze());
    }

    fn items(&self, port: Port) -> usize {
        self.relay.clients[port.index()].ring.items()
    }

    /// The error with which a client was told to go.
    fn last_error(&mut self, port: Port) -> WireError {
        match self.read(port).pop() {
            Some(Frame::Error(error)) => error,
            other => panic!("{other:?} is no ERROR"),
        }
    }
}

#[test]
fn a_clients_fence_shuts_out_nobody() {
    let mut world = World::new(|_| {});
    let port = world.client();
    let registered =
        |fence| Frame::Registered { fence: Fence(fence), settings: default_settings() };
    assert!(matches!(world.relay.command(registered(8)), Command::Reports { .. }));
    // One that a newer directory sent is here before that directory itself.
    assert!(world.attach(port, 1, 9).is_ok());
    assert!(world.attach(port, 2, u64::MAX).is_ok());
    assert!(world.attach(port, 3, 8).is_ok());
    let refused = world.attach(port, 4, 7).expect_err("the directory's fence is higher");
    assert_eq!((refused.code, &*refused.field), (ErrorCode::Fenced, "fence"));
    assert!(matches!(world.relay.command(registered(9)), Command::Reports { .. }));
    assert!(world.attach(port, 5, 8).is_err());
    let drain = |fence| Frame::Drain { fence: Fence(fence), deadline_ms: 1_000 };
    let Command::Answer(Frame::Error(refused)) = world.relay.command(drain(8)) else {
        panic!("a directory that was replaced is obeyed")
    };
    assert_eq!((refused.code, &*refused.field), (ErrorCode::Fenced, "fence"));
    assert_eq!(world.relay.command(drain(9)), Command::Done);
}

#[test]
fn a_fenced_producer_does_not_come_back_with_a_high_fence() {
    let mut world = World::new(|_| {});
    let port = world.client();
    assert!(world.attach(port, 1, 0).is_ok());
    let (fence, producer, below) = (Fence(0), ClientId(1), Epoch(2));
    world.relay.command(Frame::FenceProducer { fence, producer, below });
    world.read(port);
    let refused = world.attach(port, 1, u64::MAX).expect_err("its epoch is over");
    assert_eq!((refused.code, &*refused.field), (ErrorCode::Fenced, "epoch"));
}

#[test]
fn tiny_messages_are_dropped_by_their_number_too() {
    for (policy, left) in [
        (SlowPolicy::DropOldest, RING_ITEMS_LOW + 100),
        // It keeps the oldest, as many as there may be.
        (SlowPolicy::DropNewest, RING_ITEMS_MAX + 100),
    ] {
        let mut world = World::new(|_| {});
        let listener = world.listener(1, policy);
        let producer = world.producer(9);
        let count = RING_ITEMS_MAX as u64 + 50;
        (0..count).for_each(|sequence| world.publish(producer, sequence, b"t"));
        assert!(world.items(listener) <= left, "{policy:?}: {}", world.items(listener));
        let dropped = world.relay.counters.dropped();
        assert!(dropped > 0, "{policy:?}");
        let frames = world.read(listener);
        let messages = frames.iter().filter(|frame| matches!(frame, Frame::Data { .. })).count();
        let missing: u64 = frames
            .iter()
            .map(|frame| if let Frame::Gap(gap) = frame { gap.messages } else { 0 })
            .sum();
        assert_eq!((messages as u64 + missing, missing), (count, dropped), "{policy:?}");
    }
}

#[test]
fn nobody_is_cut_off_for_the_one_that_was_in_its_place() {
    let mut world = World::new(|settings| settings.ring_bytes_max = RING_BYTES_MIN);
    let slow = world.listener(1, SlowPolicy::Disconnect);
    let producer = world.producer(9);
    let body = vec![0; RING_BYTES_MIN as usize / 2];
    (0..3).for_each(|sequence| world.publish(producer, sequence, &body));
    world.relay.disconnected(slow);
    let next = world.relay.connect().expect("there is room");
    assert_eq!(next.index(), slow.index());
    world.turn();
    assert!(!world.relay.is_closing(next));
    assert_eq!(world.relay.counters.too_slow, 0);
}

#[test]
fn who_is_cut_off_is_told_which_limit_it_passed() {
    let mut world = World::new(|settings| settings.ring_bytes_max = RING_BYTES_MIN);
    let slow = world.listener(1, SlowPolicy::Disconnect);
    let producer = world.producer(9);
    let body = vec![0; RING_BYTES_MIN as usize / 2];
    (0..3).for_each(|sequence| world.publish(producer, sequence, &body));
    world.turn();
    let error = world.last_error(slow);
    assert_eq!((error.code, &*error.field), (ErrorCode::TooSlow, "ring_bytes_max"));
    assert!(error.text.contains("65536"), "{error:?}");
    let asking = world.client();
    let pings: Vec<Frame> = (0..1_000).map(Frame::Ping).collect();
    (0..300).for_each(|_| world.say(asking, &pings));
    world.turn();
    let error = world.last_error(asking);
    assert_eq!((error.code, &*error.field), (ErrorCode::TooSlow, "control_bytes_max"));
    assert!(error.text.contains("4194304"), "{error:?}");
}
