//! Messages that the log does not give back are named, and stand in nobody's way.

use bytes::Bytes;
use quelea_broker::{BrokerConfig, QueueAttributes, Receive, Send};
use quelea_model::QueueId;

use crate::broker_test::{BrokerTest, StoreKind};

const MESSAGES: usize = 5_000;

/// A queue `q` of so many messages, all on the disk and none in memory.
fn restarted(config: BrokerConfig) -> (BrokerTest, QueueId) {
    let mut test = BrokerTest::new(config, StoreKind::Log(1024 * 1024));
    let id = test.broker.create_queue(test.now, "/", "q", QueueAttributes::default()).unwrap().0;
    let messages = (0..MESSAGES).map(|at| Send {
        properties: Bytes::new(),
        body: Bytes::from(format!("body {at:05}")),
        delay_ms: None,
        group: None,
        deduplication: None,
        message_id: [0; 16],
    });
    test.broker.send(test.now, id, messages.collect()).unwrap();
    test.settle();
    test.shut_down();
    let id = test.broker.queue_id("/", "q").unwrap();
    (test, id)
}

/// The bodies of all that can be received.
fn receive_all(test: &mut BrokerTest, id: QueueId) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let request = Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 0, attempt: None };
        let receive = test.broker.receive(test.now, id, request).unwrap();
        test.settle();
        let messages = test.received.remove(&receive).unwrap().unwrap();
        if messages.is_empty() {
            return bodies;
        }
        let body = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().to_owned();
        bodies.extend(messages.iter().map(|message| body(message.message.body())));
    }
}

#[test]
fn a_damaged_message_is_named_and_counted_and_the_others_are_delivered() {
    let (mut test, id) = restarted(BrokerConfig::default());
    test.damage("body 03000");
    let bodies = receive_all(&mut test, id);
    let missed: Vec<&str> = test.unreadable.iter().map(String::as_str).collect();
    let [missed] = missed[..] else { panic!("{missed:?}") };
    let named = missed.starts_with("q: cannot read message 3001 at byte ")
        && missed.contains("of segment-00000001: the checksum is wrong");
    assert!(named, "{missed}");
    let expected: Vec<String> =
        (0..MESSAGES).filter(|at| *at != 3_000).map(|at| format!("body {at:05}")).collect();
    assert_eq!(bodies, expected);
    assert_eq!(test.broker.queue("/", "q").unwrap().messages_unreadable, 1);
    let overview = test.broker.overview();
    assert_eq!((overview.messages_unreadable, overview.unreadable), (1, 1));
    assert!(overview.unreadable_last.is_some());
    // It is settled as any other by a purge.
    test.broker.purge_queue_by_id(test.now, id).unwrap();
    test.settle();
    let overview = test.broker.overview();
    assert_eq!((overview.messages_unreadable, overview.unreadable), (0, 1));
    assert_eq!(overview.store.live, 0);
}

#[test]
fn a_damaged_range_is_named_and_does_not_stop_the_queue() {
    let index_bytes_max = 1;
    let (mut test, id) = restarted(BrokerConfig { index_bytes_max, ..BrokerConfig::default() });
    test.damage("body 03000");
    let bodies = receive_all(&mut test, id);
    let missed = test.broker.queue("/", "q").unwrap().messages_unreadable;
    assert_eq!(bodies.len() as u64 + missed, MESSAGES as u64);
    assert!(missed > 1, "the range that it lies in was paged out");
    let [named] = &test.unreadable[..] else { panic!("{:?}", test.unreadable) };
    assert!(named.contains(&format!("cannot read {missed} messages from ")), "{named}");
}
