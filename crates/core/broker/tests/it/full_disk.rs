//! A full disk gets its space back by what consumers take, whatever else the log has to keep.

use quelea_broker::{
    BrokerConfig, DeclareQueue, Fifo, Publish, QueueAttributes, QueueSettings, Receive, Send,
};
use quelea_model::{Properties, QueueId, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};

const SEGMENT_BYTES: u32 = 64 * 1024;

fn create_fifo(test: &mut BrokerTest) -> QueueId {
    let fifo = Some(Fifo { deduplicates_by_group: false });
    let settings = QueueSettings { fifo, ..QueueSettings::default() };
    let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
    let (queue, _) = test.broker.create_queue(test.now, "/", "q", attributes).unwrap();
    test.settle();
    queue
}

fn send(test: &mut BrokerTest, queue: QueueId, n: u64) {
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
    let send = Send {
        properties: properties.to_bytes(),
        body: vec![7; 10].into(),
        delay_ms: None,
        group: Some(format!("group {n}").into()),
        deduplication: Some(format!("id {n}").into()),
        message_id: [0; 16],
    };
    test.broker.send(test.now, queue, vec![send]).unwrap().0.remove(0).unwrap();
}

#[test]
fn publishers_go_on_when_ids_that_count_no_more_leave_room() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(SEGMENT_BYTES));
    let queue = create_fifo(&mut test);
    test.set_disk_capacity(8 * u64::from(SEGMENT_BYTES));
    let mut sent = 0;
    while test.broker.publishers_blocked().is_none() {
        send(&mut test, queue, sent);
        test.settle();
        sent += 1;
        assert!(sent < 100_000, "the disk never got full");
    }
    let end = test.now.plus_ms(7 * 60_000);
    while test.broker.publishers_blocked().is_some() {
        let deadline = test.broker.deadline().expect("the store is looked at again");
        test.now = test.now.max(deadline);
        assert!(test.now < end, "{:?}", test.broker.publishers_blocked());
        while test.turn() {}
    }
    assert_eq!(test.blocked.last(), Some(&None));
}

/// A checkpoint repeats the deduplication ids in the log, so they need room of their own.
#[test]
fn deduplication_ids_do_not_take_the_room_that_frees_a_full_disk() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(SEGMENT_BYTES));
    let queue = create_fifo(&mut test);
    test.set_disk_capacity(10 * u64::from(SEGMENT_BYTES));
    let mut sent = 0_u64;
    test.append_until_full(1_000, |test| {
        send(test, queue, sent);
        sent += 1;
        assert!(sent < 100_000, "the disk never got full");
    });
    assert!(sent > 500, "{sent} were sent");
    let mut deleted = 0;
    while deleted < sent {
        let receive = Receive { max: 10, visibility_timeout_ms: 60_000, wait_ms: 0, attempt: None };
        let id = test.broker.receive(test.now, queue, receive).unwrap();
        test.settle();
        let received = test.received.remove(&id).flatten().unwrap_or_default();
        assert!(!received.is_empty(), "{deleted} of {sent}");
        let receipts: Vec<_> = received.iter().map(|message| message.receipt).collect();
        test.broker.delete_messages(test.now, queue, &receipts).unwrap();
        deleted += receipts.len() as u64;
        test.settle();
    }
    for _ in 0..20 {
        test.settle();
        test.now = test.now.plus_ms(1_000);
    }
    let stats = test.broker.overview().store;
    assert!(test.broker.accepts_publishes(), "{:?}, {stats:?}", test.broker.publishers_blocked());
    // The ids still count, also for who starts from that checkpoint.
    assert_eq!(stats.live, 0);
    test.crash(0);
    let queue = test.broker.queue_id("/", "q").unwrap();
    send(&mut test, queue, 0);
    assert_eq!(test.broker.queue("/", "q").unwrap().messages_ready, 0, "it was sent before");
}

const TTL_MS: u64 = 10_000;

fn declare(test: &mut BrokerTest, queue: &str, arguments: Table) {
    let channel = test.client("me").channel;
    let request =
        DeclareQueue { name: queue.into(), durable: true, arguments, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
}

fn publish(test: &mut BrokerTest, queue: &str) {
    let channel = test.client("me").channel;
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() }.to_bytes();
    let publish = Publish {
        exchange: "",
        routing_key: queue,
        properties: &properties,
        body: vec![7; 1_000].into(),
        mandatory: false,
        confirm: false,
    };
    test.broker.publish(test.now, channel, publish).unwrap();
}

#[test]
fn dead_letters_wait_for_room_on_a_full_disk() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(SEGMENT_BYTES));
    let mut dying = Table::new();
    dying.set("x-message-ttl", Value::I64(TTL_MS as i64));
    dying.set("x-dead-letter-exchange", Value::text(""));
    dying.set("x-dead-letter-routing-key", Value::text("dead"));
    declare(&mut test, "dying", dying);
    declare(&mut test, "dead", Table::new());
    declare(&mut test, "other", Table::new());
    test.set_disk_capacity(20 * u64::from(SEGMENT_BYTES));
    let (mut dying, mut others) = (0, 0);
    test.append_until_full(100, |test| {
        let (queue, count) =
            if dying < 500 { ("dying", &mut dying) } else { ("other", &mut others) };
        publish(test, queue);
        *count += 1;
        assert!(others < 10_000, "the disk never got full");
    });
    assert!(dying == 500 && others >= 100, "{dying}, {others}");
    let before = test.broker.overview().store.appended_bytes;
    for _ in 0..30 {
        test.now = test.now.plus_ms(1_000);
        test.settle();
    }
    let store = test.broker.overview().store;
    let appended = store.appended_bytes - before;
    assert!(appended < u64::from(SEGMENT_BYTES), "{appended} bytes of letters, {store:?}");
    assert!(store.pending_bytes < u64::from(SEGMENT_BYTES), "{store:?}");
    let channel = test.client("me").channel;
    for _ in 0..others {
        test.broker.get(test.now, channel, "other", true).unwrap();
        test.settle();
    }
    for _ in 0..30 {
        test.now = test.now.plus_ms(1_000);
        test.settle();
    }
    assert_eq!(test.broker.queue("/", "dead").unwrap().messages_ready, dying);
    let dying = test.broker.queue("/", "dying").unwrap();
    assert_eq!((dying.messages_ready, dying.messages_in_transit), (0, 0));
}
