//! Sweeps of queues that are long, and of several at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quelea_sqs_protocol::{Consistency, NewMessage, QueueFacts, Receive};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::chaos::Chaos;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::bucket::Bucket;
use crate::database::For;
use crate::entry::Entry;
use crate::limits::{DEAD_AFTER_MS, SWEPT_AGE_MS_MIN};
use crate::peers::alive::FrontEnd;
use crate::standard::Standard;
use crate::standard::pace::Pace;
use crate::standard::sweeps::Sweeps;
use crate::standard::tables::{List, Of};

/// Messages of which one has lost its entry.
const ONE_LOST_OF: usize = 100;

/// Returns a simulation of one front-end and nobody else, and that front-end.
async fn alone() -> (StandardSimulation, Arc<Standard>) {
    let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
    let standard = simulation.any_front_end().standard.clone();
    (simulation, standard)
}

/// Sends so many messages, a hundred a second.
async fn fill(standard: &Arc<Standard>, facts: &Arc<QueueFacts>, messages: usize) {
    for _ in 0..messages / 100 {
        let new = || NewMessage { body: "body".into(), ..NewMessage::default() };
        let sent = standard.send(facts, (0..100).map(|_| new()).collect()).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
        sleep(Duration::from_secs(1)).await;
    }
}

/// Takes the entries of some messages away. Returns of how many.
async fn lose_some(standard: &Standard, facts: &QueueFacts) -> usize {
    let entries = all_entries(standard, facts).await;
    let lost: Vec<Entry> = entries.into_iter().step_by(ONE_LOST_OF).collect();
    let queue = standard.queue(facts).await.unwrap();
    let deleted = standard.rows(facts, &queue).delete_entries(&lost).await;
    assert!(deleted.iter().all(Result::is_ok));
    lost.len()
}

/// Returns all entries of a queue.
pub(super) async fn all_entries(standard: &Standard, facts: &QueueFacts) -> Vec<Entry> {
    let queue = standard.queue(facts).await.unwrap();
    let rows = standard.rows(facts, &queue);
    let mut entries: Vec<Entry> = Vec::new();
    let first = Bucket { start_s: 0, level: -1 };
    let listed = rows.tables.listed(rows.of, List::Entries, first, usize::MAX, For::Sweep);
    for bucket in listed.await.unwrap().buckets {
        entries.extend(rows.tables.entries(rows.of, bucket, 0, usize::MAX).await.unwrap());
    }
    entries
}

/// Sweeps one queue. Returns how many messages have an entry anew, and how many rows were read.
async fn sweep(
    simulation: &StandardSimulation,
    standard: &Arc<Standard>,
    facts: &QueueFacts,
) -> (usize, u64) {
    let rows = || simulation.common.cluster.swept_rows.load(Ordering::Relaxed);
    let (mut sweeps, before) = (Sweeps::new(standard, Pace::AT_ONCE), rows());
    sweeps.begin_round();
    sweeps.begin(standard, &facts.queue).await;
    sweeps.end_round();
    sweeps.end_all().await;
    (sweeps.restored(), rows() - before)
}

fn old() -> Duration {
    Duration::from_millis(2 * SWEPT_AGE_MS_MIN)
}

#[test]
fn a_sweep_reads_each_row_twice_at_most_however_long_the_queue_is() {
    for messages in [500, 5_000, 20_000] {
        in_virtual_time(async {
            let (simulation, standard) = alone().await;
            let facts = simulation.queue.clone();
            fill(&standard, &facts, messages).await;
            sleep(old()).await;
            let (restored, rows) = sweep(&simulation, &standard, &facts).await;
            assert_eq!(restored, 0, "nothing is missing");
            assert!(rows <= 2 * messages as u64 + 2_000, "{rows} rows of {messages} messages");
            let lost = lose_some(&standard, &facts).await;
            assert!(lost >= messages / ONE_LOST_OF / 2);
            let (restored, rows) = sweep(&simulation, &standard, &facts).await;
            assert_eq!(restored, lost);
            assert!(rows <= 4 * messages as u64 + 2_000, "{rows} rows of {messages} messages");
            assert_eq!(sweep(&simulation, &standard, &facts).await.0, 0, "they have entries");
            let stats = standard.sweeps.stats();
            assert_eq!((stats.swept, stats.broken_off), (3, 0));
            assert!(stats.ended_at_ms.abs_diff(standard.clock.now_ms()) < 10_000);
        });
    }
}

/// Their entries are all at other times than their messages.
#[test]
fn what_was_received_and_came_back_is_not_missing() {
    in_virtual_time(async {
        let (simulation, standard) = alone().await;
        let facts = simulation.queue.clone();
        fill(&standard, &facts, 1_000).await;
        sleep(old()).await;
        let receive =
            Receive { max: 10, visibility_timeout_ms: 3_600_000, wait_ms: 0, attempt_id: None };
        for _ in 0..50 {
            standard.receive(&facts, receive.clone()).await.unwrap();
        }
        assert_eq!(sweep(&simulation, &standard, &facts).await.0, 0);
        let lost = lose_some(&standard, &facts).await;
        assert_eq!(sweep(&simulation, &standard, &facts).await.0, lost);
    });
}

#[test]
fn a_short_queue_is_swept_while_a_long_one_is() {
    in_virtual_time(async {
        let (simulation, standard) = alone().await;
        let (long, short) = (simulation.queue.clone(), simulation.dead_letters.clone());
        fill(&standard, &long, 20_000).await;
        fill(&standard, &short, 100).await;
        sleep(old()).await;
        let lost = lose_some(&standard, &short).await;
        let (mut sweeps, began) = (Sweeps::new(&standard, Pace::slow(200)), Instant::now());
        for round in 0..2 {
            sweeps.begin_round();
            for facts in [&long, &short] {
                sweeps.begin(&standard, &facts.queue).await;
            }
            sweeps.end_round();
            sweeps.go_on_until(Instant::now() + Duration::from_secs(90)).await;
            assert_eq!(standard.sweeps.stats().swept, round + 1, "the short one, again");
            assert_eq!((sweeps.restored(), standard.sweeps.stats().ended_at_ms), (lost, 0));
        }
        sweeps.end_all().await;
        let took = began.elapsed();
        assert!(took > Duration::from_secs(200), "both are no faster than one: {took:?}");
        assert!(standard.sweeps.stats().ended_at_ms > 0, "now all queues were swept");
    });
}

/// As if its machine had been suspended: it goes on where the others were two hours ago.
#[test]
fn what_a_front_end_sends_that_was_suspended_is_found_by_the_sweep() {
    in_virtual_time(async {
        let (simulation, standard) = alone().await;
        let facts = simulation.queue.clone();
        let receive = || async {
            let receive =
                Receive { max: 10, visibility_timeout_ms: 1_000, wait_ms: 0, attempt_id: None };
            let received = standard.receive(&facts, receive).await.unwrap();
            let deliveries = received.iter().map(|one| one.delivery.clone()).collect();
            standard.delete(&facts, deliveries).await.unwrap();
            received.len()
        };
        let send = || async {
            let message = NewMessage { body: "body".into(), ..NewMessage::default() };
            standard.send(&facts, vec![message]).await.unwrap().remove(0).unwrap();
        };
        send().await;
        assert_eq!(receive().await, 1);
        sleep(6 * old()).await;
        // The head is at the present, and no partition of messages is listed.
        assert_eq!(receive().await, 0);
        assert_eq!(sweep(&simulation, &standard, &facts).await.0, 0);
        standard.clock.set_wrong_by_us(-6 * old().as_micros() as i64);
        send().await;
        let generation = standard.to_sweep(&facts.queue).await.unwrap().unwrap().generation;
        let of = Of { generation, consistency: Consistency::LocalQuorum };
        let first = Bucket { start_s: 0, level: 0 };
        let listed = async || {
            let page = standard.tables.listed(of, List::Messages, first, 10, For::Sweep).await;
            page.unwrap().buckets
        };
        assert_eq!(listed().await, [], "where it lies is not listed any more");
        standard.clock.set_wrong_by_us(0);
        assert_eq!(receive().await, 0, "it is behind the head");
        standard.suspect_listings();
        standard.list_bodies_again().await.unwrap();
        assert_eq!(listed().await.len(), 1);
        assert_eq!(sweep(&simulation, &standard, &facts).await.0, 1);
        // It is hidden for as long as somebody may have received it.
        sleep(Duration::from_secs(60)).await;
        assert_eq!(receive().await, 1);
    });
}

/// Both would give a message an entry, and each entry is a delivery.
#[test]
fn a_sweep_ends_where_the_queue_becomes_another_front_ends() {
    in_virtual_time(async {
        let (simulation, standard) = alone().await;
        let facts = simulation.queue.clone();
        fill(&standard, &facts, 1_000).await;
        sleep(old()).await;
        let lost = lose_some(&standard, &facts).await;
        let mut sweeps = Sweeps::new(&standard, Pace::slow(u32::MAX));
        sweeps.begin_round();
        sweeps.begin(&standard, &facts.queue).await;
        // Between its two readings of the index.
        sleep(Duration::from_secs(9)).await;
        let generation = standard.to_sweep(&facts.queue).await.unwrap().unwrap().generation;
        let mut ids = (0..).map(Uuid::from_u128);
        while standard.peers.is_owner(generation) {
            let row = FrontEnd { id: ids.next().unwrap(), address: None, beat: 1, version: 6 };
            standard.peers.observe(vec![row], Instant::now());
        }
        sweeps.end_round();
        sweeps.end_all().await;
        assert_eq!(sweeps.restored(), 0);
        sleep(Duration::from_millis(2 * DEAD_AFTER_MS)).await;
        assert_eq!(sweep(&simulation, &standard, &facts).await.0, lost);
    });
}
