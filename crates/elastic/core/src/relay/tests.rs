//! A relay's core without sockets: what its clients say is given to it, and what it has for them is read
//! when the test says so.

mod credit;
mod edge;
mod missed;
mod pinned;
mod slow;
mod spill;

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    Acknowledge, AttachListener, ErrorCode, Frame, Hello, RelaySettings, Role, SlowPolicy, Start,
    WireError,
};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::encode_data;
use quelea_elastic_proto::{ClientId, Epoch, Fence, FrameBuffer, MessageSeq, RelayId, Slot, Time};

use crate::relay::limits::{
    AWAITING_MAX, RECEIVED_DISCONNECT_MS_MAX, RECEIVED_MS_MAX, RING_BYTES_MIN, RING_ITEMS_LOW,
    RING_ITEMS_MAX, RING_MS_MAX,
};
use crate::relay::{Command, Port, Relay, RelayConfig, SpillJob, default_settings};

const QUEUE: &str = "q";

struct RelayHarness {
    relay: Relay,
    ms: u64,
    /// They answer PINGs, whatever their programs do.
    clients: Vec<Port>,
    /// What the store of the policy Spill has.
    stored: VecDeque<u8>,
}

impl RelayHarness {
    fn new(change: impl FnOnce(&mut RelaySettings)) -> Self {
        Self::with_room(32, change)
    }

    fn with_room(connections_max: usize, change: impl FnOnce(&mut RelaySettings)) -> Self {
        let mut settings = default_settings();
        change(&mut settings);
        let config = RelayConfig {
            queue: QUEUE.to_owned(),
            relay: RelayId(0),
            key: Bytes::new(),
            connections_max,
            settings,
        };
        Self {
            relay: Relay::new(config, Time::from_micros(0)),
            ms: 0,
            clients: Vec::new(),
            stored: VecDeque::new(),
        }
    }

    fn client(&mut self) -> Port {
        let port = self.relay.connect().expect("there is room");
        let (version, role) = (VERSION, Role::Client);
        let hello = Hello { version, role, name: String::new(), key: Bytes::new() };
        self.say(port, &[Frame::Hello(hello)]);
        assert!(matches!(self.read(port)[..], [Frame::Welcome(_)]));
        self.clients.push(port);
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

    fn wait(&mut self, ms: u64) {
        let until = self.ms + ms;
        while self.ms < until {
            self.ms = (self.ms + 500).min(until);
            self.relay.begin_turn(Time::from_micros(self.ms * 1_000));
            for at in 0..self.clients.len() {
                self.say(self.clients[at], &[Frame::Pong(0)]);
            }
            self.relay.tick();
            self.turn();
        }
    }

    /// Does what the driver does for the policy Spill, for one listener.
    fn store(&mut self) {
        while let Some(job) = self.relay.poll_spill() {
            match job {
                SpillJob::Store { port, frames } => {
                    frames.iter().for_each(|frame| self.stored.extend(frame));
                    self.relay.spilled(port);
                }
                SpillJob::Read { port, bytes } => {
                    let bytes: Vec<u8> = self.stored.drain(..bytes).collect();
                    self.relay.read_back(port, &bytes);
                }
                SpillJob::Forget { .. } => self.stored.clear(),
            }
        }
    }

    /// Returns how far a producer was acknowledged since the last call.
    fn acknowledged(&mut self, (port, slot): (Port, Slot)) -> Option<u64> {
        self.turn();
        let below = |frame: &Frame| match frame {
            Frame::Ack { slot: of, below } if *of == slot => Some(below.0),
            _ => None,
        };
        self.read(port).iter().rev().find_map(below)
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
        self.start((port, slot), id, 0);
        (port, slot)
    }

    fn start(&mut self, (port, slot): (Port, Slot), id: u128, first: u64) {
        let (producer, epoch) = (ClientId(id), Epoch(1));
        let (first, previous) = (MessageSeq(first), Epoch(0));
        self.say(port, &[Frame::Start(Start { slot, producer, epoch, first, previous })]);
    }

    /// One message, in a read of its own: a run.
    fn publish(&mut self, (port, slot): (Port, Slot), sequence: u64, body: &[u8]) {
        let mut bytes = BytesMut::new();
        encode_data(&mut bytes, slot, MessageSeq(sequence), &[body]).expect("within limits");
        self.relay.received(port, bytes.freeze());
    }

    fn items(&self, port: Port) -> usize {
        self.relay.clients[port.index()].ring.items()
    }

    /// Returns the error that ended a client's connection.
    fn last_error(&mut self, port: Port) -> WireError {
        match self.read(port).pop() {
            Some(Frame::Error(error)) => error,
            other => panic!("{other:?} is no ERROR"),
        }
    }
}

/// Returns the numbers of the messages among these.
fn sequences(frames: &[Frame]) -> Vec<u64> {
    let sequence = |frame: &Frame| match frame {
        Frame::Data { sequence, .. } => Some(sequence.0),
        _ => None,
    };
    frames.iter().filter_map(sequence).collect()
}

#[test]
fn a_clients_fence_shuts_out_nobody() {
    let mut world = RelayHarness::new(|_| {});
    let port = world.client();
    let registered =
        |fence| Frame::Registered { fence: Fence(fence), settings: default_settings() };
    assert!(matches!(world.relay.command(registered(8)), Command::Registered { .. }));
    // One that a newer directory sent is here before that directory itself.
    assert!(world.attach(port, 1, 9).is_ok());
    assert!(world.attach(port, 2, u64::MAX).is_ok());
    assert!(world.attach(port, 3, 8).is_ok());
    let refused = world.attach(port, 4, 7).expect_err("the directory's fence is higher");
    assert_eq!((refused.code, &*refused.field), (ErrorCode::Fenced, "fence"));
    assert!(matches!(world.relay.command(registered(9)), Command::Registered { .. }));
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
    let mut world = RelayHarness::new(|_| {});
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
        let mut world = RelayHarness::new(|_| {});
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
    let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = RING_BYTES_MIN);
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
fn a_disconnected_client_is_sent_the_limit_it_exceeded() {
    let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = RING_BYTES_MIN);
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

#[test]
fn a_client_refused_twice_reads_the_first_reason() {
    let mut world = RelayHarness::new(|_| ());
    let listener = world.listener(1, SlowPolicy::DropOldest);
    world.relay.spill_failed(listener, "the disk is full");
    world.relay.spill_failed(listener, "the disk is still full");
    let error = world.last_error(listener);
    assert!(error.text.ends_with("the disk is full"), "{error:?}");
}

fn delivering() -> RelayHarness {
    RelayHarness::new(|settings| settings.acknowledge = Acknowledge::Delivered)
}

#[test]
fn a_listener_that_never_says_received_is_cut_off_some_time() {
    let mut world = delivering();
    let listener = world.listener(1, SlowPolicy::HoldProducers);
    let producer = world.producer(9);
    let count = AWAITING_MAX as u64 + 1;
    (0..count).for_each(|sequence| world.publish(producer, sequence, b"t"));
    assert_eq!(sequences(&world.read(listener)).len() as u64, count);
    assert_eq!(world.acknowledged(producer), Some(count), "nobody is waited for any more");
    let error = world.last_error(listener);
    assert_eq!((error.code, &*error.field), (ErrorCode::TooSlow, "received"));
    assert!(error.text.contains("262145") && error.text.contains("262144"), "{error:?}");
}

#[test]
fn a_program_that_stops_is_left_behind_until_it_goes_on() {
    for policy in [SlowPolicy::DropNewest, SlowPolicy::DropOldest] {
        let mut world = delivering();
        let (stalled, quick) = (world.listener(1, policy), world.listener(2, policy));
        let producer = world.producer(9);
        (0..3).for_each(|sequence| world.publish(producer, sequence, b"t"));
        // Three of them are in the stalled one's library, one in its ring.
        assert_eq!(sequences(&world.read(stalled)), [0, 1, 2]);
        world.publish(producer, 3, b"t");
        world.read(quick);
        world.say(quick, &[Frame::Received(4)]);
        world.wait(RECEIVED_MS_MAX - 500);
        assert_eq!(world.acknowledged(producer), None);
        world.wait(5_000);
        assert_eq!(world.acknowledged(producer), Some(4), "{policy:?}");
        assert_eq!(world.relay.counters.left_behind, 1);
        // It still gets everything, and the other one is waited for.
        world.publish(producer, 4, b"t");
        assert_eq!(sequences(&world.read(stalled)), [3, 4]);
        assert_eq!(world.acknowledged(producer), None);
        world.read(quick);
        world.say(quick, &[Frame::Received(5)]);
        assert_eq!(world.acknowledged(producer), Some(5));
        // It goes on: what comes from now on waits for it again.
        world.say(stalled, &[Frame::Received(1)]);
        world.publish(producer, 5, b"t");
        world.read(quick);
        world.say(quick, &[Frame::Received(6)]);
        assert_eq!(sequences(&world.read(stalled)), [5]);
        assert_eq!(world.acknowledged(producer), None);
        // The same again is no progress.
        world.say(stalled, &[Frame::Received(5)]);
        assert_eq!(world.acknowledged(producer), None);
        world.say(stalled, &[Frame::Received(6)]);
        assert_eq!(world.acknowledged(producer), Some(6));
        assert_eq!(world.relay.counters.dropped(), 0);
    }
}

#[test]
fn one_that_is_slow_and_goes_on_is_waited_for() {
    let mut world = delivering();
    let slow = world.listener(1, SlowPolicy::DropNewest);
    let producer = world.producer(9);
    (0..5).for_each(|sequence| world.publish(producer, sequence, b"t"));
    world.read(slow);
    for taken in 1..=5 {
        world.wait(RECEIVED_MS_MAX - 500);
        assert_eq!(world.acknowledged(producer), None);
        world.say(slow, &[Frame::Received(taken)]);
        assert_eq!(world.acknowledged(producer), Some(taken));
    }
    assert_eq!(world.relay.counters.left_behind, 0);
}

#[test]
fn a_program_that_stops_holds_producers_if_it_wants_that() {
    let mut world = delivering();
    let stalled = world.listener(1, SlowPolicy::HoldProducers);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(stalled);
    world.wait(2 * RECEIVED_DISCONNECT_MS_MAX);
    assert_eq!(world.acknowledged(producer), None);
    world.say(stalled, &[Frame::Received(1)]);
    assert_eq!(world.acknowledged(producer), Some(1));
}

#[test]
fn a_program_that_stops_is_disconnected_if_it_wants_that() {
    let mut world = delivering();
    let stalled = world.listener(1, SlowPolicy::Disconnect);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(stalled);
    world.wait(RECEIVED_DISCONNECT_MS_MAX - 500);
    assert_eq!(world.acknowledged(producer), None);
    world.wait(5_000);
    assert_eq!(world.acknowledged(producer), Some(1));
    let error = world.last_error(stalled);
    assert_eq!((error.code, &*error.field), (ErrorCode::TooSlow, "received"));
    assert!(error.text.contains(&RECEIVED_DISCONNECT_MS_MAX.to_string()), "{error:?}");
}

#[test]
fn what_a_stopped_program_has_in_a_file_comes_later() {
    let mut world = RelayHarness::new(|settings| {
        settings.acknowledge = Acknowledge::Delivered;
        settings.ring_bytes_max = RING_BYTES_MIN;
    });
    world.relay.allow_spill(1 << 20);
    let stalled = world.listener(1, SlowPolicy::Spill);
    let producer = world.producer(9);
    let body = vec![0; RING_BYTES_MIN as usize / 3];
    (0..6).for_each(|sequence| world.publish(producer, sequence, &body));
    world.store();
    assert!(!world.stored.is_empty() && world.relay.counters.spilled > 0);
    world.wait(RECEIVED_MS_MAX + 5_000);
    assert_eq!(world.acknowledged(producer), Some(6));
    // It goes on while most is in the file: what comes behind that waits for it.
    let mut got = sequences(&world.read(stalled));
    world.say(stalled, &[Frame::Received(1)]);
    (6..8).for_each(|sequence| world.publish(producer, sequence, &body));
    assert!(world.relay.counters.spilled >= 6, "they are behind the others");
    for _ in 0..8 {
        world.store();
        got.extend(sequences(&world.read(stalled)));
    }
    assert_eq!(got, (0..8).collect::<Vec<_>>());
    assert_eq!(world.acknowledged(producer), None);
    world.say(stalled, &[Frame::Received(7)]);
    assert_eq!(world.acknowledged(producer), Some(7));
    world.say(stalled, &[Frame::Received(8)]);
    assert_eq!(world.acknowledged(producer), Some(8));
}

#[test]
fn a_listener_that_takes_nothing_keeps_no_producer_waiting() {
    for (policy, waits) in [(SlowPolicy::DropNewest, false), (SlowPolicy::HoldProducers, true)] {
        let mut world = RelayHarness::new(|_| {});
        let stalled = world.listener(1, policy);
        let producer = world.producer(9);
        world.read(stalled);
        world.publish(producer, 0, b"t");
        assert_eq!(world.acknowledged(producer), None, "{policy:?}: it may just be slow");
        world.wait(2 * RING_MS_MAX);
        assert_eq!(world.acknowledged(producer), (!waits).then_some(1), "{policy:?}");
        // It gets the message all the same, and keeps up again.
        let came = world.read(stalled).into_iter().any(|frame| matches!(frame, Frame::Data { .. }));
        assert!(came, "{policy:?}");
        world.wait(RING_MS_MAX);
        world.acknowledged(producer);
        world.publish(producer, 1, b"t");
        assert_eq!(world.acknowledged(producer), None, "{policy:?}: it is waited for again");
    }
}
