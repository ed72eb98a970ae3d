//! Many messages in flight and many delayed ones, and the order hint: what is done for them is
//! counted, not timed.

use bytes::Bytes;
use quelea_broker::{BrokerConfig, QueueAttributes, QueueSettings, Receive, ReceiveError, Send};
use quelea_model::QueueId;
use quelea_model::limits::IN_FLIGHT_MAX;
use quelea_store::Durability;

use crate::broker_test::{BrokerTest, StoreKind};

fn queue(test: &mut BrokerTest, order_hint: u16) -> QueueId {
    let settings = QueueSettings { order_hint, ..QueueSettings::default() };
    let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
    test.broker.create_queue(test.now, "/", "q", attributes).unwrap().0
}

fn send(test: &mut BrokerTest, id: QueueId, count: usize, delay_ms: impl Fn(usize) -> u64) {
    let messages = (0..count).map(|at| Send {
        properties: Bytes::new(),
        body: Bytes::from(at.to_string()),
        delay_ms: Some(delay_ms(at)),
        group: None,
        deduplication: None,
        message_id: [0; 16],
    });
    test.broker.send(test.now, id, messages.collect()).unwrap();
    test.settle();
}

/// Receives messages. Returns their bodies.
fn receive(test: &mut BrokerTest, id: QueueId, max: usize) -> Vec<usize> {
    let request = Receive { max, visibility_timeout_ms: 30_000, wait_ms: 0, attempt: None };
    let receive = test.broker.receive(test.now, id, request).unwrap();
    test.settle();
    let messages = test.received.remove(&receive).unwrap().unwrap();
    let body = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().parse().unwrap();
    messages.iter().map(|message| body(message.message.body())).collect()
}

#[test]
fn a_queue_has_so_many_messages_in_flight_and_no_more() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let id = queue(&mut test, 1);
    send(&mut test, id, IN_FLIGHT_MAX + 2, |_| 0);
    let mut taken = receive(&mut test, id, IN_FLIGHT_MAX + 2);
    assert_eq!(taken.len(), IN_FLIGHT_MAX);
    let request = Receive { max: 1, visibility_timeout_ms: 1, wait_ms: 0, attempt: None };
    let refused = test.broker.receive(test.now, id, request);
    assert!(matches!(refused, Err(ReceiveError::OverLimit(_))), "{refused:?}");
    // One more takes as little as it did with none in flight: nothing is read, one record is written.
    let receipt = quelea_broker::Receipt { queue: id, seq: quelea_model::Seq(1), receive_count: 1 };
    let first = test.broker.delete_messages(test.now, id, &[receipt]).unwrap();
    assert_eq!(first.0, [quelea_broker::ReceiptOutcome::Done]);
    test.settle();
    let before = test.broker.overview().store;
    taken.extend(receive(&mut test, id, 1));
    let after = test.broker.overview().store;
    assert_eq!((after.reads, after.appended_bytes - before.appended_bytes), (before.reads, 40));
    assert_eq!(taken, (0..=IN_FLIGHT_MAX).collect::<Vec<_>>());
    // All become visible at once, but not in one turn.
    test.now = test.now.plus_ms(30_000);
    assert!(test.broker.run(test.now), "there is more to do");
    let shown = test.broker.queue("/", "q").unwrap().messages_ready;
    assert!((1..20_000).contains(&shown), "{shown} in one turn");
    test.settle();
    let backlog = test.broker.queue_backlog(test.now, id).unwrap();
    assert_eq!((backlog.visible, backlog.in_flight), (IN_FLIGHT_MAX as u64 + 1, 0));
}

#[test]
fn delayed_messages_cost_nothing_until_their_time() {
    const DELAYED: usize = 200_000;
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let id = queue(&mut test, 1);
    send(&mut test, id, DELAYED, |at| 1_000 + at as u64);
    assert_eq!(test.broker.overview().resident_bytes, 0, "their bodies are in the log");
    let before = test.broker.overview().store;
    for at in 0..10 {
        send(&mut test, id, 1, |_| 0);
        assert_eq!(receive(&mut test, id, 10), [0], "round {at}");
    }
    assert!(!test.broker.run(test.now), "nobody has anything to do");
    assert_eq!(test.broker.overview().store.reads, before.reads, "nothing is read");
    assert_eq!(test.broker.deadline(), Some(test.now.plus_ms(1_000)), "one timer");
    test.wait(1_009);
    assert_eq!(receive(&mut test, id, 100), (0..10).collect::<Vec<_>>());
    let backlog = test.broker.queue_backlog(test.now, id).unwrap();
    assert_eq!(backlog.delayed, DELAYED as u64 - 10);
}

#[test]
fn an_order_hint_takes_each_of_the_oldest_as_often() {
    const HINT: usize = 8;
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let id = queue(&mut test, HINT as u16);
    send(&mut test, id, 3_000, |_| 0);
    let mut left: Vec<usize> = (0..3_000).collect();
    let mut ranks = [0; HINT];
    while left.len() > HINT {
        let [taken] = receive(&mut test, id, 1)[..] else { panic!("there is one") };
        let rank = left.iter().position(|other| *other == taken).unwrap();
        assert!(rank < HINT, "{taken} has {rank} before it");
        ranks[rank] += 1;
        left.remove(rank);
    }
    // The generator is seeded, so this is the same every time; 374 are to be expected.
    assert!(ranks.iter().all(|times| (300..450).contains(times)), "{ranks:?}");
}

#[test]
fn a_receipt_of_what_a_power_cut_took_deletes_no_other() {
    let send_and_receive = |test: &mut BrokerTest, id| {
        send(test, id, 1, |_| 0);
        let request = Receive { max: 1, visibility_timeout_ms: 30_000, wait_ms: 0, attempt: None };
        let receive = test.broker.receive(test.now, id, request).unwrap();
        test.settle();
        test.received.remove(&receive).unwrap().unwrap()[0].receipt
    };
    let mut lost = [0, 0];
    for seed in 0..8 {
        let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
        // Nothing waits for the disk.
        let settings = QueueSettings { durability: Some(Durability::Os), ..Default::default() };
        let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
        let id = test.broker.create_queue(test.now, "/", "q", attributes).unwrap().0;
        test.settle();
        let mut receipts = Vec::new();
        // The second one finds the log as the first did, if that has left nothing.
        for lost in &mut lost {
            receipts.push(send_and_receive(&mut test, id));
            test.power_cut(seed);
            if test.broker.overview().store.live > 0 {
                break;
            }
            *lost += 1;
            receipts.push(send_and_receive(&mut test, id));
            let (last, before) = receipts.split_last().unwrap();
            test.broker.delete_messages(test.now, id, before).unwrap();
            test.settle();
            assert_eq!(test.broker.overview().store.live, 1, "{last:?} and {before:?}");
            test.power_cut(seed);
            if test.broker.overview().store.live > 0 {
                break;
            }
        }
    }
    assert!(lost[0] > 0 && lost[1] > 0, "{lost:?} messages were lost");
}
