//! A directory dies, and another one goes on: from the record, what runs, and what clients and relays say.

use quelea_elastic_core::directory::limits::ANNOUNCED_AT_ONCE_MAX;
use quelea_elastic_core::directory::{Definition, Effect, Input, Peer, RelayHandle};
use quelea_elastic_core::plan::{Action, RelayState};
use quelea_elastic_proto::frame::{Frame, Role};
use quelea_elastic_proto::limits::{ADDRESS_BYTES_MAX, DIRECTORIES_MAX};
use quelea_elastic_proto::{Fence, RelayId};

use crate::world::{
    Answers, DirectoryWorld, FakeListener, FakeProducer, FakeRelay, HERE, QUEUE, register,
};

struct Scene {
    world: DirectoryWorld,
    relay: FakeRelay,
    producer: FakeProducer,
    listener: FakeListener,
}

/// Sets up a relay, a producer and a listener, all of which have lost their directory; the next one
/// does not know of the queue yet.
fn scene() -> Scene {
    let mut world = DirectoryWorld::new();
    let mut listener = FakeListener::open(&mut world, 11);
    let mut producer = FakeProducer::open(&mut world, 1);
    let mut relay = FakeRelay::register(&mut world, 1);
    listener.follow(&mut world);
    producer.follow(&mut world);
    relay.report(&mut world, &[(&producer, 5)]);
    world.replace_directory();
    world.effects.clear();
    Scene { world, relay, producer, listener }
}

#[test]
fn all_come_back_and_nothing_moves() {
    let Scene { mut world, mut relay, mut producer, mut listener } = scene();
    relay.reconnect(&mut world);
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    listener.peer = world.connect(Role::Client);
    listener.open_again(&mut world);
    for _ in 0..30 {
        relay.report(&mut world, &[(&producer, 5)]);
        world.pass_ms(1_000);
    }
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!((world.started(), world.stopped()), (vec![], vec![]));
    assert_eq!(world.status().fence, Some(Fence(8)));
    assert_eq!(world.happened("failover"), 0);
}

#[test]
fn a_relay_that_the_provider_does_not_see_has_time_to_register() {
    let Scene { mut world, mut producer, .. } = scene();
    world.running.clear();
    // Somebody comes, so that it takes the queue over.
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    // Longer than three reports: the old one may have let it wait for an answer.
    for _ in 0..7 {
        world.pass_ms(1_000);
    }
    assert_eq!(world.happened("failover"), 0);
    for _ in 0..2 {
        world.pass_ms(1_000);
    }
    assert_eq!(world.happened("failover"), 1, "it did not");
}

#[test]
fn the_new_owners_epochs_are_above_all_of_the_old_ones() {
    let Scene { mut world, mut relay, producer, mut listener } = scene();
    relay.reconnect(&mut world);
    let mut newcomer = FakeProducer::open(&mut world, 2);
    relay.report_listeners(&mut world, 1);
    listener.reconnect(&mut world);
    newcomer.follow(&mut world);
    assert!(newcomer.epoch > producer.epoch);
}

#[test]
fn producers_are_assigned_only_when_the_last_owners_listeners_are_back() {
    let Scene { mut world, mut relay, mut producer, mut listener } = scene();
    relay.reconnect(&mut world);
    relay.report_listeners(&mut world, 1);
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    let action = Action::Start { count: 1 };
    world.act(action);
    let mut other = FakeRelay::register(&mut world, 2);
    other.report_listeners(&mut world, 0);
    let (from, to) = (RelayId(1), RelayId(2));
    let action = Action::Move { producer: producer.id, from, to };
    world.act(action);
    assert_eq!(world.status().moves_under_way, 1);
    // A new one does not stand for the one that was here.
    let mut newcomer = FakeListener::open(&mut world, 12);
    newcomer.follow(&mut world);
    world.pass_ms(3_000);
    assert_eq!(
        producer.assigned(&mut world),
        None,
        "the other listener would not get its messages"
    );

    listener.reconnect(&mut world);
    assert_eq!(producer.assigned(&mut world), None, "it is not at relay 2 yet");
    listener.follow(&mut world);
    assert_eq!(producer.follow(&mut world), RelayId(2));
}

#[test]
fn a_listener_that_stays_away_is_waited_for_only_so_long() {
    let Scene { mut world, mut relay, .. } = scene();
    relay.reconnect(&mut world);
    relay.report_listeners(&mut world, 1);
    let mut newcomer = FakeProducer::open(&mut world, 2);
    for _ in 0..4 {
        world.pass_ms(1_000);
        relay.report_listeners(&mut world, 1);
    }
    assert_eq!(newcomer.assigned(&mut world), None);
    world.pass_ms(1_000);
    assert_eq!(newcomer.follow(&mut world), RelayId(1));
}

#[test]
fn without_listeners_nobody_is_waited_for() {
    let Scene { mut world, mut relay, .. } = scene();
    relay.reconnect(&mut world);
    let mut newcomer = FakeProducer::open(&mut world, 2);
    assert_eq!(newcomer.assigned(&mut world), None, "the relay has not said who is there");
    relay.report_listeners(&mut world, 0);
    assert_eq!(newcomer.follow(&mut world), RelayId(1));
}

#[test]
fn a_relay_knows_its_producers_before_they_come_back() {
    let Scene { mut world, mut relay, producer, .. } = scene();
    relay.reconnect(&mut world);
    relay.report(&mut world, &[(&producer, 5)]);
    let known = world.directory.producers(QUEUE, None, 9);
    assert_eq!((known[0].id, known[0].relay), (producer.id, Some(RelayId(1))));
    assert!(!known[0].connected);
    world.pass_ms(1_000);
    relay.report(&mut world, &[]);
    assert_eq!(world.status().producers, 0, "it went away without a word");
}

#[test]
fn what_runs_without_a_record_is_ended() {
    let mut world = DirectoryWorld::new();
    let stray = RelayHandle {
        relay: RelayId(9),
        request: "prices/3/9".to_owned(),
        name: "process 9".to_owned(),
    };
    world.running.insert(RelayId(9), stray);
    FakeProducer::open(&mut world, 1);
    assert_eq!(world.stopped(), [RelayId(9)]);
    assert_eq!(world.started(), [RelayId(1)]);
}

#[test]
fn a_relay_in_the_record_that_does_not_run_is_replaced() {
    let Scene { mut world, mut producer, .. } = scene();
    world.running.clear();
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    producer.lost(&mut world, RelayId(1));
    assert_eq!(world.happened("failover"), 1);
    assert_eq!(world.started(), [RelayId(2)]);
}

#[test]
fn a_provider_that_knows_a_relay_to_be_dead_is_believed_at_once() {
    let Scene { mut world, mut producer, .. } = scene();
    world.running.clear();
    world.knows_ends = true;
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    assert_eq!(world.happened("failover"), 1, "no time has passed");
    assert_eq!(world.started(), [RelayId(2)]);
}

/// The pause after an orderly stop and a start: of a second, the rest is for the processes to end and begin.
const LOOKED_AGAIN_MS: u64 = 700;

#[test]
fn after_an_orderly_stop_nobody_waits_for_the_relays_that_it_ended() {
    let Scene { mut world, mut relay, mut producer, mut listener } = scene();
    relay.reconnect(&mut world);
    listener.reconnect(&mut world);
    world.mail(relay.peer);
    world.give(Input::Stop);
    assert_eq!(world.stopped(), [RelayId(1)]);
    assert!(world.running.is_empty() && world.directory.has_stopped());
    // It writes out what it has: STOP would end it at once.
    assert_eq!(world.mail(relay.peer), []);
    world.pass_ms(5_000);
    assert_eq!(world.started(), [], "nothing is begun any more");

    world.replace_directory();
    world.effects.clear();
    producer.relay = None;
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    listener.relays.clear();
    listener.reconnect(&mut world);
    assert_eq!((world.started(), world.happened("failover")), (vec![RelayId(2)], 0));
    let mut relay = FakeRelay::register(&mut world, 2);
    relay.report_listeners(&mut world, 0);
    listener.follow(&mut world);
    assert_eq!(producer.assigned(&mut world), None, "another listener may still look for it");
    world.pass_ms(LOOKED_AGAIN_MS - 1);
    assert_eq!(producer.assigned(&mut world), None, "the last may have just begun to");
    world.pass_ms(1);
    assert_eq!(producer.follow(&mut world), RelayId(2));
}

#[test]
fn a_stop_waits_until_the_ends_are_on_record() {
    let Scene { mut world, mut relay, .. } = scene();
    relay.reconnect(&mut world);
    world.store_answers = Answers::Failing;
    world.give(Input::Stop);
    assert!(!world.directory.has_stopped());
    world.store_answers = Answers::Well;
    world.pass_ms(1_000);
    assert!(world.directory.has_stopped());
}

#[test]
fn a_promised_start_is_repeated_with_the_same_request() {
    let mut world = DirectoryWorld::new();
    world.provider_answers = Answers::Never;
    FakeProducer::open(&mut world, 1);
    let start = world.effects.iter().find(|effect| matches!(effect, Effect::StartRelay { .. }));
    let start = start.cloned().expect("asked for");
    world.replace_directory();
    world.effects.clear();
    FakeProducer::open(&mut world, 1);
    let again = world.effects.iter().find(|effect| matches!(effect, Effect::StartRelay { .. }));
    assert_eq!(again, Some(&start));
    assert_eq!(world.started().len(), 1, "no other one besides");
}

#[test]
fn a_stop_that_was_only_promised_is_asked_for_again() {
    let mut world = DirectoryWorld::new();
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: Definition::default() });
    FakeRelay::register(&mut world, 1);
    world.provider_answers = Answers::Never;
    world.act(Action::FailOver { relay: RelayId(1) });
    world.replace_directory();
    world.provider_answers = Answers::Well;
    world.effects.clear();
    FakeProducer::open(&mut world, 1);
    assert_eq!(world.stopped(), [RelayId(1)]);
}

#[test]
fn a_drain_goes_on() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let mut relay = FakeRelay::register(&mut world, 1);
    FakeRelay::register(&mut world, 2);
    let drain = Action::Drain { relay: RelayId(1) };
    world.act(drain);
    world.replace_directory();
    relay.reconnect(&mut world);
    let received = world.mail(relay.peer);
    assert!(
        matches!(received.as_slice(), [Frame::Registered { .. }, Frame::Drain { .. }]),
        "{received:?}"
    );
    assert_eq!(world.status().relays[0].state, RelayState::Draining);
}

#[test]
fn a_change_of_directories_is_announced_to_relays_and_clients() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 1;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let relay = FakeRelay::register(&mut world, 1);
    let producer = FakeProducer::open(&mut world, 1);
    for peer in [relay.peer, producer.peer] {
        let mail = world.mail(peer);
        assert!(!mail.iter().any(|frame| matches!(frame, Frame::Directories(_))), "{mail:?}");
    }
    let all: Vec<String> = (1..=20).map(|number| format!("directory-{number}:5670")).collect();
    let mut received = |directories: &[String]| {
        world.give(Input::Directories(directories.to_vec()));
        let received = world.mail(relay.peer);
        assert_eq!(world.mail(producer.peer), received);
        match &received[..] {
            [Frame::Directories(directories)] => Some(directories.clone()),
            [] => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(received(&all[..2]).as_deref(), Some(&all[..2]));
    assert_eq!(received(&all[..2]), None, "nothing has changed");
    assert_eq!(received(&all).as_deref(), Some(&all[..DIRECTORIES_MAX]));
    assert_eq!(received(&all[..1]).as_deref(), Some(&all[..1]));
    // What cannot be sent keeps nothing else from being sent.
    let long = format!("{}:5670", "d".repeat(ADDRESS_BYTES_MAX));
    let some = [String::new(), long, all[3].clone()];
    assert_eq!(received(&some).as_deref(), Some(&all[3..4]));
    let late = FakeProducer::open(&mut world, 2);
    assert_eq!(world.mail(late.peer)[0], Frame::Directories(all[3..4].into()));
}

#[test]
fn directories_are_announced_to_some_connections_at_a_time() {
    let mut world = DirectoryWorld::new();
    let count = 2 * ANNOUNCED_AT_ONCE_MAX + 1;
    for number in 0..count {
        let input = Input::Connected {
            peer: Peer(1_000 + number as u64),
            role: Role::Client,
            address: HERE,
        };
        world.directory.handle(world.now, input);
    }
    let mut received = Vec::new();
    world.directory.handle(world.now, Input::Directories(vec!["d:1".to_owned()]));
    loop {
        let before = received.len();
        while let Some(effect) = world.directory.poll_effect() {
            let Effect::Send { peer, frame: Frame::Directories(_) } = effect else {
                panic!("{effect:?}")
            };
            received.push(peer);
        }
        assert!(received.len() - before <= ANNOUNCED_AT_ONCE_MAX);
        if world.directory.next_deadline().is_none_or(|at| at > world.now) {
            break;
        }
        world.directory.handle(world.now, Input::Tick);
    }
    assert!(received.len() == count && received.is_sorted());
}

#[test]
fn clients_of_a_failing_claim_are_redirected_and_the_claim_stays() {
    let mut world = DirectoryWorld::new();
    world.store_answers = Answers::Never;
    let producer = FakeProducer::open(&mut world, 1);
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    world.pass_ms(900);
    assert!(world.mail(producer.peer).is_empty());
    world.pass_ms(200);
    let [Frame::Redirect { address, retry_after_ms, .. }] = &world.mail(producer.peer)[..] else {
        panic!("it is redirected once")
    };
    assert!(address.is_empty() && *retry_after_ms > 0);
    assert_eq!(world.directory.next_deadline(), None, "nobody waits any more");
    // One that comes later waits as long.
    let late = FakeProducer::open(&mut world, 2);
    world.pass_ms(1_100);
    assert!(matches!(world.mail(late.peer)[..], [Frame::Redirect { .. }]));
    world.store_answers = Answers::Well;
    let (fence, record, running) = (Fence(world.fence), None, Vec::new());
    world.give(Input::Owned { queue: QUEUE.to_owned(), fence, record, running });
    assert_eq!(world.started().len(), 2);
}

#[test]
fn a_disowned_queue_is_redirected_to_its_owner_and_forgotten() {
    let mut world = DirectoryWorld::new();
    let producer = FakeProducer::open(&mut world, 1);
    let relay = FakeRelay::register(&mut world, 1);
    world.mail(producer.peer);
    world.mail(relay.peer);
    let owner = Some("10.0.0.2:5670".to_owned());
    world.give(Input::Disowned { queue: QUEUE.to_owned(), owner });
    for peer in [producer.peer, relay.peer] {
        let received = world.mail(peer);
        assert!(
            matches!(received.as_slice(), [Frame::Redirect { address, .. }] if address == "10.0.0.2:5670"),
            "{received:?}"
        );
    }
    assert!(world.directory.queue(world.now, QUEUE).is_none());
    assert_eq!(world.directory.next_deadline(), None, "it does nothing more for it");
}

#[test]
fn an_owner_whose_record_is_refused_stops_at_once() {
    let mut world = DirectoryWorld::new();
    let producer = FakeProducer::open(&mut world, 1);
    world.mail(producer.peer);
    world.effects.clear();
    world.fence = 8;
    world.act(Action::Start { count: 1 });
    assert_eq!(world.started(), [], "what could not be written is not carried out");
    let received = world.mail(producer.peer);
    assert!(matches!(received.as_slice(), [Frame::Redirect { .. }]), "{received:?}");
    assert!(world.directory.queue_names().next().is_none());
}

#[test]
fn a_relay_that_has_seen_a_later_owner_is_not_commanded() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    let peer = world.connect(Role::Relay);
    world.effects.clear();
    world.store_answers = Answers::Never;
    world.say(peer, register(1, "prices/7/1", "127.0.0.1:7001", Fence(9)));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Claim { .. })));
    assert!(matches!(world.mail(peer).as_slice(), [Frame::Error(error)] if error.field == "fence"));
}

#[test]
fn a_second_process_for_one_request_is_stopped() {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    let first = FakeRelay::register(&mut world, 1);
    world.mail(first.peer);
    let peer = world.connect(Role::Relay);
    world.say(peer, register(1, "prices/7/1", "127.0.0.1:7999", Fence(0)));
    assert!(matches!(world.mail(peer).as_slice(), [Frame::Stop { .. }]));
    assert_eq!(world.mail(first.peer), []);
    assert_eq!(world.status().relays[0].address, "127.0.0.1:7001");
}

#[test]
fn a_record_of_a_later_version_is_not_touched() {
    let mut world = DirectoryWorld::new();
    world.store.insert(QUEUE.to_owned(), r#"{"v":2,"queues":[]}"#.into());
    let producer = FakeProducer::open(&mut world, 1);
    let received = world.mail(producer.peer);
    assert!(
        matches!(received.as_slice(), [Frame::Error(error)] if error.text.contains("v = 2")),
        "{received:?}"
    );
    assert_eq!(&world.store[QUEUE][..], br#"{"v":2,"queues":[]}"#);
    assert_eq!(world.started(), []);
}

#[test]
fn a_relay_of_a_deleted_queue_is_stopped_and_makes_no_queue() {
    let Scene { mut world, mut relay, mut producer, .. } = scene();
    world.store.clear();
    relay.reconnect(&mut world);
    assert!(matches!(world.mail(relay.peer).as_slice(), [Frame::Stop { fence: Fence(8) }]));
    assert_eq!(world.stopped(), [RelayId(1)], "the provider had it running");
    assert!(world.store.is_empty());
    assert!(world.directory.queue_names().next().is_none());
    assert_eq!(world.directory.next_deadline(), None);
    // Who wants the queue gets it, with another relay.
    producer.peer = world.connect(Role::Client);
    producer.open_again(&mut world);
    assert_eq!(world.started(), [RelayId(1)]);
    assert!(world.directory.owns(QUEUE));
}
