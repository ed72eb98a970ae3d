//! Listeners that may miss what is acknowledged, and what producers report of them.

use quelea_elastic_proto::limits::{MISSED_MAX, SEQUENCE_MAX};

use super::*;

impl RelayHarness {
    /// Returns what a producer was sent since the last call: who may miss what, and what is acknowledged.
    fn notified(&mut self, (port, _): (Port, Slot)) -> Vec<Notified> {
        self.turn();
        let sent = |frame| match frame {
            Frame::Missed { listener, below, .. } => Some(Notified::Missed(listener.0, below.0)),
            Frame::Ack { below, .. } => Some(Notified::Done(below.0)),
            _ => None,
        };
        self.read(port).into_iter().filter_map(sent).collect()
    }
}

#[derive(Debug, PartialEq)]
enum Notified {
    Missed(u128, u64),
    Done(u64),
}

const ALL: u64 = SEQUENCE_MAX;

#[test]
fn a_producer_is_sent_missed_for_a_broken_listener_before_its_acknowledgement() {
    let mut world = delivering();
    let broken = world.listener(1, SlowPolicy::DropNewest);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(broken);
    world.relay.disconnected(broken);
    assert_eq!(world.notified(producer), [Notified::Missed(1, ALL), Notified::Done(1)]);
    world.publish(producer, 1, b"t");
    assert_eq!(world.notified(producer), [Notified::Done(2)]);
    // A producer that comes is sent it, too; when the listener is back, both are.
    let later = world.producer(10);
    world.publish(later, 0, b"t");
    assert_eq!(world.notified(later), [Notified::Missed(1, ALL), Notified::Done(1)]);
    let back = world.listener(1, SlowPolicy::DropNewest);
    assert_eq!(world.notified(producer), [Notified::Missed(1, 2)]);
    assert_eq!(world.notified(later), [Notified::Missed(1, 1)]);
    // Who says that it goes misses nothing.
    world.say(back, &[Frame::Bye(String::new())]);
    world.publish(producer, 2, b"t");
    assert_eq!(world.notified(producer), [Notified::Done(3)]);
}

#[test]
fn a_producer_is_sent_missed_for_a_listener_left_behind() {
    let mut world = delivering();
    let stalled = world.listener(1, SlowPolicy::DropNewest);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(stalled);
    world.wait(RECEIVED_MS_MAX + 5_000);
    assert_eq!(world.notified(producer), [Notified::Missed(1, ALL), Notified::Done(1)]);
    world.say(stalled, &[Frame::Received(1)]);
    assert_eq!(world.notified(producer), [Notified::Missed(1, 1)]);
}

#[test]
fn a_producer_is_sent_missed_for_a_listener_with_drops() {
    for policy in [SlowPolicy::DropNewest, SlowPolicy::DropOldest] {
        let mut world = RelayHarness::new(|settings| {
            settings.acknowledge = Acknowledge::Delivered;
            settings.ring_bytes_max = RING_BYTES_MIN;
        });
        world.listener(1, policy);
        let producer = world.producer(9);
        let body = vec![7; RING_BYTES_MIN as usize / 4];
        (0..8).for_each(|sequence| world.publish(producer, sequence, &body));
        assert_eq!(world.notified(producer).first(), Some(&Notified::Missed(1, ALL)), "{policy:?}");
    }
}

const fn missed(producer: u128, listener: u128) -> Frame {
    let (producer, listener) = (ClientId(producer), ClientId(listener));
    Frame::Missed { producer, listener, below: MessageSeq(5) }
}

#[test]
fn missed_reaches_its_listener_or_marks_an_absent_one() {
    let mut world = delivering();
    let listener = world.listener(1, SlowPolicy::DropNewest);
    world.read(listener);
    let port = world.client();
    let slot = world.attach(port, 9, 0).expect("it may");
    world.say(port, &[missed(9, 1), missed(9, 2), missed(9, 3)]);
    // It is not late for START, so nothing else shows it that something went past it.
    let comes = world.listener(3, SlowPolicy::DropNewest);
    world.read(comes);
    world.start((port, slot), 9, 0);
    for (listener, id) in [(listener, 1), (comes, 3)] {
        let got = world.read(listener);
        assert_eq!(got[0], missed(9, id));
        assert!(matches!(got[1..], [Frame::Start(_)]), "{got:?}");
    }
    world.publish((port, slot), 0, b"t");
    assert_eq!(world.notified((port, slot)), [Notified::Missed(2, ALL)]);
}

#[test]
fn missed_is_taken_only_before_start_and_up_to_a_limit() {
    let mut world = delivering();
    let listener = world.listener(1, SlowPolicy::DropNewest);
    world.read(listener);
    let port = world.client();
    let slot = world.attach(port, 9, 0).expect("it may");
    world.say(port, &[missed(10, 1)]);
    let error = world.last_error(port);
    assert_eq!((error.code, &*error.field), (ErrorCode::Order, "producer"));
    world.say(port, &vec![missed(9, 1); MISSED_MAX]);
    assert_eq!(world.read(port), []);
    world.say(port, &[missed(9, 1)]);
    let error = world.last_error(port);
    assert_eq!((error.code, &*error.field, error.fatal), (ErrorCode::Limit, "listener", false));
    assert!(error.text.contains("257") && error.text.contains("256"), "{error:?}");
    assert_eq!(world.read(listener), []);
    world.start((port, slot), 9, 0);
    assert_eq!(world.read(listener).len(), MISSED_MAX + 1);
    world.say(port, &[missed(9, 1)]);
    let error = world.last_error(port);
    assert_eq!((error.code, &*error.field), (ErrorCode::Order, "producer"));
    assert_eq!(world.read(listener), []);
}

#[test]
fn a_listener_vouched_for_by_a_producer_evicts_nobody() {
    let mut world = delivering();
    let broken = world.listener(1, SlowPolicy::DropNewest);
    world.relay.disconnected(broken);
    let port = world.client();
    let slot = world.attach(port, 9, 0).expect("it may");
    let invented: Vec<Frame> =
        (1_000..1_000 + MISSED_MAX).map(|id| missed(9, id as u128)).collect();
    world.say(port, &invented);
    world.start((port, slot), 9, 0);
    let also = world.listener(2, SlowPolicy::DropNewest);
    world.relay.disconnected(also);
    world.publish((port, slot), 0, b"t");
    let sent = world.notified((port, slot));
    let count = sent.iter().filter(|of| matches!(of, Notified::Missed(..))).count();
    assert_eq!(count, MISSED_MAX);
    for (listener, is_sent) in [(1, true), (2, true), (1_000, false), (1_001, true), (1_255, false)]
    {
        assert_eq!(sent.contains(&Notified::Missed(listener, ALL)), is_sent, "{listener}");
    }
}

#[test]
fn a_producer_with_two_slots_is_sent_the_greatest_number_last() {
    // A key of the slab that is used again puts the later slot before the earlier one.
    for frees in [false, true] {
        let mut world = delivering();
        let keeps = world.listener(1, SlowPolicy::HoldProducers);
        let other = frees.then(|| world.producer(8));
        let port = world.client();
        let first = world.attach(port, 9, 0).expect("it may");
        world.start((port, first), 9, 0);
        (0..3).for_each(|sequence| world.publish((port, first), sequence, b"t"));
        world.read(keeps);
        let fin = Frame::Fin { slot: first, next: MessageSeq(3) };
        world.say(port, &[fin]);
        if let Some((other, _)) = other {
            world.relay.disconnected(other);
            world.turn();
        }
        let broken = world.listener(2, SlowPolicy::DropNewest);
        world.relay.disconnected(broken);
        let second = world.attach(port, 9, 0).expect("it may");
        world.start((port, second), 9, 3);
        (3..5).for_each(|sequence| world.publish((port, second), sequence, b"t"));
        world.notified((port, second));
        world.listener(2, SlowPolicy::DropNewest);
        let finite: Vec<Notified> = world.notified((port, second));
        assert_eq!(finite, [Notified::Missed(2, 5)], "a key used again: {frees}");
    }
}
