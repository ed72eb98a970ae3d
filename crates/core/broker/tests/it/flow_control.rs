//! Publishers follow consumers that take as fast as they are given, and nobody else.

use bytes::Bytes;
use quelea_broker::{BrokerConfig, Consume};

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{declare, publish_body};

/// Publishers feel nothing before so many messages wait, or so many bytes.
const CROWDED: u64 = 4_096;
const CROWDED_BYTES: u64 = 8 * 1024 * 1024;

/// No publisher waits for longer.
const HELD_MS_MAX: u64 = 11;

/// What is published and taken in each millisecond.
struct Load {
    body_bytes: usize,
    publishers: &'static [&'static str],
    consumers: &'static [&'static str],
    /// By each publisher, as long as it is not held back.
    offered: usize,
    /// By each consumer, in so many milliseconds each.
    taken: usize,
    taken_every_ms: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Played {
    published: Vec<u64>,
    /// Milliseconds in a row that one publisher was held back for, at most.
    held_ms: u64,
}

impl Played {
    fn total(&self) -> u64 {
        self.published.iter().sum()
    }
}

fn new_test() -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    declare(&mut test, "owner", "q", false);
    test
}

fn consume(test: &mut BrokerTest, client: &str) {
    let channel = test.client(client).channel;
    test.broker.set_prefetch(test.now, channel, 100, false);
    let request = Consume { queue: String::from("q"), ..Consume::default() };
    test.broker.consume(test.now, channel, &request).unwrap();
}

fn acknowledge(test: &mut BrokerTest, client: &str, count: usize) {
    let state = test.client(client);
    let (channel, count) = (state.channel, count.min(state.held.len()));
    let last = state.held.drain(..count).next_back();
    if let Some(last) = last {
        test.broker.ack(test.now, channel, last.delivery_tag, true).unwrap();
    }
    test.client(client).inbox.clear();
}

fn is_held(test: &mut BrokerTest, client: &str) -> bool {
    let connection = test.client(client).connection;
    test.broker.is_held(connection)
}

fn play(test: &mut BrokerTest, load: &Load, ms: u64) -> Played {
    let mut played = Played { published: vec![0; load.publishers.len()], held_ms: 0 };
    let mut held_ms = vec![0; load.publishers.len()];
    let body = Bytes::from(vec![b'm'; load.body_bytes]);
    for at in 0..ms {
        for (n, publisher) in load.publishers.iter().enumerate() {
            for _ in 0..load.offered {
                if is_held(test, publisher) {
                    break;
                }
                publish_body(test, publisher, "q", body.clone());
                played.published[n] += 1;
            }
        }
        if at % load.taken_every_ms == 0 {
            for consumer in load.consumers {
                acknowledge(test, consumer, load.taken);
            }
        }
        test.wait(1);
        for (n, publisher) in load.publishers.iter().enumerate() {
            held_ms[n] = if is_held(test, publisher) { held_ms[n] + 1 } else { 0 };
            played.held_ms = played.held_ms.max(held_ms[n]);
        }
    }
    played
}

fn ready(test: &BrokerTest) -> u64 {
    test.broker.queue("/", "q").unwrap().messages_ready
}

#[test]
fn publishers_follow_consumers_that_do_nothing_but_take() {
    let mut test = new_test();
    consume(&mut test, "reader");
    let load = Load {
        body_bytes: 1,
        publishers: &["p1", "p2"],
        consumers: &["reader"],
        offered: 100,
        taken: 20,
        taken_every_ms: 1,
    };
    play(&mut test, &load, 500);
    let before = ready(&test);
    let played = play(&mut test, &load, 2_000);
    let taken = 2_000 * 20;
    assert!(ready(&test) <= before.max(2 * CROWDED), "{} wait, then {}", before, ready(&test));
    assert!(ready(&test) >= CROWDED / 4, "the consumers never run dry");
    assert!(played.total() > taken * 3 / 4 && played.total() < taken * 5 / 4, "{played:?}");
    let (least, most) = (played.published.iter().min(), played.published.iter().max());
    assert!(*least.unwrap() * 4 > *most.unwrap() * 3, "{played:?}: each has its share");
    assert!(played.held_ms <= HELD_MS_MAX, "{played:?}");
    assert!(test.broker.overview().counters.slowed > 100);
}

/// Plays a second of publishing, a gibibyte if the broker lets it, into a queue whose consumer takes so many bodies of so many
/// bytes in each so many milliseconds. Returns how many were published, and how many bytes wait.
fn play_large(body_bytes: usize, taken: usize, taken_every_ms: u64) -> (u64, u64) {
    let mut test = new_test();
    consume(&mut test, "reader");
    let load = Load {
        body_bytes,
        publishers: &["p"],
        consumers: &["reader"],
        offered: 1024 * 1024 / body_bytes,
        taken,
        taken_every_ms,
    };
    play(&mut test, &load, 500);
    let played = play(&mut test, &load, 1_000);
    (played.total(), ready(&test) * body_bytes as u64)
}

#[test]
fn a_few_large_bodies_crowd_a_queue_as_many_small_ones_do() {
    for (what, body_bytes, taken, taken_every_ms) in
        [("many a second", 64 * 1024, 4, 1), ("few, but many bytes", 1024 * 1024, 1, 3)]
    {
        let (published, waits) = play_large(body_bytes, taken, taken_every_ms);
        let taken = 1_000 / taken_every_ms * taken as u64;
        assert!(published > taken * 3 / 4 && published < taken * 5 / 4, "{what}: {published}");
        assert!(waits <= 4 * CROWDED_BYTES, "{what}: {waits} bytes wait");
        assert!(waits >= CROWDED_BYTES / 4, "{what}: the consumer never runs dry");
    }
}

#[test]
fn who_takes_large_bodies_slowly_holds_nobody_back() {
    let (published, _) = play_large(64 * 1024, 1, 4);
    assert_eq!(published, 16_000);
}

#[test]
fn consumers_with_work_of_their_own_hold_nobody_back() {
    let mut test = new_test();
    consume(&mut test, "worker");
    let load = Load {
        body_bytes: 1,
        publishers: &["p"],
        consumers: &["worker"],
        offered: 100,
        taken: 1,
        taken_every_ms: 4,
    };
    let played = play(&mut test, &load, 1_000);
    assert_eq!(played.total(), 100_000);
}

#[test]
fn a_queue_without_consumers_holds_nobody_back() {
    let mut test = new_test();
    let (publishers, consumers) = (&["p"], &[]);
    let body_bytes = 1;
    let load =
        Load { body_bytes, publishers, consumers, offered: 100, taken: 0, taken_every_ms: 1 };
    assert_eq!(play(&mut test, &load, 1_000).total(), 100_000);
}

#[test]
fn who_acknowledges_too_is_never_held_back() {
    let mut test = new_test();
    consume(&mut test, "both");
    let load = Load {
        body_bytes: 1,
        publishers: &["both"],
        consumers: &["both"],
        offered: 100,
        taken: 20,
        taken_every_ms: 1,
    };
    assert_eq!(play(&mut test, &load, 1_000).total(), 100_000);
}

/// One that publishes right behind its acknowledgement has nothing unacknowledged just then.
#[test]
fn whose_acknowledgements_stand_behind_publishes_is_not_held_back() {
    let mut test = new_test();
    let channel = test.client("worker").channel;
    test.broker.set_prefetch(test.now, channel, 1, false);
    let request = Consume { queue: String::from("q"), ..Consume::default() };
    test.broker.consume(test.now, channel, &request).unwrap();
    (0..2 * CROWDED).for_each(|_| publish_body(&mut test, "owner", "q", Bytes::from_static(b"m")));
    for _ in 0..500 {
        for _ in 0..4 {
            acknowledge(&mut test, "worker", 1);
            assert!(!is_held(&mut test, "worker"));
            publish_body(&mut test, "worker", "q", Bytes::from_static(b"m"));
            test.settle();
        }
        test.wait(1);
    }
}

#[test]
fn who_waits_for_answers_is_held_back_as_others_are() {
    let mut test = new_test();
    consume(&mut test, "reader");
    declare(&mut test, "owner", "answers", false);
    let channel = test.client("asks").channel;
    let answers = Consume { queue: String::from("answers"), no_ack: true, ..Consume::default() };
    test.broker.consume(test.now, channel, &answers).unwrap();
    let load = Load {
        body_bytes: 1,
        publishers: &["asks"],
        consumers: &["reader"],
        offered: 100,
        taken: 20,
        taken_every_ms: 1,
    };
    play(&mut test, &load, 500);
    assert!(play(&mut test, &load, 1_000).total() < 20_000 * 5 / 4);
}

#[test]
fn whatever_becomes_of_the_queue_publishers_are_resumed() {
    type End = fn(&mut BrokerTest);
    let ends: [(&str, End); 4] = [
        ("nothing", |_| {}),
        ("its consumer goes", |test| {
            let (now, connection) = (test.now, test.client("reader").connection);
            test.broker.close_connection(now, connection);
        }),
        ("it is purged", |test| {
            let channel = test.client("owner").channel;
            test.broker.purge_queue(test.now, channel, "q").unwrap();
        }),
        ("it is deleted", |test| {
            let channel = test.client("owner").channel;
            test.broker.delete_queue(test.now, channel, "q", false, false).unwrap();
        }),
    ];
    for (what, end) in ends {
        let mut test = new_test();
        consume(&mut test, "reader");
        let load = Load {
            body_bytes: 1,
            publishers: &["p"],
            consumers: &["reader"],
            offered: 100,
            taken: 20,
            taken_every_ms: 1,
        };
        play(&mut test, &load, 500);
        let waits = (0..100).any(|_| {
            play(&mut test, &load, 1);
            is_held(&mut test, "p")
        });
        assert!(waits, "{what}: it is held back first");
        test.resumed.clear();
        end(&mut test);
        test.wait(HELD_MS_MAX);
        let connection = test.client("p").connection;
        assert!(test.resumed.contains(&connection), "{what}");
        assert!(!is_held(&mut test, "p"), "{what}");
        test.wait(1_000);
        assert_eq!(test.broker.deadline(), None, "{what}: nothing is left to wait for");
    }
}
