//! Messages that the log does not give back are named, and stand in nobody's way.

use bytes::Bytes;
use quelea_broker::{
    Broker, BrokerConfig, DeclareQueue, Effect, Publish, QueueAttributes, QueueBinding, Receive,
    RecoveryError, Send,
};
use quelea_model::{Properties, QueueId, Table, Timestamp, Value};
use quelea_store::{Damage, MemStore, Recovered};
use quelea_testkit::broker::{memory_of, open_memory};

use crate::broker_test::{BrokerTest, StoreKind};

const MESSAGES: usize = 5_000;

/// Restarts a broker that has a queue `q` of so many messages, all on the disk and none in memory.
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

/// Receives all that can be received. Returns the bodies.
fn receive_all(test: &mut BrokerTest, id: QueueId) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let received = receive_some(test, id);
        if received.is_empty() {
            return bodies;
        }
        bodies.extend(received);
    }
}

fn receive_some(test: &mut BrokerTest, id: QueueId) -> Vec<String> {
    let request = Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 0, attempt: None };
    let receive = test.broker.receive(test.now, id, request).unwrap();
    test.settle();
    let messages = test.received.remove(&receive).unwrap().unwrap();
    let body = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().to_owned();
    messages.iter().map(|message| body(message.message.body())).collect()
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

#[test]
fn a_range_that_was_set_aside_is_there_again_after_a_restart() {
    let index_bytes_max = 1;
    let (mut test, id) = restarted(BrokerConfig { index_bytes_max, ..BrokerConfig::default() });
    test.damage("body 03000");
    let mut bodies = Vec::new();
    while test.broker.queue("/", "q").unwrap().messages_unreadable == 0 {
        bodies.extend(receive_some(&mut test, id));
    }
    test.shut_down();
    let id = test.broker.queue_id("/", "q").unwrap();
    // The disk can be read again.
    test.damage("cody 03000");
    bodies.extend(receive_all(&mut test, id));
    bodies.sort_unstable();
    let expected: Vec<String> = (0..MESSAGES).map(|at| format!("body {at:05}")).collect();
    assert_eq!(bodies, expected);
    assert_eq!(test.broker.overview().messages_unreadable, 0);
}

#[test]
fn a_dead_letter_that_cannot_be_read_is_named_though_its_queue_is_gone() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    let channel = test.client("me").channel;
    let mut arguments = Table::new();
    arguments.set("x-dead-letter-exchange", Value::text("amq.fanout"));
    let request =
        DeclareQueue { name: "q".to_owned(), durable: true, arguments, ..DeclareQueue::default() };
    test.broker.declare_queue(test.now, channel, &request).unwrap();
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() }.to_bytes();
    for body in ["lost", "read"] {
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            properties: &properties,
            body: body.into(),
            mandatory: false,
            confirm: false,
        };
        test.broker.publish(test.now, channel, publish).unwrap();
        test.broker.get(test.now, channel, "q", false).unwrap();
    }
    test.settle();
    test.damage("lost");
    test.broker.nack(test.now, channel, 0, true, false).unwrap();
    test.broker.delete_queue(test.now, channel, "q", false, false).unwrap();
    test.settle();
    let [named] = &test.unreadable[..] else { panic!("{:?}", test.unreadable) };
    assert!(named.starts_with("q: cannot read message 1 at byte "), "{named}");
    let overview = test.broker.overview();
    assert_eq!((overview.unreadable, overview.counters.dead_letters_dropped), (1, 1));
    assert_eq!((overview.messages_unreadable, overview.store.live), (0, 0));
}

/// Starts a broker over what this store holds, without the definitions that this picks by their bytes.
fn without(
    store: &mut MemStore,
    is_lost: impl Fn(&[u8]) -> bool,
    damage: Vec<Damage>,
) -> Result<Broker, RecoveryError> {
    let (mut store, recovered) = open_memory(std::mem::take(store));
    recovered.topology.keys().filter(|key| is_lost(key)).for_each(|key| store.delete_topology(key));
    let topology = recovered.topology.into_iter().filter(|(key, _)| !is_lost(key)).collect();
    let recovered = Recovered { topology, damage, ..recovered };
    Broker::new(BrokerConfig::default(), store, recovered, 7, Timestamp::from_millis(1))
}

fn accepted_damage() -> Vec<Damage> {
    let (file, problem) = ("segment-00000001".to_owned(), "the checksum is wrong".to_owned());
    vec![Damage { file, offset: 4096, problem, lost: Vec::new() }]
}

fn has(key: &[u8], kind: u8, name: &str) -> bool {
    key[0] == kind && key.windows(name.len()).any(|bytes| bytes == name.as_bytes())
}

/// Returns a store with two queues, with attributes and bindings.
fn defined() -> MemStore {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    for name in ["lost", "kept"] {
        test.broker.create_queue(test.now, "/", name, QueueAttributes::default()).unwrap();
        let channel = test.client("me").channel;
        let binding = QueueBinding {
            queue: name.to_owned(),
            exchange: "amq.topic".to_owned(),
            routing_key: "key".to_owned(),
            arguments: Table::default(),
        };
        test.broker.bind_queue(test.now, channel, &binding).unwrap();
    }
    std::mem::take(memory_of(&mut test.broker))
}

#[test]
fn what_needs_a_lost_definition_is_left_out_and_said_once() {
    const QUEUE: u8 = 6;
    let is_lost = |key: &[u8]| has(key, QUEUE, "lost");
    let Err(refused) = without(&mut defined(), is_lost, Vec::new()) else {
        panic!("nothing is accepted")
    };
    assert!(refused.to_string().contains("queue 'lost', which is not there"), "{refused}");

    let mut broker = without(&mut defined(), is_lost, accepted_damage()).expect("it is accepted");
    let said: Vec<_> = std::iter::from_fn(|| broker.poll_effect()).collect();
    let is_of_lost = |effect: &Effect| matches!(effect, Effect::DefinitionLost { problem } if problem.contains("'lost'"));
    assert!(
        said.len() == 1 && said.iter().all(is_of_lost),
        "its attributes; a binding without a queue is what a crash leaves too: {said:?}"
    );
    assert!(broker.queue_id("/", "kept").is_some());
    // From now on without leave.
    let mut store = std::mem::take(memory_of(&mut broker));
    assert!(without(&mut store, |_| false, Vec::new()).is_ok());
}

#[test]
fn a_lost_virtual_host_is_made_anew_for_its_queues() {
    const VHOST: u8 = 1;
    let mut store = defined();
    let mut broker =
        without(&mut store, |key| key[0] == VHOST, accepted_damage()).expect("accepted");
    assert!(broker.queue_id("/", "kept").is_some());
    let mut store = std::mem::take(memory_of(&mut broker));
    assert!(without(&mut store, |_| false, Vec::new()).is_ok());
}
