//! What peers may not send: they get an ERROR that names the field, and the directory goes on.

use quelea_elastic_core::directory::{Effect, limits};
use quelea_elastic_proto::frame::{
    ErrorCode, Frame, OpenListener, OpenProducer, Report, Role, WireError,
};
use quelea_elastic_proto::{ClientId, Epoch, MessageSeq, RelayId};

use crate::world::{DirectoryWorld, FakeProducer, FakeRelay, QUEUE};

fn open(queue: &str) -> Frame {
    Frame::OpenProducer(OpenProducer {
        queue: queue.to_owned(),
        producer: ClientId(1),
        current: None,
        expected_bytes_per_s: 0,
    })
}

fn error(world: &mut DirectoryWorld, role: Role, frame: Frame) -> WireError {
    let peer = world.connect(role);
    world.say(peer, frame);
    match world.mail(peer).as_slice() {
        [Frame::Error(error)] => error.clone(),
        other => panic!("not one error but {other:?}"),
    }
}

#[test]
fn a_queues_name_has_its_limits() {
    let mut world = DirectoryWorld::new();
    for name in [String::new(), "x".repeat(256), "a\u{7}b".to_owned()] {
        let error = error(&mut world, Role::Client, open(&name));
        assert_eq!((error.code, error.field.as_str()), (ErrorCode::Queue, "queue"), "{error:?}");
    }
    assert!(world.directory.queue_names().next().is_none());
}

#[test]
fn each_role_may_send_only_what_is_its_own() {
    let mut world = DirectoryWorld::new();
    let report = || Frame::Report(Report::default());
    for (role, frame) in [
        (Role::Relay, open(QUEUE)),
        (Role::Client, report()),
        (Role::Keeper, report()),
        (Role::Client, Frame::Stop { fence: quelea_elastic_proto::Fence(99) }),
        (Role::Directory, open(QUEUE)),
    ] {
        let error = error(&mut world, role, frame);
        assert_eq!((error.code, error.field.as_str()), (ErrorCode::Order, "kind"));
        assert!(error.fatal);
    }
    let closed = world.effects.iter().filter(|effect| matches!(effect, Effect::Close { .. }));
    assert_eq!(closed.count(), 5);
}

#[test]
fn a_report_before_register_is_out_of_order() {
    let mut world = DirectoryWorld::new();
    let error = error(&mut world, Role::Relay, Frame::Report(Report::default()));
    assert_eq!(error.code, ErrorCode::Order);
}

#[test]
fn a_client_cannot_speak_for_another_one() {
    let mut world = DirectoryWorld::new();
    FakeRelay::register(&mut world, 1);
    let mut honest = FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    honest.follow(&mut world);
    let liar = FakeProducer::open(&mut world, 2);
    world.mail(liar.peer);
    let (queue, producer, relay) = (QUEUE.to_owned(), honest.id, RelayId(1));
    let (epoch, first) = (Epoch(u64::MAX), MessageSeq(0));
    world.say(liar.peer, Frame::Producing { queue, producer, epoch, relay, first });
    assert!(matches!(world.mail(liar.peer).as_slice(), [Frame::Error(_)]));
    assert_eq!(world.directory.producers(QUEUE, None, 1)[0].epoch, honest.epoch);
    world.say(liar.peer, Frame::Close { queue: QUEUE.to_owned(), client: honest.id });
    assert_eq!(world.status().producers, 2);
}

#[test]
fn a_connection_may_open_only_so_many_queues() {
    let mut world = DirectoryWorld::new();
    let peer = world.connect(Role::Client);
    for number in 0..limits::QUEUES_PER_PEER_MAX {
        world.say(peer, open(&format!("queue {number}")));
    }
    assert_eq!(world.mail(peer), []);
    world.say(peer, open("one more"));
    assert!(matches!(
        world.mail(peer).as_slice(),
        [Frame::Error(WireError { code: ErrorCode::Limit, .. })]
    ));
}

#[test]
fn a_listener_that_claims_too_many_relays_is_refused() {
    let mut world = DirectoryWorld::new();
    let attached = (0..5_000).map(RelayId).collect();
    let (queue, listener) = (QUEUE.to_owned(), ClientId(1));
    let frame = Frame::OpenListener(OpenListener { queue, listener, attached });
    assert_eq!(error(&mut world, Role::Client, frame).field, "attached");
}

#[test]
fn what_is_said_of_an_unopened_queue_is_refused_and_harmless() {
    let mut world = DirectoryWorld::new();
    let (queue, client) = (QUEUE.to_owned(), ClientId(1));
    let frame = Frame::RelayLost { queue, client, relay: RelayId(1), cause: String::new() };
    assert_eq!(error(&mut world, Role::Client, frame).field, "queue");
}
