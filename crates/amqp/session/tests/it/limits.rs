//! What a hostile or careless client can cost.

use bytes::BytesMut;
use quelea_amqp_codec::method::{
    Method, basic, channel, confirm, connection, exchange as exchange_methods,
    queue as queue_methods, tx,
};
use quelea_broker::BrokerConfig;
use quelea_model::{Properties, Table, Value, limits};

use crate::consuming::consume;
use crate::declaring::{bind, declared, durable_queue, exchange, exclusive_queue, queue};
use crate::session_test::{Client, On, SessionTest, capabilities, to};

#[test]
fn a_client_that_never_reads_is_bounded_and_loses_nothing() {
    let mut node = SessionTest::new();
    let (publisher, consumer) = (node.channel(), node.channel());
    node.call(publisher, queue("q"));
    node.call(consumer, basic::Consume { no_ack: true, ..consume("q", "me") });
    node.reads(consumer.0, false);
    let body = "x".repeat(10_000);
    let count = 500;
    for _ in 0..count {
        node.publish_to(publisher, "q", &body);
    }
    node.settle();
    let waiting = node.session(consumer.0).output().len();
    assert!(waiting < limits::OUTPUT_BYTES_MAX + 100_000, "{waiting} bytes wait");
    assert!(waiting > limits::OUTPUT_BYTES_MAX / 2, "{waiting} bytes wait");
    node.reads(consumer.0, true);
    node.settle();
    assert_eq!(node.all(consumer.0).len(), count);
}

#[test]
fn a_client_that_writes_before_it_reads_a_large_delivery_is_read() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    node.call(on, queue("answers"));
    node.call(on, basic::Consume { no_ack: true, ..consume("q", "me") });
    node.reads(on.0, false);
    node.publish_to(on, "q", &"x".repeat(4_000_000));
    node.settle();
    assert!(node.session(on.0).output().len() > 2 * limits::OUTPUT_BYTES_MAX);
    assert!(node.session(on.0).wants_input());
    node.publish_to(on, "answers", "done");
    node.settle();
    let reader = node.channel();
    node.call(reader, basic::Consume { no_ack: true, ..consume("answers", "me") });
    node.settle();
    assert_eq!(node.all(reader.0).len(), 1);
}

#[test]
fn a_client_that_asks_and_never_reads_is_not_read_either() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    for _ in 0..100 {
        node.publish_to(on, "q", &"x".repeat(100_000));
    }
    node.settle();
    node.reads(on.0, false);
    for _ in 0..100 {
        node.send_on(on, basic::Get { queue: "q".into(), no_ack: true });
    }
    node.settle();
    assert!(!node.session(on.0).wants_input());
    assert!(node.session(on.0).output().len() < 2 * limits::OUTPUT_BYTES_MAX + 200_000);
    node.reads(on.0, true);
    node.settle();
    assert_eq!(node.all(on.0).len(), 100);
    assert!(node.session(on.0).wants_input());
}

#[test]
fn more_channels_than_agreed_end_the_connection() {
    let mut node = SessionTest::new();
    let client = node.connect();
    for number in 1..=limits::CHANNELS_MAX {
        node.send_on(On(client, number), channel::Open {});
    }
    node.settle();
    assert_eq!(node.all(client).len(), usize::from(limits::CHANNELS_MAX));
    assert_eq!(node.broker.channels().len(), usize::from(limits::CHANNELS_MAX));
    node.send_on(On(client, limits::CHANNELS_MAX + 1), channel::Open {});
    node.settle();
    let (code, ..) = node.closed(client);
    assert_eq!(code, 530);
    assert_eq!(node.broker.channels().len(), 0);
}

#[test]
fn endless_declares_reach_a_limit() {
    let limits =
        BrokerConfig { exclusive_queues_per_connection_max: 50, ..BrokerConfig::default() };
    let mut node = SessionTest::with_limits(limits);
    let on = node.channel();
    for _ in 0..51 {
        node.send_on(on, exclusive_queue(""));
    }
    node.settle();
    let mut received = node.methods(on.0);
    let Some(Method::ChannelClose(close)) = received.pop() else { panic!("a close") };
    assert_eq!(close.reply_code, 406);
    assert_eq!(received.len(), 50);
}

#[test]
fn a_call_carries_out_a_bounded_number_of_events() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, queue("q"));
    for _ in 0..2 * quelea_amqp_session::EVENTS_PER_CALL_MAX {
        node.publish_to(on, "q", "x");
    }
    node.receive_only(on.0);
    let ready = node.broker.queue("/", "q").unwrap().messages_ready;
    assert_eq!(ready, quelea_amqp_session::EVENTS_PER_CALL_MAX as u64);
    node.settle();
    let ready = node.broker.queue("/", "q").unwrap().messages_ready;
    assert_eq!(ready, 2 * quelea_amqp_session::EVENTS_PER_CALL_MAX as u64);
}

#[test]
fn confirms_that_wait_stop_the_reading_at_the_limit() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, confirm::Select { no_wait: false });
    node.call(on, durable_queue("q"));
    node.is_disk_slow = true;
    // In this store every persistent message is a batch of its own, and so a run of its own.
    for _ in 0..limits::REPLIES_WAITING_MAX + 100 {
        node.publish_persistent(on, "q", "x");
    }
    node.settle();
    assert!(!node.session(on.0).wants_input());
    let published = node.broker.queue("/", "q").unwrap().messages_ready;
    assert_eq!(published, limits::REPLIES_WAITING_MAX as u64);
    node.is_disk_slow = false;
    node.settle();
    assert!(!node.session(on.0).waits_for_progress());
    assert!(node.session(on.0).wants_input());
}

#[test]
fn a_message_too_large_for_its_consumers_frames_closes_one_channel() {
    let mut node = SessionTest::new();
    let publisher = node.channel();
    let dead = [
        ("x-dead-letter-exchange", Value::text("")),
        ("x-dead-letter-routing-key", Value::text("dead")),
        ("x-message-ttl", Value::I32(0)),
    ];
    let arguments = Table::from_iter(dead);
    node.call(publisher, queue_methods::Declare { arguments, ..queue("q") });
    node.call(publisher, queue("dead"));
    // Dead-lettering adds x-death to headers that only just fit.
    let large = Value::Array(vec![Value::LongString(vec![b'x'; 130_940].into())]);
    let headers = Some(Table::from_iter([("h", large)]));
    let properties = Properties { headers, ..Properties::default() };
    let publish = basic::Publish { routing_key: "q".into(), ..Default::default() };
    node.publish(publisher, publish, &properties, "");
    node.publish_to(publisher, "dead", "small");
    node.settle();
    for delivered in [0, 1] {
        let consumer = node.channel();
        node.call(consumer, consume("dead", "me"));
        node.settle();
        assert_eq!(channels(&mut node, consumer.0), delivered);
    }
}

#[test]
fn a_header_too_long_for_the_consumer_is_left_out() {
    let mut node = SessionTest::new();
    let publisher = node.channel();
    let dead = [
        ("x-dead-letter-exchange", Value::text("")),
        ("x-dead-letter-routing-key", Value::text("dead")),
        ("x-message-ttl", Value::I32(0)),
    ];
    let arguments = Table::from_iter(dead);
    node.call(publisher, queue_methods::Declare { arguments, ..queue("q") });
    node.call(publisher, queue("dead"));
    // x-death is one more than fits.
    let long = Value::LongString(vec![b'x'; 130_950].into());
    let headers = Some(Table::from_iter([("long", long), ("short", Value::text("s"))]));
    let properties = Properties { headers, ..Properties::default() };
    let publish = basic::Publish { routing_key: "q".into(), ..Default::default() };
    node.publish(publisher, publish, &properties, "body");
    node.settle();
    let consumer = node.channel();
    node.call(consumer, consume("dead", "me"));
    node.settle();
    let received = node.all(consumer.0);
    let delivery = received.iter().find(|one| matches!(one.method, Method::BasicDeliver(_)));
    let delivery = delivery.expect("it is delivered");
    assert_eq!(delivery.body(), "body");
    let (properties, _) = delivery.content.as_ref().expect("it has content");
    let headers = Properties::decode(properties).unwrap().headers.expect("it has headers");
    assert_eq!(headers.get("long"), None);
    assert_eq!(headers.get("short").and_then(Value::as_text), Some("s"));
    let left_out = Value::Array(vec![Value::text("long")]);
    assert_eq!(headers.get("x-headers-left-out"), Some(&left_out));
    assert_eq!(channels(&mut node, consumer.0), 1);
}

#[test]
fn a_doubled_header_stays_doubled_beside_one_left_out() {
    let mut node = SessionTest::new();
    let publisher = node.channel();
    node.call(publisher, queue("q"));
    let long = Value::LongString(vec![b'x'; 5_000].into());
    let entries = [("twice", Value::I8(1)), ("long", long), ("twice", Value::I8(2))];
    let mut content = Vec::new();
    for entry in entries {
        let mut table = BytesMut::new();
        Table::from_iter([entry]).encode(&mut table);
        content.extend_from_slice(&table[4..]);
    }
    let headers = Some(Table::decode(&content).unwrap());
    let properties = Properties { headers, ..Properties::default() };
    node.publish(publisher, to("q"), &properties, "body");
    let client = node.accept(true);
    node.log_in(client, "guest", capabilities());
    assert!(matches!(node.next(client).method, Method::ConnectionTune(_)));
    let frame_max = limits::FRAME_BYTES_MIN;
    node.send(client, connection::TuneOk { channel_max: 1, frame_max, heartbeat: 0 });
    node.send(client, connection::Open { virtual_host: "/".into() });
    node.settle();
    assert_eq!(node.next(client).method, connection::OpenOk {}.into());
    let consumer = node.open_channel(client, 1);
    node.call(consumer, consume("q", "me"));
    node.settle();
    let delivery = node.next(client);
    let (properties, _) = delivery.content.as_ref().expect("it is delivered");
    let headers = Properties::decode(properties).unwrap().headers.expect("it has headers");
    let left_out = Value::Array(vec![Value::text("long")]);
    let expected =
        [("twice", &Value::I8(1)), ("twice", &Value::I8(2)), ("x-headers-left-out", &left_out)];
    assert!(headers.iter().eq(expected), "{headers:?}");
}

/// Returns how many channels of a client are open.
fn channels(node: &mut SessionTest, client: Client) -> u32 {
    let id = node.session(client).connection_id();
    let connections = node.broker.connections();
    let connection = connections.iter().find(|connection| Some(connection.id) == id);
    connection.expect("it is open").channels
}

/// Takes turns until the attacker's session goes on; `check` is called before each. In each a message of the other goes
/// through, and no more is done than a turn may: the last message is begun within the steps, and takes what one may take.
fn serve_in_between(
    node: &mut SessionTest,
    attacker: On,
    other: On,
    mut before: u64,
    check: impl Fn(&SessionTest),
) {
    let mut turns = 0;
    while node.session(attacker.0).is_stalled() || turns == 0 {
        check(node);
        node.publish_to(other, "probe", "served");
        node.turn();
        let steps = node.broker.work_done() - before;
        before = node.broker.work_done();
        assert!(steps <= 2_000 + limits::TOPIC_STEPS_MAX, "{steps} steps in turn {turns}");
        assert_eq!(node.all(other.0).len(), 1, "turn {turns} serves the other");
        turns += 1;
    }
    assert!(turns >= 20, "{turns} turns");
}

#[test]
fn a_flood_of_expensive_keys_lets_the_others_go_in_between() {
    let mut node = SessionTest::new();
    let (attacker, other) = (node.channel(), node.channel());
    node.call(attacker, queue("q"));
    expensive_patterns(&mut node, attacker);
    node.call(other, queue("probe"));
    node.call(other, basic::Consume { no_ack: true, ..consume("probe", "me") });
    node.broker.set_steps_per_turn(1_000);
    let before = node.broker.work_done();
    for n in 0..200 {
        // Each is another key: none is found in the cache.
        let to = basic::Publish {
            exchange: "amq.topic".into(),
            routing_key: (&*format!("{}n{n}", "a.".repeat(100))).into(),
            ..Default::default()
        };
        node.publish(attacker, to, &Properties::default(), "m");
    }
    serve_in_between(&mut node, attacker, other, before, |_| ());
}

#[test]
fn a_queue_is_declared_anew_behind_its_deletion_however_many_bindings_it_had() {
    let mut node = SessionTest::new();
    let on = node.channel();
    node.call(on, durable_queue("q"));
    for n in 0..100 {
        node.call(on, bind("q", "amq.direct", &format!("key {n}")));
    }
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    node.send_on(on, durable_queue("q"));
    // The deletion takes this turn's steps.
    node.turn();
    node.turn();
    assert!(node.session(on.0).awaits_removal(), "the name is not free yet");
    node.settle();
    let answers = node.methods(on.0);
    assert_eq!(answers[0], queue_methods::DeleteOk { message_count: 0 }.into());
    assert_eq!(answers[1], declared("q", 0, 0));
    assert_eq!(answers.len(), 2);
}

#[test]
fn an_exchange_is_declared_anew_behind_its_deletion_however_many_bindings_it_had() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let declare = || exchange_methods::Declare {
        exchange: "x".into(),
        kind: "direct".into(),
        durable: true,
        ..Default::default()
    };
    node.call(on, declare());
    node.call(on, durable_queue("q"));
    for n in 0..100 {
        node.call(on, bind("q", "x", &format!("key {n}")));
    }
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, exchange_methods::Delete { exchange: "x".into(), ..Default::default() });
    node.send_on(on, declare());
    // The deletion takes this turn's steps.
    node.turn();
    node.turn();
    assert!(node.session(on.0).awaits_removal(), "the name is not free yet");
    node.settle();
    let answers = node.methods(on.0);
    assert_eq!(
        answers,
        [exchange_methods::DeleteOk {}.into(), exchange_methods::DeclareOk {}.into()]
    );
}

#[test]
fn a_declaration_that_waits_holds_its_channel_and_no_other() {
    let mut node = SessionTest::new();
    let on = node.channel();
    let other = node.open_channel(on.0, 2);
    node.call(other, durable_queue("another"));
    node.call(on, durable_queue("q"));
    for n in 0..100 {
        node.call(on, bind("q", "amq.direct", &format!("key {n}")));
    }
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    node.send_on(on, durable_queue("q"));
    node.send_on(other, durable_queue("another"));
    // The deletion takes this turn's steps.
    node.turn();
    node.turn();
    assert!(node.session(on.0).awaits_removal());
    assert!(!node.session(on.0).is_stalled(), "the other channel goes on");
    assert!(node.methods(on.0).contains(&declared("another", 0, 0)));
    // What comes on its own channel waits, and with it what is read behind that.
    node.send_on(on, bind("q", "amq.direct", "anew"));
    node.turn();
    assert!(node.session(on.0).is_stalled());
    node.settle();
    let answers = node.methods(on.0);
    assert_eq!(answers.first(), Some(&declared("q", 0, 0)));
    assert_eq!(answers.get(1), Some(&queue_methods::BindOk {}.into()));
    assert!(!node.session(on.0).awaits_removal() && !node.session(on.0).is_stalled());
}

/// A key of these words comes by many places, and fits none.
fn expensive_patterns(node: &mut SessionTest, on: On) {
    for n in 0..40 {
        let stars = "*.".repeat(n);
        node.call(on, bind("q", "amq.topic", &format!("#.a.{stars}z")));
    }
}

/// Publishes to `amq.topic` by a key that no other message has; its last word decides whether it fits.
fn publish_expensive(node: &mut SessionTest, on: On, n: usize, last: &str) {
    let to = basic::Publish {
        exchange: "amq.topic".into(),
        routing_key: (&*format!("n{n}.{}{last}", "a.".repeat(100))).into(),
        ..Default::default()
    };
    node.publish(on, to, &Properties::default(), "m");
}

#[test]
fn a_commit_of_expensive_messages_lets_the_others_go_in_between() {
    let mut node = SessionTest::new();
    let (attacker, other) = (node.channel(), node.channel());
    node.call(attacker, durable_queue("q"));
    expensive_patterns(&mut node, attacker);
    node.call(other, queue("probe"));
    node.call(other, basic::Consume { no_ack: true, ..consume("probe", "me") });
    node.call(attacker, tx::Select {});
    (0..200).for_each(|n| publish_expensive(&mut node, attacker, n, "z"));
    // What was found when they came does not hold any more.
    node.call(other, queue("new"));
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(attacker, tx::Commit {});
    let before = node.broker.work_done();
    serve_in_between(&mut node, attacker, other, before, |node| {
        assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 0, "all or nothing");
    });
    node.settle();
    assert_eq!(node.methods(attacker.0), [tx::CommitOk {}.into()]);
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 200);
}

#[test]
fn a_commit_over_many_turns_that_fails_has_changed_nothing() {
    let mut node = SessionTest::new();
    let (on, other) = (node.channel(), node.channel());
    node.call(on, durable_queue("q"));
    expensive_patterns(&mut node, on);
    node.call(other, exchange("fleeting", "fanout"));
    node.call(on, tx::Select {});
    (0..200).for_each(|n| publish_expensive(&mut node, on, n, "z"));
    node.call(other, queue("new"));
    let to = basic::Publish { exchange: "fleeting".into(), ..Default::default() };
    node.publish(on, to, &Properties::default(), "last");
    node.settle();
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, tx::Commit {});
    node.turn();
    assert!(node.session(on.0).is_stalled(), "it is under way");
    node.call(
        other,
        exchange_methods::Delete { exchange: "fleeting".into(), ..Default::default() },
    );
    node.settle();
    let answers = node.methods(on.0);
    assert!(matches!(&answers[..], [Method::ChannelClose(close)] if close.reply_code == 406));
    assert_eq!(node.broker.queue("/", "q").unwrap().messages_ready, 0);
}

#[test]
fn a_queue_deleted_while_a_commit_is_under_way_takes_its_messages_with_it() {
    let mut node = SessionTest::new();
    let (on, other) = (node.channel(), node.channel());
    node.call(on, durable_queue("q"));
    node.call(on, durable_queue("also"));
    expensive_patterns(&mut node, on);
    node.call(on, bind("also", "amq.topic", "#"));
    node.call(on, tx::Select {});
    (0..200).for_each(|n| publish_expensive(&mut node, on, n, "z"));
    node.call(other, queue("new"));
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.send_on(on, tx::Commit {});
    node.turn();
    assert!(node.session(on.0).is_stalled(), "it is under way");
    node.call(other, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    node.settle();
    assert_eq!(node.methods(on.0), [tx::CommitOk {}.into()]);
    assert_eq!(node.broker.queue("/", "also").unwrap().messages_ready, 200);
    assert!(node.broker.queue("/", "q").is_none());
}
