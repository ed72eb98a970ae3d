//! Moving a producer: the listeners first, then the producer; whatever fails, it stays where it is.

use quelea_elastic_core::directory::{Definition, Input, Relocation};
use quelea_elastic_core::plan::Action;
use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::{ClientId, RelayId};

use crate::world::{DirectoryWorld, FakeListener, FakeProducer, FakeRelay, QUEUE};

struct Scene {
    world: DirectoryWorld,
    producer: FakeProducer,
    listener: FakeListener,
}

/// Sets up a producer and a listener at relay 1; relay 2 is asked for.
fn scene(relocation: Relocation) -> Scene {
    let mut world = DirectoryWorld::new();
    let definition = Definition { relocation, ..Definition::default() };
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let mut listener = FakeListener::open(&mut world, 11);
    FakeRelay::register(&mut world, 1);
    listener.follow(&mut world);
    let mut producer = FakeProducer::open(&mut world, 1);
    producer.follow(&mut world);
    world.act(Action::Start { count: 1 });
    Scene { world, producer, listener }
}

fn go(world: &mut DirectoryWorld) {
    world.act(Action::Move { producer: ClientId(1), from: RelayId(1), to: RelayId(2) });
}

#[test]
fn listeners_are_at_the_new_relay_before_the_producer_is() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    go(&mut world);
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!(world.status().moves_under_way, 1);
    assert_eq!(listener.follow(&mut world), [RelayId(1), RelayId(2)]);
    assert_eq!(producer.follow(&mut world), RelayId(2));
    let status = world.status();
    assert_eq!((status.moves_under_way, status.moves_done), (0, 1));
    assert_eq!((world.happened("move"), world.happened("moved")), (1, 1));
}

#[test]
fn a_move_asked_for_twice_is_one() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    listener.follow(&mut world);
    go(&mut world);
    go(&mut world);
    producer.follow(&mut world);
    go(&mut world);
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!(world.happened("move"), 1);
}

#[test]
fn a_strict_queue_aborts_a_move_if_a_listener_is_missing() {
    let Scene { mut world, mut producer, listener } = scene(Relocation::Strict);
    FakeRelay::register(&mut world, 2);
    go(&mut world);
    world.pass_ms(2_000);
    assert_eq!(producer.assigned(&mut world), None);
    assert_eq!(world.happened("abort"), 1);
    assert_eq!(world.status().relays[0].producers, 1);
    drop(listener);
}

#[test]
fn a_prompt_queue_goes_on_without_a_listener_after_the_deadline() {
    let Scene { mut world, mut producer, listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    go(&mut world);
    world.pass_ms(2_000);
    assert_eq!(producer.follow(&mut world), RelayId(2));
    assert_eq!(world.happened("lagging"), 1);
    drop(listener);
}

#[test]
fn a_producer_that_could_not_go_stays_where_it_is() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    listener.follow(&mut world);
    go(&mut world);
    let (relay, epoch) = producer.assigned(&mut world).expect("told");
    let (queue, cause) = (QUEUE.to_owned(), "connection refused".to_owned());
    let id = producer.id;
    world.say(producer.peer, Frame::ProduceFailed { queue, producer: id, epoch, relay, cause });
    let here = &world.directory.producers(QUEUE, None, 1)[0];
    assert_eq!((here.relay, here.moving_to), (Some(RelayId(1)), None));
    assert_eq!(world.happened("abort"), 1);
    go(&mut world);
    assert!(producer.assigned(&mut world).expect("told again").1 > epoch, "another epoch");
}

#[test]
fn a_late_answer_to_an_aborted_move_is_believed() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    listener.follow(&mut world);
    go(&mut world);
    world.pass_ms(5_000);
    assert_eq!(world.happened("abort"), 1);
    assert_eq!(producer.follow(&mut world), RelayId(2));
    assert_eq!(world.directory.producers(QUEUE, None, 1)[0].relay, Some(RelayId(2)));
}

#[test]
fn a_producer_that_reconnects_during_a_move_says_where_it_is() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    FakeRelay::register(&mut world, 2);
    listener.follow(&mut world);
    go(&mut world);
    let (relay, epoch) = producer.assigned(&mut world).expect("told");
    world.give(Input::Disconnected { peer: producer.peer });
    (producer.relay, producer.epoch) = (Some(relay), epoch);
    producer.peer = world.connect(quelea_elastic_proto::frame::Role::Client);
    producer.open_again(&mut world);
    assert_eq!(producer.assigned(&mut world), None, "it is somewhere good");
    let here = &world.directory.producers(QUEUE, None, 1)[0];
    assert_eq!((here.relay, here.moving_to), (Some(RelayId(2)), None));
}

#[test]
fn an_old_word_of_a_producers_place_does_not_undo_a_move() {
    let Scene { mut world, mut producer, mut listener } = scene(Relocation::Prompt);
    let mut first = FakeRelay::register(&mut world, 2);
    let old = FakeProducer { id: producer.id, peer: producer.peer, ..producer };
    listener.follow(&mut world);
    go(&mut world);
    producer.follow(&mut world);
    first.report(&mut world, &[(&old, 5)]);
    assert_eq!(world.directory.producers(QUEUE, None, 1)[0].relay, Some(RelayId(2)));
}

#[test]
fn a_slot_that_outlives_its_producers_move_is_fenced() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let mut first = FakeRelay::register(&mut world, 1);
    FakeRelay::register(&mut world, 2);
    let mut producer = FakeProducer::open(&mut world, 1);
    producer.follow(&mut world);
    let old = FakeProducer { id: producer.id, peer: producer.peer, ..producer };
    go(&mut world);
    producer.follow(&mut world);
    world.mail(first.peer);
    let fenced = |frames: Vec<Frame>, below| {
        let fence =
            |frame: &Frame| matches!(frame, Frame::FenceProducer { below: b, .. } if *b == below);
        frames.iter().filter(|frame| fence(frame)).count()
    };
    first.report(&mut world, &[(&old, 5)]);
    assert_eq!(fenced(world.mail(first.peer), producer.epoch), 0, "its FIN may be on its way");
    world.pass_ms(2_500);
    first.report(&mut world, &[(&old, 5)]);
    assert_eq!(fenced(world.mail(first.peer), producer.epoch), 1);
}

#[test]
fn an_operators_moves_take_turns_and_say_why_one_is_refused() {
    let mut world = DirectoryWorld::new();
    let mut definition = Definition::default();
    definition.sla.relays_min = 2;
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    FakeRelay::register(&mut world, 1);
    FakeRelay::register(&mut world, 2);
    let mut producers: Vec<_> = (1..=3).map(|id| FakeProducer::open(&mut world, id)).collect();
    for producer in &mut producers {
        producer.follow(&mut world);
    }
    for (turn, who) in [0, 1, 2, 0].into_iter().enumerate() {
        world.give(Input::Move { queue: QUEUE.to_owned(), producer: None, to: None });
        let before = producers[who].relay;
        assert_ne!(Some(producers[who].follow(&mut world)), before, "turn {turn}");
    }
    let here = producers[0].relay;
    let refusal = world.directory.check_move(QUEUE, Some(ClientId(1)), here);
    assert!(refusal.unwrap_err().contains("already"));
    let refusal = world.directory.check_move(QUEUE, Some(ClientId(9)), None);
    assert!(refusal.unwrap_err().contains("not known"));
}
