//! When a relay is dead, and that its clients are elsewhere soon after.

use quelea_elastic_core::directory::{Definition, Input, ProviderOutcome};
use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::Frame;

use crate::world::{DirectoryWorld, FakeListener, FakeProducer, FakeRelay, QUEUE};

struct Scene {
    world: DirectoryWorld,
    relays: Vec<FakeRelay>,
    producers: Vec<FakeProducer>,
    listener: FakeListener,
}

/// Sets up two relays with a producer each, and a listener at both.
fn scene() -> Scene {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let relays = vec![FakeRelay::register(&mut world, 1), FakeRelay::register(&mut world, 2)];
    let mut listener = FakeListener::open(&mut world, 11);
    listener.follow(&mut world);
    let mut producers = vec![FakeProducer::open(&mut world, 1), FakeProducer::open(&mut world, 2)];
    for producer in &mut producers {
        producer.follow(&mut world);
    }
    Scene { world, relays, producers, listener }
}

#[test]
fn the_providers_word_is_enough() {
    let Scene { mut world, mut producers, mut listener, .. } = scene();
    world.running.remove(&RelayId(1));
    world.give(Input::Provider {
        queue: QUEUE.to_owned(),
        relay: RelayId(1),
        outcome: ProviderOutcome::Ended("signal 9".to_owned()),
    });
    assert_eq!(producers[0].follow(&mut world), RelayId(2));
    assert_eq!(producers[1].assigned(&mut world), None);
    assert_eq!(listener.follow(&mut world), [RelayId(2)]);
    assert_eq!(world.started(), [RelayId(1), RelayId(2), RelayId(3)]);
    assert_eq!(world.happened("failover"), 1);
}

#[test]
fn a_closed_connection_and_a_client_together_are_enough() {
    let Scene { mut world, relays, mut producers, .. } = scene();
    world.give(Input::Disconnected { peer: relays[0].peer });
    assert_eq!(world.happened("failover"), 0);
    producers[0].lost(&mut world, RelayId(1));
    assert_eq!(world.happened("failover"), 1);
    assert_eq!(producers[0].follow(&mut world), RelayId(2));
    assert_eq!(world.stopped(), [RelayId(1)]);
}

#[test]
fn clients_cut_off_together_do_not_end_a_relay_that_reports() {
    let Scene { mut world, mut relays, mut producers, mut listener } = scene();
    for _ in 0..30 {
        relays.iter_mut().for_each(|relay| relay.report(&mut world, &[]));
        producers[0].lost(&mut world, RelayId(1));
        listener.lost(&mut world, RelayId(1));
        // A plan is made in between, too.
        world.pass_ms(999);
    }
    assert_eq!(world.happened("failover"), 0);
    assert_eq!(producers[0].follow(&mut world), RelayId(2), "but they are helped");
}

#[test]
fn a_dead_connected_relay_is_found_by_silence_and_a_client() {
    let Scene { mut world, mut relays, mut producers, .. } = scene();
    producers[0].lost(&mut world, RelayId(1));
    assert_eq!(world.happened("failover"), 0, "a client's word alone is not enough");
    assert_eq!(producers[0].follow(&mut world), RelayId(2), "but that client is helped at once");
    for _ in 0..3 {
        world.pass_ms(1_000);
        relays[1].report(&mut world, &[]);
    }
    world.pass_ms(500);
    assert_eq!(world.happened("failover"), 1);
    let received = world.mail(relays[0].peer);
    assert!(matches!(received.last(), Some(Frame::Stop { .. })), "it may only sleep: {received:?}");
}

#[test]
fn silence_alone_is_believed_when_it_lasts() {
    let Scene { mut world, mut relays, .. } = scene();
    for second in 0..11 {
        let expected = usize::from(second >= 10);
        assert_eq!(world.happened("failover"), expected, "after {second} s");
        world.pass_ms(1_000);
        relays[1].report(&mut world, &[]);
    }
    assert_eq!(world.happened("failover"), 1);
}

#[test]
fn its_producers_learn_that_it_is_dead_before_they_get_another() {
    let Scene { mut world, mut relays, producers, .. } = scene();
    for _ in 0..11 {
        world.pass_ms(1_000);
        relays[1].report(&mut world, &[]);
    }
    let mail = world.mail(producers[0].peer);
    let lost = mail.iter().position(|frame| {
        matches!(frame, Frame::RelayLost { client, relay: RelayId(1), .. } if *client == producers[0].id)
    });
    let other = mail.iter().position(|frame| matches!(frame, Frame::ProduceAt { .. }));
    assert!(lost.is_some() && lost < other, "{mail:?}");
    let mail = world.mail(producers[1].peer);
    assert!(!mail.iter().any(|frame| matches!(frame, Frame::RelayLost { .. })), "{mail:?}");
}

#[test]
fn a_relay_that_only_lost_the_directory_lives_on() {
    let Scene { mut world, mut relays, mut producers, .. } = scene();
    world.give(Input::Disconnected { peer: relays[0].peer });
    world.pass_ms(1_500);
    relays[0].reconnect(&mut world);
    relays[1].report(&mut world, &[]);
    world.pass_ms(2_000);
    assert_eq!(world.happened("failover"), 0);
    assert_eq!(producers[0].assigned(&mut world), None);
}

#[test]
fn a_client_that_alone_loses_a_healthy_relay_does_not_kill_it() {
    let Scene { mut world, mut relays, mut producers, .. } = scene();
    for _ in 0..5 {
        producers[0].lost(&mut world, RelayId(1));
        world.pass_ms(1_000);
        for relay in &mut relays {
            relay.report(&mut world, &[]);
        }
    }
    assert_eq!(world.happened("failover"), 0);
    assert_eq!(producers[0].follow(&mut world), RelayId(2));
}

#[test]
fn a_dead_relay_that_comes_back_is_stopped() {
    let Scene { mut world, mut relays, mut producers, .. } = scene();
    world.provider_answers = crate::world::Answers::Never;
    world.give(Input::Disconnected { peer: relays[0].peer });
    producers[0].lost(&mut world, RelayId(1));
    assert_eq!(world.happened("failover"), 1);
    relays[0].reconnect(&mut world);
    let received = world.mail(relays[0].peer);
    assert!(matches!(received.as_slice(), [Frame::Stop { .. }]), "{received:?}");
    world.pass_ms(6_000);
    assert!(world.stopped().len() >= 2, "the provider is asked again");
}

#[test]
fn assignments_back_off_while_a_producer_reaches_no_relay() {
    let Scene { mut world, mut relays, mut producers, .. } = scene();
    let mut tries = 0;
    for _ in 0..100 {
        while let Some((relay, _)) = producers[0].assigned(&mut world) {
            tries += 1;
            producers[0].lost(&mut world, relay);
        }
        world.pass_ms(100);
        for relay in &mut relays {
            relay.report(&mut world, &[]);
        }
        if tries == 0 {
            producers[0].lost(&mut world, RelayId(1));
        }
    }
    assert!((10..=25).contains(&tries), "{tries} tries in 10 s");
}

#[test]
fn a_directory_that_slept_itself_takes_no_relay_for_dead() {
    let Scene { mut world, mut relays, .. } = scene();
    world.now = world.now.plus_ms(60_000);
    // Relays that had no answer have closed their connections meanwhile: it reads that first.
    world.give(Input::Disconnected { peer: relays[0].peer });
    world.give(Input::Tick);
    world.pass_ms(1_000);
    relays[0].reconnect(&mut world);
    relays[1].report(&mut world, &[]);
    world.pass_ms(1_000);
    assert_eq!((world.happened("slept"), world.happened("failover")), (1, 0));
    // From then on silence counts as ever.
    for _ in 0..11 {
        world.pass_ms(1_000);
        relays[1].report(&mut world, &[]);
    }
    assert_eq!((world.happened("slept"), world.happened("failover")), (1, 1));
}
