//! Front-ends find each other in Cassandra, and help each other by datagrams that may be lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{Fault, QueueFacts, Queues, Receive, Received};
use uuid::Uuid;

use crate::fifo::session;
use crate::hub::Hub;
use crate::site::{Site, message, queue, receive, receive_now, send, settings};

/// As long as a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same where it would come after half a minute even if nobody noticed that it is not heard.
const UNHEARD_PATIENCE: Duration = Duration::from_secs(20);

/// Connects front-ends of a keyspace of their own, so that those of other tests are not among them.
async fn front_ends(name: &str, count: usize, is_classic: bool) -> Vec<CassandraQueues> {
    let mut settings = CassandraSettings { is_classic, ..settings() };
    settings.keyspace.push_str(name);
    let mut front_ends = Vec::new();
    for _ in 0..count {
        front_ends.push(CassandraQueues::connect(&settings).await.unwrap());
    }
    front_ends
}

/// Each knows so many, itself included.
async fn know(front_ends: &[CassandraQueues], count: u64) {
    let began = Instant::now();
    while front_ends.iter().any(|one| one.peer_stats().front_ends != count) {
        assert!(began.elapsed() < PATIENCE, "{:?}", front_ends[0].peer_stats());
        for one in front_ends {
            one.beat().await.unwrap();
        }
    }
}

async fn joined(name: &str, count: usize, is_classic: bool) -> (Vec<CassandraQueues>, Arc<Hub>) {
    let (front_ends, hub) = (front_ends(name, count, is_classic).await, Arc::new(Hub::default()));
    for one in &front_ends {
        hub.join(one).await;
    }
    // First each says where it is reached, then each hears it of all.
    for one in front_ends.iter().chain(&front_ends) {
        one.beat().await.unwrap();
    }
    know(&front_ends, count as u64).await;
    (front_ends, hub)
}

#[test]
fn front_ends_know_who_is_alive_whatever_their_clocks_say() {
    Site::shared().runtime.block_on(async {
        let mut front_ends = front_ends("_alive", 3, false).await;
        front_ends[0].set_clock_wrong_by_us(3_600_000_000);
        front_ends[1].set_clock_wrong_by_us(-3_600_000_000);
        know(&front_ends, 3).await;
        let before = front_ends[0].requests();
        front_ends[0].beat().await.unwrap();
        let after = front_ends[0].requests();
        assert_eq!(after.peers, before.peers + 2, "a heartbeat is a write and a read");
        assert_eq!(after.messages, before.messages);
        // One that ends is gone at once, and stays so, though its clock was ahead.
        let gone = front_ends.swap_remove(0);
        gone.leave().await.unwrap();
        gone.beat().await.unwrap();
        know(&front_ends, 2).await;
        // One that dies goes with its row.
        drop(front_ends.pop());
        know(&front_ends, 1).await;
    });
}

#[test]
fn all_front_ends_have_one_key() {
    Site::shared().runtime.block_on(async {
        let front_ends = front_ends("_key", 3, false).await;
        let keys = futures_util::future::join_all(front_ends.iter().map(|one| one.cluster_key()));
        let keys = keys.await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
        assert!(keys.iter().all(|key| *key == keys[0] && *key != [0; 32]), "{keys:?}");
    });
}

/// Returns how long it takes from a send at one front-end to the answer of a long poll at another
/// that waits for long already.
async fn answered_after(
    one: &CassandraQueues,
    other: &CassandraQueues,
    facts: &Arc<QueueFacts>,
) -> Duration {
    let waiting = receive(other, facts, 30_000);
    let sending = async {
        // The poll has looked in vain, and pauses.
        let requests = || other.requests().messages + other.requests().upkeep;
        let (before, began) = (requests(), Instant::now());
        while requests() < before + 3 {
            assert!(began.elapsed() < PATIENCE);
            tokio::task::yield_now().await;
        }
        let sent = send(one, facts, "x").await.unwrap();
        (sent, Instant::now())
    };
    let (received, (sent, at)) = tokio::join!(waiting, sending);
    assert_eq!(received[0].message_id, sent);
    let took = at.elapsed();
    let deliveries = received.into_iter().map(|one| one.delivery).collect();
    other.delete(facts, deliveries).await.unwrap();
    took
}

#[test]
fn a_long_poll_is_told_of_a_message_at_another_front_end() {
    Site::shared().runtime.block_on(async {
        let (front_ends, hub) = joined("_nudges", 2, false).await;
        let [one, other] = front_ends.as_slice() else { unreachable!() };
        let facts = queue(one, "nudged", &[]).await;
        let mut took = Vec::new();
        for _ in 0..10 {
            took.push(answered_after(one, other, &facts).await);
        }
        took.sort_unstable();
        println!("nudged: {took:?}");
        assert!(other.peer_stats().nudges_heard > 0, "{:?}", other.peer_stats());
        assert_eq!(one.peer_stats().nudges_heard, 0, "nobody polls there");
        // A lost one costs the time until the next look, and nothing else.
        hub.cut(true);
        println!("not nudged: {:?}", answered_after(one, other, &facts).await);
    });
}

#[test]
fn a_change_holds_at_all_front_ends_when_it_is_answered() {
    Site::shared().runtime.block_on(async {
        let (front_ends, hub) = joined("_changes", 3, false).await;
        let facts = queue(&front_ends[0], "changed", &[]).await;
        for round in 0..30 {
            for one in &front_ends {
                one.facts(&facts.queue).await.unwrap().unwrap();
            }
            let changing = &front_ends[round % 3];
            let seen = changing.facts_now(&facts.queue).await.unwrap().unwrap();
            let timeout = format!("{}", 100 + round);
            let attributes = BTreeMap::from([("VisibilityTimeout".to_owned(), timeout.clone())]);
            changing.put_attributes(&seen, attributes).await.unwrap();
            for one in &front_ends {
                let facts = one.facts(&facts.queue).await.unwrap().unwrap();
                assert_eq!(facts.attributes.get("VisibilityTimeout"), Some(&timeout), "{round}");
            }
        }
        // Where nobody is heard a change is made all the same.
        hub.cut(true);
        let seen = front_ends[0].facts_now(&facts.queue).await.unwrap().unwrap();
        front_ends[0].put_attributes(&seen, BTreeMap::new()).await.unwrap();
        let facts = front_ends[1].facts_now(&facts.queue).await.unwrap().unwrap();
        assert_eq!(facts.attributes.get("VisibilityTimeout"), None);
        // Who hears nobody looks for itself, a moment later.
        let began = Instant::now();
        while front_ends[2].facts(&facts.queue).await.unwrap().unwrap().attributes
            != facts.attributes
        {
            assert!(began.elapsed() < UNHEARD_PATIENCE);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("seen unheard after {:?}", began.elapsed());
    });
}

/// Asks for a queue's facts until that time has passed; returns how often Cassandra was asked for them, or for the time.
async fn asked_in(one: &CassandraQueues, facts: &Arc<QueueFacts>, time: Duration) -> u64 {
    let (began, before) = (Instant::now(), one.requests().upkeep);
    while began.elapsed() < time {
        one.facts(&facts.queue).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    one.requests().upkeep - before
}

#[test]
fn a_queue_is_read_again_only_where_somebody_is_not_heard() {
    const TIME: Duration = Duration::from_secs(4);
    Site::shared().runtime.block_on(async {
        let (front_ends, hub) = joined("_heard", 3, false).await;
        let facts = queue(&front_ends[0], "heard", &[]).await;
        let began = Instant::now();
        while asked_in(&front_ends[1], &facts, TIME).await > 0 {
            assert!(began.elapsed() < PATIENCE);
        }
        hub.cut(true);
        assert!(asked_in(&front_ends[1], &facts, TIME).await > 1);
        assert!(!front_ends[1].peer_stats().hears_all);
    });
}

#[test]
fn datagrams_of_strangers_change_nothing() {
    Site::shared().runtime.block_on(async {
        let (front_ends, hub) = joined("_strangers", 2, false).await;
        let facts = queue(&front_ends[0], "strangers", &[]).await;
        for length in 0..200 {
            hub.inject(&vec![1; length]);
        }
        let sent = send(&front_ends[0], &facts, "x").await.unwrap();
        let received = receive(&front_ends[1], &facts, 30_000).await;
        assert_eq!(received[0].message_id, sent);
        know(&front_ends, 2).await;
    });
}

/// Receives and deletes one message after the other at a front-end until none is left. Returns
/// them, each with the time at which it came.
async fn drain(front_end: &CassandraQueues, facts: &Arc<QueueFacts>) -> Vec<(Instant, Received)> {
    let mut all = Vec::new();
    let mut empty = 0;
    while empty < 5 {
        let receive =
            Receive { max: 1, visibility_timeout_ms: 600_000, wait_ms: 200, attempt_id: None };
        let received = front_end.receive(facts, receive).await.unwrap();
        empty = if received.is_empty() { empty + 1 } else { 0 };
        for one in received {
            let delivery = one.delivery.clone();
            all.push((Instant::now(), one));
            front_end.delete(facts, vec![delivery]).await.unwrap();
        }
    }
    all
}

/// Returns how many messages were received more than once, and how many front-ends gave up.
async fn shared_out(name: &str, is_classic: bool) -> (usize, u64) {
    const MESSAGES: usize = 300;
    let (front_ends, _hub) = joined(name, 3, is_classic).await;
    let facts = queue(&front_ends[0], name, &[("OrderHint", "1")]).await;
    for _ in 0..MESSAGES / 10 {
        let messages = (0..10).map(|_| message("x")).collect();
        for outcome in front_ends[0].send(&facts, messages).await.unwrap() {
            outcome.unwrap();
        }
    }
    let drained = front_ends.iter().map(|one| drain(one, &facts));
    let drained = futures_util::future::join_all(drained).await;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, received) in drained.into_iter().flatten() {
        *times.entry(received.message_id).or_default() += 1;
    }
    assert_eq!(times.len(), MESSAGES, "nothing is lost");
    let duplicates = times.values().filter(|times| **times > 1).count();
    let yielded = front_ends.iter().map(|one| one.peer_stats().entries_yielded).sum();
    front_ends.iter().for_each(|one| println!("{:?}", one.peer_stats()));
    println!(
        "{name}: {duplicates} of {MESSAGES} were received twice, {yielded} were left to others"
    );
    (duplicates, yielded)
}

#[test]
fn three_receivers_at_three_front_ends_that_never_pause_hardly_get_duplicates() {
    Site::shared().runtime.block_on(async {
        let (duplicates, _) = shared_out("_claims", false).await;
        let (classic, _) = shared_out("_classic", true).await;
        // How many exactly is a matter of time on a busy machine, and the simulation's to say.
        assert!(duplicates * 10 <= 300, "{duplicates} of 300");
        assert!(classic > 4 * duplicates, "{classic} as in the paper, {duplicates} with claims");
    });
}

/// Takes away the entry of a message, as a failure might.
async fn lose_entry(keyspace: &str, message: &str) {
    let session = session().await;
    let query = format!(
        "SELECT generation, shard, start, level, visible_at FROM {keyspace}.entry WHERE message = ? ALLOW FILTERING"
    );
    let message = Uuid::parse_str(message).unwrap();
    let found = session.query_unpaged(query, (message,)).await.unwrap();
    let found = found.into_rows_result().unwrap();
    let key = found.single_row::<(Uuid, i16, i64, i8, i64)>().unwrap();
    let query = format!(
        "DELETE FROM {keyspace}.entry
         WHERE generation = ? AND shard = ? AND start = ? AND level = ? AND visible_at = ? AND message = ?"
    );
    let values = (key.0, key.1, key.2, key.3, key.4, message);
    session.query_unpaged(query, values).await.unwrap();
}

#[test]
fn a_message_without_an_entry_is_found_and_nothing_else_is_touched() {
    Site::shared().runtime.block_on(async {
        let front_end = front_ends("_sweep", 1, false).await.remove(0);
        let keyspace = format!("{}_sweep", settings().keyspace);
        let facts = queue(&front_end, "sweep", &[("VisibilityTimeout", "0")]).await;
        let lost = send(&front_end, &facts, "lost").await.unwrap();
        let deleted = send(&front_end, &facts, "deleted").await.unwrap();
        lose_entry(&keyspace, &lost).await;
        let received = receive(&front_end, &facts, 0).await;
        assert_eq!((received.len(), &received[0].message_id), (1, &deleted));
        front_end.delete(&facts, vec![received[0].delivery.clone()]).await.unwrap();
        let held = send(&front_end, &facts, "held").await.unwrap();
        let received = receive(&front_end, &facts, 7_200_000).await;
        assert_eq!((received.len(), &received[0].message_id), (1, &held));
        let before = front_end.requests();
        assert_eq!(front_end.sweep().await.unwrap(), 0, "it is too young");
        // As if half an hour had passed.
        front_end.set_clock_wrong_by_us(1_800_000_000);
        assert_eq!(receive_now(&front_end, &facts).await, []);
        assert_eq!(front_end.sweep().await.unwrap(), 1);
        let after = front_end.requests();
        assert!(after.sweep > before.sweep, "it is counted apart");
        let received = receive(&front_end, &facts, 7_200_000).await;
        assert_eq!((received.len(), &received[0].message_id), (1, &lost));
        assert_eq!(front_end.sweep().await.unwrap(), 0, "it is in flight");
        assert_eq!(receive_now(&front_end, &facts).await, []);
        // The sweep has a message deleted twice as little as once.
        front_end.delete(&facts, vec![received[0].delivery.clone()]).await.unwrap();
        assert_eq!(front_end.sweep().await.unwrap(), 0);
        assert_eq!(receive_now(&front_end, &facts).await, []);
    });
}

#[test]
fn a_message_behind_the_low_water_mark_is_found() {
    Site::shared().runtime.block_on(async {
        let front_ends = front_ends("_mark", 2, false).await;
        let [ahead, right] = front_ends.as_slice() else { unreachable!() };
        let facts = queue(right, "mark", &[("VisibilityTimeout", "0")]).await;
        // Its looks put the mark where the others still write.
        ahead.set_clock_wrong_by_us(1_800_000_000);
        let sent = send(ahead, &facts, "first").await.unwrap();
        let received = receive(ahead, &facts, 0).await;
        assert_eq!(received[0].message_id, sent);
        ahead.delete(&facts, vec![received[0].delivery.clone()]).await.unwrap();
        let began = Instant::now();
        let mut behind = send(right, &facts, "behind").await.unwrap();
        while !receive_now(ahead, &facts).await.is_empty() {
            assert!(began.elapsed() < PATIENCE);
            behind = send(right, &facts, "behind").await.unwrap();
        }
        ahead.leave().await.unwrap();
        right.leave().await.unwrap();
        drop(behind);
        let third = self::front_ends("_mark", 1, false).await.remove(0);
        know(std::slice::from_ref(&third), 1).await;
        third.set_clock_wrong_by_us(3_600_000_000);
        assert!(third.sweep().await.unwrap() >= 1);
        assert!(!receive(&third, &facts, 0).await.is_empty());
    });
}

#[test]
fn receives_are_refused_while_too_many_messages_are_in_flight() {
    Site::shared().runtime.block_on(async {
        let mut settings = CassandraSettings { in_flight_max: 20, ..settings() };
        settings.keyspace.push_str("_in_flight");
        let front_end = CassandraQueues::connect(&settings).await.unwrap();
        let facts = queue(&front_end, "in-flight", &[]).await;
        for _ in 0..3 {
            let messages = (0..10).map(|_| message("x")).collect();
            for outcome in front_end.send(&facts, messages).await.unwrap() {
                outcome.unwrap();
            }
        }
        let mut held = Vec::new();
        let refused = loop {
            let receive =
                Receive { max: 10, visibility_timeout_ms: 600_000, wait_ms: 0, attempt_id: None };
            match front_end.receive(&facts, receive).await {
                Ok(received) => held.extend(received),
                Err(fault) => break fault,
            }
            assert!(held.len() <= 30, "all were received");
        };
        assert_eq!(refused, Fault::OverLimit { limit: 20 });
        assert!((20..30).contains(&held.len()), "{}", held.len());
    });
}
