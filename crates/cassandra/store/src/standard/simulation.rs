//! Standard queues over a model of Cassandra, in virtual time: the product's own code, from the calls down to `tables.rs`, at three
//! front-ends that crash, stop and wake, with clocks that differ and datagrams that are lost; three replicas that
//! answer late, are away, or forget what they missed. `QUELEA_SEED=n` repeats a run, `QUELEA_SEEDS=n` plays as many,
//! `QUELEA_TRACE_MESSAGE=id` prints what is written of one message.

mod chaos;
mod clients;
mod cluster;
mod deletions;
mod expired;
mod forged_receipts;
mod front_end;
mod history;
mod hung_up;
mod in_flight;
mod long_moves;
mod missing;
mod model_tables;
mod moving;
mod operators;
mod process;
mod queue_rows;
mod replica;
mod standard_simulation;
mod sweeps;
mod unreadable;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chaos::{Chaos, Outcome, Reread};
use cluster::Mishap;
use quelea_sqs_protocol::{Consistency, Fault, NewMessage, QueueFacts, ReceiptOutcome, Receive};
use quelea_testkit::{Seed, seeds};
use standard_simulation::{StandardSimulation, in_virtual_time, play};
use tokio::time::sleep;

use crate::entry::Entry;
use crate::standard::Standard;
use crate::standard::content::Timed;
use crate::standard::receipt::Receipt;
use crate::standard::row_write::RowWrite;

const SEEDS: u64 = 100;

fn play_all(seeds: u64, chaos: Chaos) -> (u64, Outcome) {
    let (mut played, mut all) = (0, Outcome::default());
    seeds::for_each(0..seeds, |seed| {
        let outcome = play(seed, chaos);
        assert!(outcome.faults.is_empty(), "{:#?}", outcome.faults);
        played += 1;
        all.add(&outcome);
    });
    println!("{played} seeds: {all:?}");
    (played, all)
}

/// Returns whether one of the seeds has something wrong.
fn is_found_out(chaos: Chaos) -> bool {
    (0..SEEDS).any(|seed| !play(Seed(seed), chaos).faults.is_empty())
}

#[test]
fn nothing_is_lost_whatever_fails() {
    let (played, all) = play_all(SEEDS, Chaos::ALL);
    if played >= SEEDS / 2 {
        assert!(all.crashes > played && all.pauses > played, "front-ends end and stop");
        assert!(all.late_writes > 10 * played, "replicas hear late of what was written");
        assert!(all.refused > 0, "and calls fail");
        assert!(all.received > all.confirmed && all.confirmed > 50 * played);
        assert!(all.dead_letters > 0);
        assert!(all.duplicates * 20 <= all.received, "{} of {}", all.duplicates, all.received);
    }
}

#[test]
fn without_failures_hardly_anything_comes_twice() {
    let (_, all) = play_all(SEEDS, Chaos::NONE);
    assert_eq!(all.refused, 0);
    assert!(all.duplicates * 200 <= all.received, "{} of {}", all.duplicates, all.received);
}

#[test]
fn one_front_end_alone_gives_nothing_twice() {
    let (_, all) = play_all(SEEDS, Chaos { front_ends: 1, ..Chaos::NONE });
    assert_eq!((all.refused, all.duplicates), (0, 0));
}

/// What was there before is gone; what comes later is not lost, though other front-ends hear late of it.
#[test]
fn a_purge_takes_what_was_there_and_nothing_that_comes_later() {
    for chaos in [Chaos::NONE, Chaos::ALL] {
        let (played, all) = play_all(SEEDS / 2, Chaos { purges: true, ..chaos });
        assert!(all.purges > 0 && all.confirmed > 50 * played, "{all:?}");
    }
}

/// A dead letter that is moved back is a new message; whoever moves it may end, or stop, in the middle.
#[test]
fn dead_letters_that_are_moved_back_are_not_lost() {
    for chaos in [Chaos::NONE, Chaos::ALL] {
        let (played, all) = play_all(SEEDS / 2, Chaos { moves: true, ..chaos });
        // With front-ends whose buckets take three rows a task needs more requests, of which some fail.
        assert!(all.copies > played && all.confirmed > 50 * played, "{all:?}");
    }
}

/// With the paper's consistency, if no replica forgets what it missed. It takes ten minutes until that is sure.
#[test]
fn one_replica_is_enough_where_the_others_hear_later() {
    let consistency = Consistency::One;
    let (played, all) =
        play_all(SEEDS / 25, Chaos { consistency, forgetting: false, ..Chaos::ALL });
    assert!(all.confirmed > 50 * played);
}

/// Sends one message to the queue by a front-end. Returns that, and the queue.
async fn sent_alone(simulation: &StandardSimulation) -> (Arc<Standard>, Arc<QueueFacts>) {
    let (standard, facts) = (simulation.any_front_end().standard.clone(), simulation.queue.clone());
    let message = NewMessage { body: "body".into(), ..NewMessage::default() };
    standard.send(&facts, vec![message]).await.unwrap().remove(0).unwrap();
    (standard, facts)
}

fn hidden_for_a_second(wait_ms: u64) -> Receive {
    Receive { max: 10, visibility_timeout_ms: 1_000, wait_ms, attempt_id: None }
}

/// Two entries of a message are left behind by a change of its visibility that was broken off.
#[test]
fn a_message_with_two_entries_comes_once_and_is_not_lost() {
    in_virtual_time(async {
        let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
        let (standard, facts) = sent_alone(&simulation).await;
        let receive = hidden_for_a_second(0);
        let received = standard.receive(&facts, receive.clone()).await.unwrap();
        let newer = Receipt::decode(&received[0].delivery).unwrap().entry;
        let (visible_at_us, written_at_us) =
            (newer.visible_at_us - 400_000, newer.written_at_us - 2);
        let older = Entry { visible_at_us, written_at_us, ..newer };
        let queue = standard.queue(&facts).await.unwrap();
        let insert = RowWrite::InsertEntry(Timed { row: older, ttl_s: 1_000 });
        standard.rows(&facts, &queue).write(vec![insert]).await.remove(0).unwrap();
        for _ in 0..3 {
            sleep(Duration::from_secs(2)).await;
            let received = standard.receive(&facts, receive.clone()).await.unwrap();
            assert_eq!(received.len(), 1);
        }
    });
}

/// They would have one timestamp, and the message two places.
#[test]
fn of_two_changes_of_a_message_in_one_batch_the_last_counts() {
    in_virtual_time(async {
        let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
        let (standard, facts) = sent_alone(&simulation).await;
        let receive = Receive { visibility_timeout_ms: 600_000, ..hidden_for_a_second(0) };
        let received = standard.receive(&facts, receive.clone()).await.unwrap().remove(0);
        let changes = [700_000, 0, 3_000].map(|ms| (received.delivery.clone(), ms));
        let outcomes = standard.change_visibility(&facts, changes.to_vec()).await.unwrap();
        assert_eq!(outcomes, [ReceiptOutcome::Done; 3]);
        let mut came = Vec::new();
        for second in 0..20 {
            let received = standard.receive(&facts, receive.clone()).await.unwrap();
            came.extend(received.iter().map(|_| second));
            sleep(Duration::from_secs(1)).await;
        }
        assert!(matches!(came[..], [2..5]), "{came:?}");
        sleep(Duration::from_secs(590)).await;
        assert_eq!(standard.receive(&facts, receive).await.unwrap().len(), 1, "as it was received");
    });
}

/// What a reception has written took so long that readers may have passed it, and could not be written again.
#[test]
fn a_reception_that_is_written_late_and_not_again_loses_nothing() {
    for failures in [1, 20] {
        in_virtual_time(async {
            let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
            let (standard, facts) = sent_alone(&simulation).await;
            simulation.common.cluster.have([Mishap::Late(Duration::from_secs(6))]);
            simulation.common.cluster.have((0..failures).map(|_| Mishap::Fails));
            let receive = hidden_for_a_second(1_000);
            let mut received = 0;
            for _ in 0..20 {
                received +=
                    standard.receive(&facts, receive.clone()).await.map_or(0, |all| all.len());
            }
            assert!(received > 1, "it comes, and again when it was not deleted");
        });
    }
}

/// Reads are answered: a disk that is full refuses writes alone.
#[test]
fn a_receive_whose_entries_are_not_written_is_refused_at_once() {
    in_virtual_time(async {
        let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
        let (standard, facts) = sent_alone(&simulation).await;
        for _ in 1..30 {
            sent_alone(&simulation).await;
        }
        let receive = Receive { max: 1, ..hidden_for_a_second(0) };
        const FAILURES: usize = 5;
        simulation.common.cluster.have([Mishap::Fails; FAILURES]);
        for _ in 0..FAILURES {
            let refused = standard.receive(&facts, receive.clone()).await;
            assert!(matches!(refused, Err(Fault::Unavailable(_))), "{refused:?}");
        }
        let mut ids = BTreeSet::new();
        for _ in 0..30 {
            let receive = Receive { visibility_timeout_ms: 600_000, ..receive.clone() };
            let received = standard.receive(&facts, receive).await.unwrap().remove(0);
            ids.insert(received.message_id);
        }
        assert_eq!(ids.len(), 30);
    });
}

/// Where too few replicas answer, confirmed messages are lost.
#[test]
fn too_few_replicas_are_found_out() {
    assert!(is_found_out(Chaos { is_quorum: false, ..Chaos::ALL }));
}

/// Where front-ends go on with what they once knew of a queue, what is sent after a purge is.
#[test]
fn front_ends_that_never_read_a_queue_again_are_found_out() {
    assert!(is_found_out(Chaos { purges: true, reread: Reread::Never, ..Chaos::ALL }));
}

/// Where they read again only after half a minute, though they do not hear each other, it is, too.
#[test]
fn front_ends_that_trust_whomever_they_do_not_hear_are_found_out() {
    assert!(is_found_out(Chaos { purges: true, reread: Reread::AsIfHeard, ..Chaos::ALL }));
}

/// Where what comes last counts, instead of what has the later timestamp, they are, too.
#[test]
fn timestamps_that_do_not_count_are_found_out() {
    assert!(is_found_out(Chaos { is_by_timestamp: false, ..Chaos::ALL }));
}
