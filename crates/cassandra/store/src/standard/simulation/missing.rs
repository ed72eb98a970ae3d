//! Messages that cannot be had for a while, with others behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use quelea_sqs_protocol::{Consistency, QueueFacts, Receive, Received};
use tokio::time::{Instant, sleep, timeout};

use super::chaos::Chaos;
use super::process::lock;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use super::unreadable::alone;
use super::waiting::put;
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::{CLAIM_MS, READ_ROWS_MAX, RECEIVE_LATE_MS_MAX};
use crate::standard::Standard;
use crate::standard::row_write::RowWrite;
use crate::standard::tables::List;

const SECOND: Duration = Duration::from_secs(1);

/// Puts a message into the bucket of the present second.
async fn put_now(standard: &Standard, facts: &QueueFacts, body: &'static str) -> Entry {
    let bucket = Bucket::holding(standard.clock.now_us(), 0);
    let entry = put(standard, facts, body.into(), bucket).await;
    standard.queue(facts).await.unwrap().nudged(bucket);
    entry
}

/// Receives one message within that time, if there is one, and deletes it.
async fn take_one(
    standard: &Arc<Standard>,
    facts: &Arc<QueueFacts>,
    wait_ms: u64,
) -> Option<Received> {
    let receive = Receive { max: 1, visibility_timeout_ms: 60_000, wait_ms, attempt_id: None };
    let received = standard.receive(facts, receive).await.unwrap().pop()?;
    standard.delete(facts, vec![received.delivery.clone()]).await.unwrap();
    Some(received)
}

/// Each second's message is in a bucket of its own, and gone when the next one comes.
#[test]
fn those_behind_one_are_received_however_far_they_are() {
    in_virtual_time(async {
        let (simulation, standard, facts) = alone().await;
        let unanswered = &simulation.common.cluster.unanswered;
        let missing = put_now(&standard, &facts, "missing").await.message;
        lock(unanswered).insert(missing);
        for second in 0..800 {
            sleep(SECOND).await;
            put_now(&standard, &facts, "behind").await;
            let received = take_one(&standard, &facts, 20_000).await;
            assert!(received.is_some_and(|one| one.body == "behind"), "number {second}");
        }
        lock(unanswered).clear();
        // The mark has waited for it.
        let received = take_one(&standard, &facts, 20_000).await;
        assert_eq!(received.map(|one| one.message_id), Some(missing.to_string()));
    });
}

/// Puts so many messages into the bucket of the present second, in a moment.
async fn put_many(standard: &Standard, facts: &QueueFacts, count: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for _ in 0..count / 100 {
        entries.extend(join_all((0..100).map(|_| put_now(standard, facts, "missing"))).await);
    }
    entries
}

/// More than a read sees at once, whose partition does not answer.
#[test]
fn those_behind_very_many_are_received_as_well() {
    in_virtual_time(async {
        let (simulation, standard, facts) = alone().await;
        let unanswered = &simulation.common.cluster.unanswered;
        let missing = put_many(&standard, &facts, READ_ROWS_MAX + 200).await;
        lock(unanswered).extend(missing.iter().map(|entry| entry.message));
        for number in 0..50 {
            sleep(SECOND).await;
            put_now(&standard, &facts, "behind").await;
            let received = take_one(&standard, &facts, 5_000).await;
            assert!(received.is_some_and(|one| one.body == "behind"), "number {number}");
        }
        lock(unanswered).clear();
        for number in 0..missing.len() {
            let received = take_one(&standard, &facts, 5_000).await;
            assert!(received.is_some_and(|one| one.body == "missing"), "number {number}");
        }
    });
}

/// For as long as they may still come, where one replica answers.
#[test]
fn those_behind_many_that_are_not_stored_are_received_as_well() {
    in_virtual_time(async {
        let chaos = Chaos { front_ends: 1, consistency: Consistency::One, ..Chaos::NONE };
        let simulation = StandardSimulation::new(chaos).await;
        let (standard, facts) = (simulation.any_front_end().standard.clone(), &simulation.queue);
        let queue = standard.queue(facts).await.unwrap();
        let missing = put_many(&standard, facts, 400).await;
        let gone =
            missing.iter().map(|entry| RowWrite::DeleteMessage(*entry, entry.deleted_at_us()));
        for gone in standard.rows(facts, &queue).write(gone.collect()).await {
            gone.unwrap();
        }
        for number in 0..100 {
            sleep(SECOND).await;
            put_now(&standard, facts, "behind").await;
            let received = take_one(&standard, facts, 20_000).await;
            assert!(received.is_some_and(|one| one.body == "behind"), "number {number}");
        }
    });
}

/// The partition of each answers late that it does not answer.
#[test]
fn a_receive_is_answered_when_its_wait_ends_though_reads_go_on() {
    for patience in [3, 60].map(|seconds| SECOND * seconds) {
        in_virtual_time(async {
            let (simulation, standard, facts) = alone().await;
            let cluster = &simulation.common.cluster;
            *lock(&cluster.unanswered_after) = 2 * SECOND;
            for _ in 0..20 {
                let missing = put_now(&standard, &facts, "missing").await.message;
                lock(&cluster.unanswered).insert(missing);
                sleep(SECOND).await;
            }
            put_now(&standard, &facts, "behind").await;
            let began = Instant::now();
            // It hangs up, or waits for the answer.
            let received = timeout(patience, take_one(&standard, &facts, 5_000)).await;
            assert!(received.is_err() || received == Ok(None));
            let most = Duration::from_millis(5_000 + RECEIVE_LATE_MS_MAX) + 3 * SECOND;
            assert!(began.elapsed() < most, "{:?}", began.elapsed());
            sleep(3 * SECOND).await;
            let reads = cluster.head_reads.load(Ordering::Relaxed);
            sleep(60 * SECOND).await;
            assert_eq!(cluster.head_reads.load(Ordering::Relaxed), reads, "nobody waits");
            // Each goes on where the last one ended.
            let mut behind = None;
            for _ in 0..20 {
                behind = behind.or(take_one(&standard, &facts, 0).await);
            }
            assert!(behind.is_some_and(|one| one.body == "behind"));
        });
    }
}

#[test]
fn those_behind_what_others_take_do_not_wait() {
    in_virtual_time(async {
        let chaos = Chaos { front_ends: 2, ..Chaos::NONE };
        let simulation = Arc::new(StandardSimulation::new(chaos).await);
        tokio::spawn(simulation.clone().keep_hearts_beating());
        let [front_end, other] = &simulation.front_ends()[..] else { panic!("two") };
        let (standard, facts) = (&front_end.standard, &simulation.queue);
        let queue = standard.queue(facts).await.unwrap();
        let rows = standard.rows(facts, &queue);
        let taken = put_now(standard, facts, "taken").await;
        for _ in 0..20 {
            sleep(SECOND).await;
            let now_us = standard.clock.now_us();
            let empty = vec![Bucket::holding(now_us, 0)];
            rows.tables.list(rows.of, List::Entries, empty, now_us).await.unwrap();
        }
        put_now(standard, facts, "behind").await;
        standard.peers.polls(queue.generation);
        sleep(SECOND / 100).await;
        other.standard.peers.claim(queue.generation, &[taken]);
        sleep(SECOND / 100).await;
        let received = take_one(standard, facts, 0).await;
        assert!(received.is_some_and(|one| one.body == "behind"));
        // Whoever takes it does not go on.
        let received = take_one(standard, facts, CLAIM_MS + 1_000).await;
        assert!(received.is_some_and(|one| one.body == "taken"));
    });
}
