//! Deletions by receipts from before a change of visibility.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Delivery, NewMessage, QueueFacts, ReceiptOutcome, Receive};
use tokio::time::sleep;

use super::chaos::Chaos;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use super::sweeps::all_entries;
use crate::standard::Standard;

const MESSAGES: usize = 5;

fn receive() -> Receive {
    Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 0, attempt_id: None }
}

/// Returns two front-ends with a queue, and receipts by the first, which has changed their messages' visibility since.
async fn changed(
    changed_to_ms: u64,
) -> (StandardSimulation, [Arc<Standard>; 2], Arc<QueueFacts>, Vec<Delivery>) {
    let simulation = StandardSimulation::new(Chaos { front_ends: 2, ..Chaos::NONE }).await;
    let [first, second] = &simulation.front_ends()[..] else { panic!("two") };
    let both = [first.standard.clone(), second.standard.clone()];
    let facts = simulation.queue.clone();
    let new = || NewMessage { body: "body".into(), ..NewMessage::default() };
    both[0].send(&facts, (0..MESSAGES).map(|_| new()).collect()).await.unwrap();
    let received = both[0].receive(&facts, receive()).await.unwrap();
    let receipts: Vec<Delivery> = received.into_iter().map(|one| one.delivery).collect();
    let changes = receipts.iter().map(|receipt| (receipt.clone(), changed_to_ms)).collect();
    let outcomes = both[0].change_visibility(&facts, changes).await.unwrap();
    assert_eq!(outcomes, [ReceiptOutcome::Done; MESSAGES]);
    (simulation, both, facts, receipts)
}

#[test]
fn the_deletion_of_what_was_hidden_for_longer_leaves_no_entry() {
    in_virtual_time(async {
        let (_simulation, [first, _], facts, receipts) = changed(60_000).await;
        first.delete(&facts, receipts).await.unwrap();
        assert_eq!(all_entries(&first, &facts).await, []);
    });
}

#[test]
fn a_late_deletion_elsewhere_leaves_no_entry() {
    in_virtual_time(async {
        let (_simulation, [_, second], facts, receipts) = changed(60_000).await;
        sleep(Duration::from_secs(40)).await;
        second.delete(&facts, receipts).await.unwrap();
        assert_eq!(all_entries(&second, &facts).await, []);
    });
}

/// Whoever deletes has not heard of the change.
#[test]
fn an_entry_that_a_deletion_left_is_dropped_by_a_receive() {
    in_virtual_time(async {
        let (_simulation, [first, second], facts, receipts) = changed(1_000).await;
        second.delete(&facts, receipts).await.unwrap();
        assert_eq!(all_entries(&second, &facts).await.len(), MESSAGES);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(first.receive(&facts, receive()).await.unwrap(), []);
        assert_eq!(all_entries(&first, &facts).await, []);
    });
}
