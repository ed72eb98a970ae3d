//! A client that makes queue after queue, and queues that nobody uses.

use quelea_elastic_core::directory::{Definition, FirstUseLimits, Input, Peer, Settings};
use quelea_elastic_proto::frame::{ErrorCode, Frame, OpenProducer, Role};
use quelea_elastic_proto::{ClientId, RelayId};

use crate::world::{Answers, DirectoryWorld, FakeListener, FakeProducer, FakeRelay, QUEUE};

const UNUSED_MS: u64 = 60_000;

fn world(relays_max: usize, per_connection_max: usize, per_address_max: usize) -> DirectoryWorld {
    let first_use =
        FirstUseLimits { per_connection_max, per_address_max, unused_ms_max: UNUSED_MS };
    DirectoryWorld::with(Settings { relays_max, first_use, ..Settings::default() })
}

/// Opens a queue; gives what it is refused for.
fn open(world: &mut DirectoryWorld, peer: Peer, queue: &str) -> Option<(ErrorCode, String)> {
    let producer = ClientId(u128::from(peer.0));
    let open =
        OpenProducer { queue: queue.to_owned(), producer, current: None, expected_bytes_per_s: 0 };
    world.say(peer, Frame::OpenProducer(open));
    world.mail(peer).into_iter().find_map(|frame| match frame {
        Frame::Error(error) => Some((error.code, error.text)),
        _ => None,
    })
}

#[test]
fn sixty_frames_make_no_sixty_relays() {
    let mut world = world(usize::MAX, 4, 10);
    let mut refused = 0;
    for connection in 0..4 {
        let peer = world.connect(Role::Client);
        for queue in 0..15 {
            if let Some((code, text)) = open(&mut world, peer, &format!("{connection}/{queue}")) {
                assert_eq!(code, ErrorCode::Limit, "{text}");
                refused += 1;
            }
        }
    }
    assert_eq!((refused, world.directory.queue_names().count()), (50, 10));
}

#[test]
fn what_is_defined_or_there_already_counts_for_nobody() {
    let mut world = world(usize::MAX, 1, 1);
    let peer = world.connect(Role::Client);
    for queue in ["a", "b", "c"] {
        let definition = Definition::default();
        world.give(Input::Define { queue: queue.to_owned(), definition });
        assert_eq!(open(&mut world, peer, queue), None, "{queue}");
    }
    assert_eq!(open(&mut world, peer, "made"), None);
    assert!(open(&mut world, peer, "one more").is_some());
    assert_eq!(open(&mut world, peer, "made"), None, "it is there");
    world.give(Input::Define { queue: "made".to_owned(), definition: Definition::default() });
    assert_eq!(open(&mut world, peer, "one more"), None, "the other one is defined by now");
}

#[test]
fn a_directory_starts_no_more_relays_than_it_may() {
    let mut world = world(3, usize::MAX, usize::MAX);
    world.provider_answers = Answers::Never;
    let peer = world.connect(Role::Client);
    for queue in 0..10 {
        assert_eq!(open(&mut world, peer, &queue.to_string()), None);
    }
    assert_eq!(world.started().len(), 3);
    world.pass_ms(10_000);
    assert_eq!(world.happened("start-failed"), 7, "each queue says so once");
    world.provider_answers = Answers::Well;
    world.give(Input::Delete { queue: "0".to_owned() });
    world.pass_ms(1_000);
    assert_eq!(world.started().len(), 4, "its place is another queue's");
}

#[test]
fn a_queue_that_nobody_uses_ends_and_is_made_anew() {
    let mut world = world(usize::MAX, 1, 1);
    let producer = FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    world.give(Input::Disconnected { peer: producer.peer });
    world.pass_ms(UNUSED_MS / 2);
    assert!(world.directory.owns(QUEUE));
    world.pass_ms(UNUSED_MS);
    assert!(!world.directory.owns(QUEUE));
    assert_eq!(world.happened("unused"), 1);
    assert!(world.stopped().contains(&RelayId(1)));
    let peer = world.connect(Role::Client);
    assert_eq!(open(&mut world, peer, QUEUE), None, "it counts for nobody any more");
}

#[test]
fn a_queue_that_is_used_or_defined_stays() {
    let mut world = world(usize::MAX, 1, 1);
    FakeListener::open(&mut world, 11);
    FakeRelay::register(&mut world, 1).report_listeners(&mut world, 1);
    world.give(Input::Define { queue: "defined".to_owned(), definition: Definition::default() });
    world.pass_ms(3 * UNUSED_MS);
    assert!(world.directory.owns(QUEUE) && world.directory.owns("defined"));
    assert_eq!(world.happened("unused"), 0);
}

#[test]
fn a_new_owner_knows_that_only_its_use_has_made_a_queue() {
    let mut world = world(usize::MAX, 1, 1);
    let settings = world.directory.settings().clone();
    FakeProducer::open(&mut world, 1);
    assert!(
        String::from_utf8(world.store[QUEUE].to_vec()).unwrap().contains(r#""first_use":true"#)
    );
    world.replace_directory();
    world.directory = quelea_elastic_core::directory::Directory::new(settings);
    FakeProducer::open(&mut world, 1);
    let peer = world.connect(Role::Client);
    assert_eq!(open(&mut world, peer, "another"), None, "nobody here has made the first one");
    let record = String::from_utf8(world.store[QUEUE].to_vec()).unwrap();
    assert!(record.contains(r#""first_use":true"#), "{record}");
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: Definition::default() });
    world.pass_ms(1_000);
    let record = String::from_utf8(world.store[QUEUE].to_vec()).unwrap();
    assert!(!record.contains("first_use"), "{record}");
}
