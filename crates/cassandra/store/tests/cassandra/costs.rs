//! What messages cost in requests to Cassandra, which is what bounds their rate.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use quelea_cassandra_fifo::limits::RENEW_EVERY_MS;
use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{QueueFacts, Queues, ReceiptOutcome, Receive};

use crate::fifo::fifo_queue;
use crate::site::{Site, message, queue};

const CLIENTS: usize = 64;
const ROUNDS: usize = 20;

/// One client's messages: each is sent, received and deleted, `batch` at a time.
async fn live(queues: &CassandraQueues, facts: &Arc<QueueFacts>, rounds: usize, batch: usize) {
    for _ in 0..rounds {
        let messages = (0..batch).map(|_| message("x")).collect();
        for outcome in queues.send(facts, messages).await.unwrap() {
            outcome.unwrap();
        }
    }
    for _ in 0..rounds {
        let receive = Receive {
            max: batch,
            visibility_timeout_ms: 120_000,
            wait_ms: 20_000,
            attempt_id: None,
        };
        let received = queues.receive(facts, receive).await.unwrap();
        assert!(!received.is_empty(), "all that was sent can be received");
        let deliveries = received.into_iter().map(|one| one.delivery).collect();
        queues.delete(facts, deliveries).await.unwrap();
    }
}

/// Returns the requests per message over its life; those for upkeep are printed beside it.
async fn requests_per_message(name: &str, clients: usize, rounds: usize, batch: usize) -> f64 {
    // A front-end of its own: other tests use the shared one at the same time.
    let queues = Site::shared().another().await;
    let facts = queue(&queues, name, &[]).await;
    let before = queues.requests();
    join_all((0..clients).map(|_| live(&queues, &facts, rounds, batch))).await;
    let after = queues.requests();
    let messages = (clients * rounds * batch) as f64;
    let each = (after.messages - before.messages) as f64 / messages;
    println!(
        "{name}: {each:.2} requests a message, and {} for upkeep, {} for the other front-ends",
        after.upkeep - before.upkeep,
        after.peers - before.peers,
    );
    each
}

#[test]
fn single_calls_of_many_clients_share_requests() {
    let each = Site::shared().runtime.block_on(requests_per_message("singly", CLIENTS, ROUNDS, 1));
    assert!(each <= 1.2, "{each:.2} requests a message");
}

#[test]
fn a_batch_of_ten_costs_at_most_a_request_a_message() {
    let each = Site::shared().runtime.block_on(requests_per_message("batches", 1, ROUNDS, 10));
    assert!(each <= 1.0, "{each:.2} requests a message");
}

/// Returns the requests per change of visibility, and per deletion after it, by clients that change
/// and delete so many messages with each call.
async fn requests_per_change(name: &str, clients: usize, batch: usize) -> [f64; 2] {
    let queues = Site::shared().another().await;
    let facts = queue(&queues, name, &[]).await;
    let mut held = Vec::new();
    for _ in 0..clients {
        let messages = (0..batch).map(|_| message("x")).collect();
        for outcome in queues.send(&facts, messages).await.unwrap() {
            outcome.unwrap();
        }
    }
    while held.len() < clients * batch {
        let receive =
            Receive { max: 10, visibility_timeout_ms: 120_000, wait_ms: 20_000, attempt_id: None };
        held.extend(queues.receive(&facts, receive).await.unwrap());
    }
    let before = queues.requests();
    let calls = held.chunks(batch).map(|some| {
        let changes = some.iter().map(|one| (one.delivery.clone(), 60_000)).collect();
        queues.change_visibility(&facts, changes)
    });
    for outcomes in join_all(calls).await {
        let outcomes = outcomes.unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == ReceiptOutcome::Done), "{outcomes:?}");
    }
    let changed = queues.requests();
    let calls = held.chunks(batch).map(|some| {
        let deliveries = some.iter().map(|one| one.delivery.clone()).collect();
        queues.delete(&facts, deliveries)
    });
    for outcomes in join_all(calls).await {
        let outcomes = outcomes.unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == ReceiptOutcome::Done), "{outcomes:?}");
    }
    let deleted = queues.requests();
    let each = [(changed, before), (deleted, changed)]
        .map(|(after, before)| (after.messages - before.messages) as f64 / held.len() as f64);
    println!("{name}: {:.2} requests a change of visibility, {:.2} a deletion", each[0], each[1]);
    each
}

#[test]
fn changes_of_visibility_of_many_clients_share_requests() {
    let each = Site::shared().runtime.block_on(requests_per_change("changed-singly", CLIENTS, 1));
    assert!(each.iter().all(|each| *each <= 1.0), "{each:.2?} requests a change and a deletion");
}

#[test]
fn a_batch_of_ten_changes_of_visibility_costs_at_most_one_request_each() {
    let each = Site::shared().runtime.block_on(requests_per_change("changed-together", 1, 10));
    assert!(each.iter().all(|each| *each <= 1.0), "{each:.2?} requests a change and a deletion");
}

/// How long a receive waits at a FIFO queue to which nothing is sent.
const POLL_MS: u64 = 8_000;

/// Of a FIFO queue that is polled elsewhere its owner renews its lease; whoever polls reads what the owner has written.
#[test]
fn a_polled_empty_fifo_queue_costs_its_owner_leases_and_others_reads() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "polled-in-vain", &[]).await;
        let poll = async |queues: &CassandraQueues, wait_ms| {
            let receive =
                Receive { max: 1, visibility_timeout_ms: 1_000, wait_ms, attempt_id: None };
            assert_eq!(queues.receive(&facts, receive).await.unwrap(), []);
        };
        poll(&owner, 0).await;
        poll(&other, 0).await;
        let (began, of_owner, of_other) = (Instant::now(), owner.requests(), other.requests());
        poll(&other, POLL_MS).await;
        let took_ms = began.elapsed().as_millis() as u64;
        let renewals = owner.requests().leases - of_owner.leases;
        let (looks, serial) =
            (other.requests().upkeep - of_other.upkeep, other.requests().leases - of_other.leases);
        println!(
            "in {took_ms} ms: {renewals} renewals, {looks} reads and {serial} serial ones elsewhere"
        );
        assert!((1..=took_ms / RENEW_EVERY_MS + 1).contains(&renewals), "{renewals} renewals");
        assert_eq!(serial, 0, "nobody wants to own it");
        // The queue's own row is read again every two seconds, too.
        assert!(looks <= 2 * (took_ms / RENEW_EVERY_MS + 2), "{looks} reads");
    });
}
