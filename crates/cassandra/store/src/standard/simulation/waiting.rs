//! Receives that wait: how often the queue's head is read for them, and how late they are answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quelea_sqs_protocol::{NewMessage, QueueFacts, Receive, Received};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::chaos::Chaos;
use super::front_end::FrontEnd;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::standard::Standard;
use crate::standard::content::{Content, NewRow, Timed};
use crate::standard::row_write::RowWrite;
use crate::standard::tables::List;

/// Longer than any of these runs.
const HIDDEN_MS: u64 = 12 * 3_600_000;

const SECOND: Duration = Duration::from_secs(1);

/// So late is what becomes visible without a word, where others are heard and where they are not, and a little for the reads.
const LATE_MAX: Duration = Duration::from_millis(400 + 100);

/// So late is what a nudge was to announce that is lost.
const LATE_WITHOUT_NUDGE_MAX: Duration = Duration::from_millis(1_400 + 100);

/// Returns three front-ends that have polled the queue for a while; they are heard if their hearts
/// beat.
async fn polled(are_heard: bool) -> (Arc<StandardSimulation>, Vec<Arc<FrontEnd>>) {
    let simulation = Arc::new(StandardSimulation::new(Chaos::NONE).await);
    if are_heard {
        tokio::spawn(simulation.clone().keep_hearts_beating());
    }
    let front_ends = simulation.front_ends();
    for front_end in &front_ends {
        tokio::spawn(poll_on(front_end.clone(), simulation.clone()));
    }
    // So that there is a part of the index to be read.
    let first = body(&simulation, Duration::ZERO, SECOND);
    send(&front_ends[0], &simulation.queue, first, 0).await;
    sleep(30 * SECOND).await;
    for front_end in &front_ends {
        let queue = front_end.standard.queue(&simulation.queue).await.unwrap();
        assert_eq!(front_end.standard.peers.is_nudged(queue.generation), are_heard);
    }
    (simulation, front_ends)
}

/// Long polls, one after the other. A body is the time at which it is to be received, from the beginning of the run on; another one is
/// that it may come late by that time.
async fn poll_on(front_end: Arc<FrontEnd>, simulation: Arc<StandardSimulation>) {
    loop {
        let receive = Receive {
            max: 10,
            visibility_timeout_ms: HIDDEN_MS,
            wait_ms: 20_000,
            attempt_id: None,
        };
        let received = front_end.standard.receive(&simulation.queue, receive).await.unwrap();
        for Received { body, .. } in received {
            let [due, late_max] = times(&body);
            let late = simulation.began.elapsed().saturating_sub(due);
            assert!(late <= late_max, "it came {late:?} late");
            simulation.history().deleting(String::from_utf8_lossy(&body).into_owned());
        }
    }
}

/// Returns a body that says when it is due, and how late it may be.
fn body(simulation: &StandardSimulation, after: Duration, late_max: Duration) -> Bytes {
    let due = simulation.began.elapsed() + after;
    format!("{} {} {}", due.as_micros(), late_max.as_micros(), fastrand::u64(..)).into()
}

fn times(body: &Bytes) -> [Duration; 2] {
    let text = String::from_utf8_lossy(body).into_owned();
    let mut times = text.split(' ').map(|us| Duration::from_micros(us.parse().unwrap()));
    [times.next().unwrap(), times.next().unwrap()]
}

async fn send(front_end: &FrontEnd, facts: &Arc<QueueFacts>, body: Bytes, delay_ms: u64) {
    let message = NewMessage { body, delay_ms: Some(delay_ms), ..NewMessage::default() };
    front_end.standard.send(facts, vec![message]).await.unwrap().remove(0).unwrap();
}

/// Puts a message into the queue as if its nudges were lost.
async fn send_without_a_word(front_end: &FrontEnd, facts: &QueueFacts, body: Bytes) {
    let standard = &front_end.standard;
    let now_us = standard.clock.now_us();
    let queue = standard.queue(facts).await.unwrap();
    let bucket = queue.place_entry(now_us, now_us, standard.peers.writers());
    put(standard, facts, body, bucket).await;
}

/// Puts a message that is visible now into a bucket, and says it to nobody.
pub(super) async fn put(
    standard: &Standard,
    facts: &QueueFacts,
    body: Bytes,
    bucket: Bucket,
) -> Entry {
    let queue = standard.queue(facts).await.unwrap();
    let rows = standard.rows(facts, &queue);
    let (now_us, id) = (standard.clock.now_us(), standard.clock.new_message_id());
    let content = Content { body, ..Content::default() };
    let new = NewRow { bucket, id, written_at_us: now_us, content, ttl_s: 10_000 };
    let row =
        Entry { message: id, bucket, body: bucket, ..crate::entry::entry_for_tests(now_us, 1) };
    let entry = RowWrite::InsertEntry(Timed { row, ttl_s: 10_000 });
    rows.tables.list(rows.of, List::Entries, vec![bucket], now_us).await.unwrap();
    standard.peers.listed(queue.generation, &[bucket]);
    for written in rows.write(vec![RowWrite::InsertMessage(Box::new(new)), entry]).await {
        written.unwrap();
    }
    row
}

#[test]
fn a_queue_that_nobody_sends_to_is_read_seldom_where_all_others_are_heard() {
    for (are_heard, reads_per_s) in [(true, 1.0..1.4), (false, 2.4..3.4)] {
        in_virtual_time(async {
            let (simulation, front_ends) = polled(are_heard).await;
            let reads = || simulation.common.cluster.head_reads.load(Ordering::Relaxed);
            let before = reads();
            sleep(150 * SECOND).await;
            let of_one = (reads() - before) as f64 / 150.0 / front_ends.len() as f64;
            assert!(reads_per_s.contains(&of_one), "{of_one} reads a second");
        });
    }
}

#[test]
fn what_is_delayed_comes_no_later_where_all_others_are_heard() {
    for are_heard in [true, false] {
        in_virtual_time(async {
            let (simulation, front_ends) = polled(are_heard).await;
            for number in 0..300 {
                let delay = SECOND * fastrand::u32(1..=3);
                let body = body(&simulation, delay, LATE_MAX);
                let from = &front_ends[number % front_ends.len()];
                send(from, &simulation.queue, body, delay.as_millis() as u64).await;
                sleep(Duration::from_millis(fastrand::u64(..5_000))).await;
            }
            sleep(10 * SECOND).await;
            assert_eq!(simulation.history().deletions(), 300 + 1);
        });
    }
}

#[test]
fn what_nobody_announces_is_late_by_no_more_than_the_longest_pause() {
    in_virtual_time(async {
        let (simulation, front_ends) = polled(true).await;
        for number in 0..300 {
            let body = body(&simulation, Duration::ZERO, LATE_WITHOUT_NUDGE_MAX);
            send_without_a_word(&front_ends[number % 3], &simulation.queue, body).await;
            sleep(Duration::from_millis(fastrand::u64(..5_000))).await;
        }
        sleep(10 * SECOND).await;
        assert_eq!(simulation.history().deletions(), 300 + 1);
    });
}

/// Whoever waits does so for messages of before the purge, and is not nudged about those that come after it.
#[test]
fn what_is_sent_after_a_purge_comes_as_soon_as_before() {
    in_virtual_time(async {
        let (simulation, front_ends) = polled(true).await;
        for number in 0..30 {
            let front_end = &front_ends[number % front_ends.len()];
            let (answer, answered) = oneshot::channel();
            simulation.purge(front_end, answer).await;
            answered.await.unwrap().unwrap();
            let began = Instant::now();
            let body = body(&simulation, Duration::ZERO, LATE_MAX);
            send(front_end, &simulation.queue, body, 0).await;
            assert!(began.elapsed() < SECOND / 10);
            sleep(Duration::from_millis(fastrand::u64(10_000..30_000))).await;
        }
        assert_eq!(simulation.history().deletions(), 30 + 1);
    });
}
