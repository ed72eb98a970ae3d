//! Listeners that may miss what is acknowledged, and producers' word of them.

use quelea_elastic_proto::limits::{MISSED_MAX, SEQUENCE_MAX};

use super::*;

impl World {
    /// What a producer was told since the last call: who may miss what, and what is acknowledged.
    fn told(&mut self, (port, _): (Port, Slot)) -> Vec<Told> {
        self.turn();
        let told = |frame| match frame {
            Frame::Missed { listener, below, .. } => Some(Told::Missed(listener.0, below.0)),
            Frame::Ack { below, .. } => Some(Told::Done(below.0)),
            _ => None,
        };
        self.read(port).into_iter().filter_map(told).collect()
    }
}

#[derive(Debug, PartialEq)]
enum Told {
    Missed(u128, u64),
    Done(u64),
}

const ALL: u64 = SEQUENCE_MAX;

#[test]
fn a_producer_is_told_whose_connection_broke_before_its_messages_are_acknowledged() {
    let mut world = delivering();
    let broken = world.listener(1, SlowPolicy::DropNewest);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(broken);
    world.relay.disconnected(broken);
    assert_eq!(world.told(producer), [Told::Missed(1, ALL), Told::Done(1)]);
    world.publish(producer, 1, b"t");
    assert_eq!(world.told(producer), [Told::Done(2)]);
    // A producer that comes is told, too; when the listener is back, both are.
    let later = world.producer(10);
    world.publish(later, 0, b"t");
    assert_eq!(world.told(later), [Told::Missed(1, ALL), Told::Done(1)]);
    let back = world.listener(1, SlowPolicy::DropNewest);
    assert_eq!(world.told(producer), [Told::Missed(1, 2)]);
    assert_eq!(world.told(later), [Told::Missed(1, 1)]);
    // Who says that it goes misses nothing.
    world.say(back, &[Frame::Bye(String::new())]);
    world.publish(producer, 2, b"t");
    assert_eq!(world.told(producer), [Told::Done(3)]);
}

#[test]
fn a_producer_is_told_who_was_left_behind_until_it_goes_on() {
    let mut world = delivering();
    let stalled = world.listener(1, SlowPolicy::DropNewest);
    let producer = world.producer(9);
    world.publish(producer, 0, b"t");
    world.read(stalled);
    world.wait(RECEIVED_MS_MAX + 5_000);
    assert_eq!(world.told(producer), [Told::Missed(1, ALL), Told::Done(1)]);
    world.say(stalled, &[Frame::Received(1)]);
    assert_eq!(world.told(producer), [Told::Missed(1, 1)]);
}

#[test]
fn a_producer_is_told_for_whom_messages_were_dropped() {
    for policy in [SlowPolicy::DropNewest, SlowPolicy::DropOldest] {
        let mut world = World::new(|settings| {
            settings.acknowledge = Acknowledge::Delivered;
            settings.ring_bytes_max = RING_BYTES_MIN;
        });
        world.listener(1, policy);
        let producer = world.producer(9);
        let body = vec![7; RING_BYTES_MIN as usize / 4];
        (0..8).for_each(|sequence| world.publish(producer, sequence, &body));
        assert_eq!(world.told(producer).first(), Some(&Told::Missed(1, ALL)), "{policy:?}");
    }
}

const fn missed(producer: u128, listener: u128) -> Frame {
    let (producer, listener) = (ClientId(producer), ClientId(listener));
    Frame::Missed { producer, listener, below: MessageSeq(5) }
}

#[test]
fn a_producers_word_goes_to_its_listener_and_one_who_is_not_there_may_miss_more() {
    let mut world = delivering();
    let listener = world.listener(1, SlowPolicy::DropNewest);
    world.read(listener);
    let port = world.client();
    let slot = world.attach(port, 9, 0).expect("it may");
    world.say(port, &[missed(9, 1), missed(9, 2), missed(9, 3)]);
    // It is not late for START, so nothing else tells it that something went past it.
    let comes = world.listener(3, SlowPolicy::DropNewest);
    world.read(comes);
    world.start((port, slot), 9, 0);
    for (listener, id) in [(listener, 1), (comes, 3)] {
        let got = world.read(listener);
        assert_eq!(got[0], missed(9, id));
        assert!(matches!(got[1..], [Frame::Start(_)]), "{got:?}");
    }
    world.publish((port, slot), 0, b"t");
    assert_eq!(world.told((port, slot)), [Told::Missed(2, ALL)]);
}

#[test]
fn a_producers_word_is_taken_only_before_its_start_and_for_so_many() {
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
fn who_is_known_only_by_a_producers_word_pushes_out_nobody_and_makes_room() {
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
    let told = world.told((port, slot));
    let count = told.iter().filter(|of| matches!(of, Told::Missed(..))).count();
    assert_eq!(count, MISSED_MAX);
    for (listener, is_told) in [(1, true), (2, true), (1_000, false), (1_001, true), (1_255, false)]
    {
        assert_eq!(told.contains(&Told::Missed(listener, ALL)), is_told, "{listener}");
    }
}

#[test]
fn a_producer_with_two_slots_is_told_the_greatest_number_last() {
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
        world.told((port, second));
        world.listener(2, SlowPolicy::DropNewest);
        let finite: Vec<Told> = world.told((port, second));
        assert_eq!(finite, [Told::Missed(2, 5)], "a key used again: {frees}");
    }
}
