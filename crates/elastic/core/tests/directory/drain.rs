//! Emptying a relay: no new producer, its producers moved, then its listeners, then its end.

use quelea_elastic_core::directory::{Definition, Effect, Input};
use quelea_elastic_core::plan::{Action, RelayState};
use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::Frame;

use crate::world::{DirectoryWorld, FakeListener, FakeProducer, FakeRelay, QUEUE};

struct Scene {
    world: DirectoryWorld,
    relays: Vec<FakeRelay>,
    producer: FakeProducer,
    listener: FakeListener,
}

/// Sets up a producer at relay 1, none at relay 2, a listener at both; relay 1 drains.
fn scene() -> Scene {
    let mut world = DirectoryWorld::new();
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: Definition::default() });
    world.act(Action::Start { count: 1 });
    let relays = vec![FakeRelay::register(&mut world, 1), FakeRelay::register(&mut world, 2)];
    let mut listener = FakeListener::open(&mut world, 11);
    listener.follow(&mut world);
    let mut producer = FakeProducer::open(&mut world, 1);
    producer.follow(&mut world);
    world.act(Action::Drain { relay: RelayId(1) });
    Scene { world, relays, producer, listener }
}

#[test]
fn a_draining_relay_gets_drain_and_no_new_producer() {
    let Scene { mut world, relays, .. } = scene();
    let received = world.mail(relays[0].peer);
    assert!(
        matches!(received.last(), Some(Frame::Drain { deadline_ms: 60_000, .. })),
        "{received:?}"
    );
    assert_eq!(world.status().relays[0].state, RelayState::Draining);
    for id in 2..6 {
        assert_eq!(FakeProducer::open(&mut world, id).follow(&mut world), RelayId(2));
    }
}

#[test]
fn the_provider_learns_which_relay_goes_and_when_at_the_latest() {
    let Scene { mut world, .. } = scene();
    let drains = |world: &DirectoryWorld| -> Vec<(RelayId, String, u64)> {
        let drains = world.effects.iter().filter_map(|effect| match effect {
            Effect::DrainRelay { relay, name, deadline_ms, .. } => {
                Some((*relay, name.clone(), *deadline_ms))
            }
            _ => None,
        });
        drains.collect()
    };
    let received = (RelayId(1), "process 1001".to_owned(), 60_000);
    assert_eq!(drains(&world), std::slice::from_ref(&received));
    // Whoever takes over cannot know whether it was sent.
    world.replace_directory();
    FakeProducer::open(&mut world, 1);
    assert_eq!(drains(&world), [received.clone(), received]);
}

#[test]
fn it_is_emptied_left_and_ended_in_this_order() {
    let Scene { mut world, mut relays, mut producer, mut listener } = scene();
    let old = FakeProducer { id: producer.id, peer: producer.peer, ..producer };
    world.pass_ms(1_500);
    assert_eq!(producer.follow(&mut world), RelayId(2));
    relays[0].report(&mut world, &[(&old, 5)]);
    world.pass_ms(500);
    assert_eq!(listener.assigned(&mut world), None, "its slot has not ended");

    relays[0].report(&mut world, &[]);
    assert_eq!(listener.follow(&mut world), [RelayId(2)]);
    assert_eq!(world.stopped(), []);

    world.pass_ms(500);
    relays[0].report(&mut world, &[]);
    assert_eq!(world.stopped(), [RelayId(1)]);
    assert_eq!(world.status().relays.len(), 1);
    assert_eq!(world.happened("failover"), 0, "an end that was asked for is no failover");
    assert_eq!(world.started().len(), 2, "nor is it replaced");
}

#[test]
fn it_is_ended_at_its_deadline_whatever_is_left() {
    let Scene { mut world, mut relays, mut producer, .. } = scene();
    for _ in 0..61 {
        world.pass_ms(1_000);
        for relay in &mut relays {
            relay.report(&mut world, &[]);
        }
    }
    assert_eq!(world.stopped(), [RelayId(1)]);
    let (relay, _) = producer.assigned(&mut world).expect("it gets another");
    assert_eq!(relay, RelayId(2));
}

#[test]
fn a_relay_that_dies_while_it_drains_is_not_replaced() {
    let Scene { mut world, relays, mut producer, .. } = scene();
    world.give(Input::Disconnected { peer: relays[0].peer });
    producer.lost(&mut world, RelayId(1));
    assert_eq!(world.happened("failover"), 1);
    assert_eq!(producer.follow(&mut world), RelayId(2));
    assert_eq!(world.started().len(), 2);
}

#[test]
fn a_producer_on_its_way_to_a_relay_that_drains_turns_back() {
    let mut world = DirectoryWorld::new();
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: Definition::default() });
    let mut listener = FakeListener::open(&mut world, 11);
    FakeRelay::register(&mut world, 1);
    listener.follow(&mut world);
    let mut producer = FakeProducer::open(&mut world, 1);
    producer.follow(&mut world);
    world.act(Action::Start { count: 1 });
    FakeRelay::register(&mut world, 2);
    world.act(Action::Move { producer: producer.id, from: RelayId(1), to: RelayId(2) });
    world.act(Action::Drain { relay: RelayId(2) });
    listener.follow(&mut world);
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!(world.happened("abort"), 1);
}
