//! A queue is made when the first client asks for it.

use quelea_elastic_core::directory::{Definition, Effect, Input, ProviderOutcome, Settings};
use quelea_elastic_core::plan::RelayState;
use quelea_elastic_proto::RelayId;

use crate::world::{Answers, DirectoryWorld, FakeListener, FakeProducer, FakeRelay, QUEUE};

#[test]
fn the_first_producer_makes_the_queue_and_gets_a_registered_relay() {
    let mut world = DirectoryWorld::new();
    let mut producer = FakeProducer::open(&mut world, 1);
    assert_eq!(world.started(), [RelayId(1)]);
    assert_eq!(producer.assigned(&mut world), None, "no relay has registered");

    FakeRelay::register(&mut world, 1);
    assert_eq!(producer.follow(&mut world), RelayId(1));
    let status = world.status();
    assert_eq!((status.producers, status.moves_under_way), (1, 0));
    assert_eq!(status.relays[0].state, RelayState::Up);
    assert_eq!(status.relays[0].address, "127.0.0.1:7001");
}

#[test]
fn a_relay_may_take_as_long_to_register_as_is_set() {
    let settings = Settings { register_ms_max: 120_000, ..Settings::default() };
    let mut world = DirectoryWorld::with(settings);
    let mut producer = FakeProducer::open(&mut world, 1);
    world.pass_ms(110_000);
    assert_eq!((world.started(), world.stopped()), (vec![RelayId(1)], vec![]));
    FakeRelay::register(&mut world, 1);
    assert_eq!(producer.follow(&mut world), RelayId(1));
}

#[test]
fn a_relay_is_in_the_record_before_it_is_started() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    let saved = world.effects.iter().position(|effect| matches!(effect, Effect::Save { .. }));
    let started =
        world.effects.iter().position(|effect| matches!(effect, Effect::StartRelay { .. }));
    assert!(saved.expect("it was saved") < started.expect("it was started"));
    let record = String::from_utf8(world.store[QUEUE].to_vec()).unwrap();
    assert!(record.contains(r#""id":1,"state":1,"request":"prices/7/1""#), "{record}");
}

#[test]
fn a_relay_is_started_only_when_the_store_answers() {
    let mut world = DirectoryWorld::new();
    world.store_answers = Answers::Failing;
    FakeProducer::open(&mut world, 1);
    world.give(Input::Owned {
        queue: QUEUE.to_owned(),
        fence: quelea_elastic_proto::Fence(7),
        record: None,
        running: Vec::new(),
    });
    world.pass_ms(10_000);
    assert_eq!(world.started(), []);
    world.store_answers = Answers::Well;
    world.pass_ms(1_000);
    assert_eq!(world.started(), [RelayId(1)]);
}

#[test]
fn a_relay_that_is_not_recorded_as_up_gets_no_clients() {
    let mut world = DirectoryWorld::new();
    let mut listener = FakeListener::open(&mut world, 11);
    let mut producer = FakeProducer::open(&mut world, 1);
    world.store_answers = Answers::Failing;
    let mut relay = FakeRelay::register(&mut world, 1);
    for _ in 0..20 {
        world.pass_ms(1_000);
        relay.report(&mut world, &[]);
    }
    assert_eq!(listener.assigned(&mut world), None, "the next owner would send it away again");
    assert_eq!(producer.assigned(&mut world), None, "the next owner would not know where it is");
    assert_eq!((world.stopped(), world.started()), (vec![], vec![RelayId(1)]), "it is kept");

    world.store_answers = Answers::Well;
    world.pass_ms(1_000);
    assert_eq!(listener.follow(&mut world), [RelayId(1)]);
    assert_eq!(producer.follow(&mut world), RelayId(1));
}

#[test]
fn a_relay_recorded_as_up_goes_on_without_the_store() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    let mut relay = FakeRelay::register(&mut world, 1);
    world.store_answers = Answers::Failing;
    let queue = QUEUE.to_owned();
    let definition = Definition { ring_bytes_max: 1 << 20, ..Definition::default() };
    world.give(Input::Define { queue, definition });
    for _ in 0..20 {
        world.pass_ms(1_000);
        relay.report(&mut world, &[]);
    }
    FakeListener::open(&mut world, 11).follow(&mut world);
    assert_eq!(FakeProducer::open(&mut world, 2).follow(&mut world), RelayId(1));
}

#[test]
fn a_producer_waits_until_all_listeners_are_at_its_relay() {
    let mut world = DirectoryWorld::new();
    let mut listeners = [FakeListener::open(&mut world, 11), FakeListener::open(&mut world, 12)];
    let mut producer = FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!(listeners[0].follow(&mut world), [RelayId(1)]);
    assert_eq!(producer.assigned(&mut world), None, "one is missing");
    listeners[1].follow(&mut world);
    assert_eq!(producer.follow(&mut world), RelayId(1));
}

#[test]
fn a_silent_listener_delays_one_producer_up_to_the_deadline() {
    let mut world = DirectoryWorld::new();
    let mut dull = FakeListener::open(&mut world, 11);
    let mut first = FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    world.pass_ms(1_999);
    assert_eq!(first.assigned(&mut world), None);
    world.pass_ms(1);
    first.follow(&mut world);
    assert_eq!(world.happened("lagging"), 1);
    let mut second = FakeProducer::open(&mut world, 2);
    second.follow(&mut world);
    dull.follow(&mut world);
    assert!(!world.directory.listeners(QUEUE, None, 9)[0].lagging);
}

#[test]
fn producers_are_spread_over_the_relays() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 3;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    assert_eq!(world.started(), [RelayId(1), RelayId(2), RelayId(3)]);
    for id in 1..=3 {
        FakeRelay::register(&mut world, id);
    }
    let mut count = [0; 3];
    for id in 0..9 {
        let relay = FakeProducer::open(&mut world, id).follow(&mut world);
        count[usize::try_from(relay.0).unwrap() - 1] += 1;
    }
    assert_eq!(count, [3, 3, 3]);
}

#[test]
fn a_heavy_producer_counts_more_than_a_light_one() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let mut relays = [FakeRelay::register(&mut world, 1), FakeRelay::register(&mut world, 2)];
    let mut heavy = FakeProducer::open(&mut world, 1);
    let mut light = FakeProducer::open(&mut world, 2);
    assert_eq!((heavy.follow(&mut world), light.follow(&mut world)), (RelayId(1), RelayId(2)));
    for _ in 0..5 {
        world.pass_ms(1_000);
        relays[0].report(&mut world, &[(&heavy, 1_000_000)]);
        relays[1].report(&mut world, &[(&light, 100_000)]);
    }
    world.pass_ms(1_000);
    assert_eq!(FakeProducer::open(&mut world, 3).follow(&mut world), RelayId(2));
    let rates = world.directory.producers(QUEUE, None, 9)[0].fast.bytes_in;
    assert!((rates - 1_000_000.0).abs() < 1.0, "{rates}");
}

#[test]
fn starts_back_off_while_the_provider_fails_and_users_get_a_notice() {
    let mut world = DirectoryWorld::new();
    world.provider_answers = Answers::Failing;
    let producer = FakeProducer::open(&mut world, 1);
    world.pass_ms(60_000);
    let tries = world.started().len();
    assert!((6..=9).contains(&tries), "{tries} tries in a minute");
    let notices = world.mail(producer.peer);
    assert_eq!(notices.len(), 1, "{notices:?}");
    world.provider_answers = Answers::Well;
    world.pass_ms(60_000);
    assert_eq!(world.started().len(), tries + 1);
    let all: std::collections::BTreeSet<_> = world.started().into_iter().collect();
    assert_eq!(all.len(), tries + 1, "no number is given out twice");
}

#[test]
fn a_relay_that_never_registers_is_ended_and_another_one_is_started() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    world.pass_ms(14_000);
    assert_eq!(world.started(), [RelayId(1)]);
    world.pass_ms(3_000);
    assert_eq!(world.stopped(), [RelayId(1)]);
    assert_eq!(world.started(), [RelayId(1), RelayId(2)]);
}

#[test]
fn a_deleted_queue_ends_its_relays_and_its_record() {
    let mut world = DirectoryWorld::new();
    let producer = FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    world.mail(producer.peer);
    world.give(Input::Delete { queue: QUEUE.to_owned() });
    assert_eq!(world.stopped(), [RelayId(1)]);
    assert!(world.store.is_empty());
    assert!(world.directory.queue_names().next().is_none());
    assert_eq!(world.mail(producer.peer).len(), 1, "its clients get a notice");
}

#[test]
fn a_deleted_queues_slow_relays_do_not_stall_the_directory() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    world.provider_answers = Answers::Never;
    world.give(Input::Delete { queue: QUEUE.to_owned() });
    // It was to be planned meanwhile.
    world.pass_ms(4_000);
    assert_eq!(world.stopped(), [RelayId(1)]);
    world.pass_ms(2_000);
    assert_eq!(world.stopped(), [RelayId(1); 2], "the provider is asked again");
    world.replace_directory();
    FakeProducer::open(&mut world, 2);
    world.pass_ms(2_000);
    world.provider_answers = Answers::Well;
    world.pass_ms(5_000);
    assert!(world.store.is_empty());
    assert!(world.directory.queue_names().next().is_none());
}

#[test]
fn a_relay_whose_start_is_in_doubt_is_ended_before_forgotten() {
    let mut world = DirectoryWorld::new();
    world.provider_answers = Answers::Never;
    FakeProducer::open(&mut world, 1);
    let unknown = ProviderOutcome::Unknown("no answer within 10 s".to_owned());
    world.give(Input::Provider { queue: QUEUE.to_owned(), relay: RelayId(1), outcome: unknown });
    let record = String::from_utf8(world.store[QUEUE].to_vec()).unwrap();
    assert!(record.contains(r#""id":1,"state":4"#), "{record}");
    assert_eq!(world.stopped(), [RelayId(1)]);
    world.provider_answers = Answers::Well;
    world.pass_ms(1_000);
    assert_eq!(world.started(), [RelayId(1), RelayId(2)]);
    world.pass_ms(5_000);
    assert_eq!(world.stopped(), [RelayId(1); 2], "asked again until it says that it is gone");
    let left: Vec<RelayId> = world.status().relays.iter().map(|relay| relay.id).collect();
    assert_eq!(left, [RelayId(2)]);
}
