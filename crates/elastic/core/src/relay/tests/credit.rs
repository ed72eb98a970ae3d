//! Credit of producers that come, while what those before them have sent still waits.

use quelea_elastic_proto::limits::DATA_HEADER_BYTES;

use super::*;
use crate::relay::limits::{WINDOW_BYTES, WINDOW_BYTES_MAX};

const BODY_BYTES: usize = 60 << 10;
/// More than may wait, whatever the credit that each gets is.
const TIMES: u128 = 64;

impl RelayHarness {
    /// Attaches a producer. Returns its slot and its first credit.
    fn credit_of(&mut self, port: Port, id: u128) -> (Slot, u64) {
        let (queue, producer) = (QUEUE.to_owned(), ClientId(id));
        let (fence, epoch) = (Fence(0), Epoch(1));
        self.say(port, &[Frame::AttachProducer { queue, producer, fence, epoch }]);
        match self.read(port).pop() {
            Some(Frame::Attached { slot, credit_bytes, .. }) => (slot, credit_bytes),
            other => panic!("{other:?} is no ATTACHED"),
        }
    }

    /// Attaches a producer, and sends what it may. Returns its slot, and how many messages that were.
    fn come_and_send(&mut self, port: Port, id: u128) -> (Slot, u64) {
        let (slot, credit) = self.credit_of(port, id);
        self.start((port, slot), id, 0);
        let (mut sent, mut next) = (0, 0);
        while sent < credit {
            self.publish((port, slot), next, &[0; BODY_BYTES]);
            sent += (BODY_BYTES + DATA_HEADER_BYTES) as u64;
            next += 1;
        }
        (slot, next)
    }

    /// Returns how far a producer's credit goes, as it was said since the last call.
    fn granted(&mut self, (port, slot): (Port, Slot)) -> Option<u64> {
        self.turn();
        self.read(port).iter().rev().find_map(|frame| match frame {
            Frame::Credit { slot: of, bytes } if *of == slot => Some(*bytes),
            _ => None,
        })
    }
}

#[test]
fn producers_that_come_and_go_share_one_credit() {
    let mut world = RelayHarness::new(|_| {});
    let stalled = world.listener(1, SlowPolicy::HoldProducers);
    let port = world.client();
    // In one read, before credit is settled, or in several.
    for (id, settles) in (0..TIMES).map(|id| (10 + id, id % 2 == 0)) {
        let (slot, next) = world.come_and_send(port, id);
        world.say(port, &[Frame::Fin { slot, next: MessageSeq(next) }]);
        if settles {
            world.turn();
        }
    }
    let waits = world.relay.queued_bytes();
    let bound = WINDOW_BYTES + WINDOW_BYTES_MAX + (1 << 20);
    assert!((WINDOW_BYTES..bound).contains(&waits), "{waits} bytes wait for one listener");
    let (slot, credit) = world.credit_of(port, 9);
    let edge = world.relay.connect_edge("e").expect("there is room");
    world.relay.edge_produces(edge, ClientId(8));
    world.turn();
    assert_eq!((credit, world.relay.edge_may_publish(edge)), (0, false));
    // Whoever waits goes on by itself when the listener does.
    world.read(stalled);
    world.relay.settle();
    let writable: Vec<Port> = std::iter::from_fn(|| world.relay.poll_writable()).collect();
    assert!(writable.contains(&edge) && world.relay.edge_may_publish(edge));
    assert_eq!(world.granted((port, slot)), Some(world.relay.window_bytes()));
}

#[test]
fn what_is_sent_again_while_the_keeper_is_away_is_bounded() {
    let mut world = RelayHarness::new(|settings| {
        settings.acknowledge = Acknowledge::Stored;
        settings.keep = ("127.0.0.1:1".to_owned(), "durable".to_owned());
    });
    let mut credits = Vec::new();
    for _ in 0..TIMES {
        let port = world.client();
        let (_, messages) = world.come_and_send(port, 9);
        credits.push(messages * BODY_BYTES as u64);
        world.relay.disconnected(port);
        world.clients.clear();
        world.turn();
    }
    let copies: u64 = credits.iter().sum();
    assert!(copies < WINDOW_BYTES + WINDOW_BYTES_MAX, "{copies} bytes are kept for the keeper");
    let port = world.client();
    let (slot, credit) = world.credit_of(port, 9);
    assert_eq!((credit, world.granted((port, slot))), (0, None));
    while let Some(Frame::Keep { producer, first, messages }) = world.relay.poll_keep() {
        world.relay.kept(producer, MessageSeq(first.0 + messages.len() as u64));
    }
    assert_eq!(world.granted((port, slot)), Some(world.relay.window_bytes()));
}

#[test]
fn a_message_without_any_credit_is_refused() {
    let mut world = RelayHarness::new(|_| {});
    let stalled = world.listener(1, SlowPolicy::HoldProducers);
    world.read(stalled);
    let port = world.client();
    for id in 10..13 {
        let (slot, next) = world.come_and_send(port, id);
        world.say(port, &[Frame::Fin { slot, next: MessageSeq(next) }]);
    }
    let waits = world.relay.queued_bytes();
    let (slot, credit) = world.credit_of(port, 9);
    assert_eq!(credit, 0);
    world.start((port, slot), 9, 0);
    world.publish((port, slot), 0, b"t");
    let error = world.last_error(port);
    assert_eq!((error.code, &*error.field, error.fatal), (ErrorCode::Limit, "credit", true));
    assert_eq!(world.relay.queued_bytes(), waits);
}
