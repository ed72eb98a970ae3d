//! Many messages in flight and many delayed ones, and the order hint: what is done for them is
//! counted, not timed.

use bytes::Bytes;
use quelea_broker::{QueueAttributes, QueueSettings, Receive, ReceiveError, Send};
use quelea_model::QueueId;
use quelea_model::limits::IN_FLIGHT_MAX;

use crate::world::{Ground, World};

fn queue(world: &mut World, order_hint: u16) -> QueueId {
    let settings = QueueSettings { order_hint, ..QueueSettings::default() };
    let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
    world.broker.create_queue(world.now, "/", "q", attributes).unwrap().0
}

fn send(world: &mut World, id: QueueId, count: usize, delay_ms: impl Fn(usize) -> u64) {
    let messages = (0..count).map(|at| Send {
        properties: Bytes::new(),
        body: Bytes::from(at.to_string()),
        delay_ms: Some(delay_ms(at)),
        group: None,
        deduplication: None,
        message_id: [0; 16],
    });
    world.broker.send(world.now, id, messages.collect()).unwrap();
    world.settle();
}

/// The bodies of what is received.
fn receive(world: &mut World, id: QueueId, max: usize) -> Vec<usize> {
    let request = Receive { max, visibility_timeout_ms: 30_000, wait_ms: 0, attempt: None };
    let receive = world.broker.receive(world.now, id, request).unwrap();
    world.settle();
    let messages = world.received.remove(&receive).unwrap().unwrap();
    let body = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().parse().unwrap();
    messages.iter().map(|message| body(message.message.body())).collect()
}

#[test]
fn a_queue_has_so_many_messages_in_flight_and_no_more() {
    let mut world = World::new(quelea_broker::BrokerConfig::default(), Ground::Memory);
    let id = queue(&mut world, 1);
    send(&mut world, id, IN_FLIGHT_MAX + 2, |_| 0);
    let mut taken = receive(&mut world, id, IN_FLIGHT_MAX + 2);
    assert_eq!(taken.len(), IN_FLIGHT_MAX);
    let request = Receive { max: 1, visibility_timeout_ms: 1, wait_ms: 0, attempt: None };
    let refused = world.broker.receive(world.now, id, request);
    assert!(matches!(refused, Err(ReceiveError::OverLimit(_))), "{refused:?}");
    // One more takes as little as it did with none in flight: nothing is read, one record is written.
    let receipt = quelea_broker::Receipt { queue: id, seq: quelea_model::Seq(1), receive_count: 1 };
    let first = world.broker.delete_messages(world.now, id, &[receipt]).unwrap();
    assert_eq!(first.0, [quelea_broker::ReceiptOutcome::Done]);
    world.settle();
    let before = world.broker.overview().store;
    taken.extend(receive(&mut world, id, 1));
    let after = world.broker.overview().store;
    assert_eq!((after.reads, after.appended_bytes - before.appended_bytes), (before.reads, 40));
    assert_eq!(taken, (0..=IN_FLIGHT_MAX).collect::<Vec<_>>());
    // All become visible at once, but not in one turn.
    world.now = world.now.plus_ms(30_000);
    assert!(world.broker.run(world.now), "there is more to do");
    let shown = world.broker.queue("/", "q").unwrap().messages_ready;
    assert!((1..20_000).contains(&shown), "{shown} in one turn");
    world.settle();
    let backlog = world.broker.queue_backlog(world.now, id).unwrap();
    assert_eq!((backlog.visible, backlog.in_flight), (IN_FLIGHT_MAX as u64 + 1, 0));
}

#[test]
fn delayed_messages_cost_nothing_until_their_time() {
    const DELAYED: usize = 200_000;
    let mut world = World::new(quelea_broker::BrokerConfig::default(), Ground::Memory);
    let id = queue(&mut world, 1);
    send(&mut world, id, DELAYED, |at| 1_000 + at as u64);
    assert_eq!(world.broker.overview().resident_bytes, 0, "their bodies are in the log");
    let before = world.broker.overview().store;
    for at in 0..10 {
        send(&mut world, id, 1, |_| 0);
        assert_eq!(receive(&mut world, id, 10), [0], "round {at}");
    }
    assert!(!world.broker.run(world.now), "nobody has anything to do");
    assert_eq!(world.broker.overview().store.reads, before.reads, "nothing is read");
    assert_eq!(world.broker.deadline(), Some(world.now.plus_ms(1_000)), "one timer");
    world.wait(1_009);
    assert_eq!(receive(&mut world, id, 100), (0..10).collect::<Vec<_>>());
    let backlog = world.broker.queue_backlog(world.now, id).unwrap();
    assert_eq!(backlog.delayed, DELAYED as u64 - 10);
}

#[test]
fn an_order_hint_takes_each_of_the_oldest_as_often() {
    const HINT: usize = 8;
    let mut world = World::new(quelea_broker::BrokerConfig::default(), Ground::Memory);
    let id = queue(&mut world, HINT as u16);
    send(&mut world, id, 3_000, |_| 0);
    let mut left: Vec<usize> = (0..3_000).collect();
    let mut ranks = [0; HINT];
    while left.len() > HINT {
        let [taken] = receive(&mut world, id, 1)[..] else { panic!("there is one") };
        let rank = left.iter().position(|other| *other == taken).unwrap();
        assert!(rank < HINT, "{taken} has {rank} before it");
        ranks[rank] += 1;
        left.remove(rank);
    }
    // The generator is seeded, so this is the same every time; 374 are to be expected.
    assert!(ranks.iter().all(|times| (300..450).contains(times)), "{ranks:?}");
}
