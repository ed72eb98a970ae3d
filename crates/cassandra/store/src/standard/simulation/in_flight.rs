//! Counts of messages in flight, of which many are hidden for long.

use quelea_sqs_protocol::{Fault, Receive};
use uuid::Uuid;

use super::chaos::Chaos;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::bucket::Bucket;
use crate::entry::{Entry, entry_for_tests};
use crate::limits::IN_FLIGHT_BUCKETS_MAX;
use crate::standard::content::Timed;
use crate::standard::row_write::RowWrite;
use crate::standard::tables::List;

/// Seconds that each have a message.
const SECONDS: usize = 3 * IN_FLIGHT_BUCKETS_MAX;

/// Receives from a queue in which the first of the messages that become visible later are in flight, and the others are delayed.
async fn receive_beside(in_flight: usize, in_flight_max: usize) -> Result<usize, Fault> {
    let chaos = Chaos { front_ends: 1, in_flight_max, ..Chaos::NONE };
    let simulation = StandardSimulation::new(chaos).await;
    let (standard, facts) = (simulation.any_front_end().standard.clone(), &simulation.queue);
    let queue = standard.queue(facts).await.unwrap();
    let (rows, now_us) = (standard.rows(facts, &queue), standard.clock.now_us());
    let mut buckets = Vec::new();
    for number in 0..SECONDS {
        let visible_at_us = now_us + (number as i64 + 60) * 1_000_000;
        let bucket = Bucket::holding(visible_at_us, 0);
        let receive_count = i32::from(number < in_flight);
        let message = Uuid::from_u128(number as u128);
        let row = Entry { bucket, receive_count, message, ..entry_for_tests(visible_at_us, 1) };
        let insert = RowWrite::InsertEntry(Timed { row, ttl_s: 10_000 });
        rows.write(vec![insert]).await.remove(0).unwrap();
        buckets.push(bucket);
    }
    rows.tables.list(rows.of, List::Entries, buckets, now_us).await.unwrap();
    queue.in_flight.delivered(in_flight_max);
    let receive = Receive { max: 1, visibility_timeout_ms: 1_000, wait_ms: 0, attempt_id: None };
    let received = standard.receive(facts, receive).await?;
    Ok(received.len())
}

#[test]
fn receives_are_refused_however_far_ahead_messages_are_hidden() {
    in_virtual_time(async {
        let limit = SECONDS - IN_FLIGHT_BUCKETS_MAX / 2;
        assert_eq!(receive_beside(SECONDS, limit).await, Err(Fault::OverLimit { limit }));
    });
}

#[test]
fn messages_that_are_delayed_do_not_count_as_in_flight() {
    in_virtual_time(async {
        let limit = SECONDS - IN_FLIGHT_BUCKETS_MAX / 2;
        assert_eq!(receive_beside(IN_FLIGHT_BUCKETS_MAX, limit).await, Ok(0));
    });
}
