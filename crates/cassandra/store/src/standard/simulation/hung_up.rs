//! Clients that hang up while what they send waits for Cassandra.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, NewMessage, QueueFacts, Receive, SendOutcome};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::chaos::Chaos;
use super::front_end::FrontEnd;
use super::process::Process;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::limits::WAITING_BYTES_IN_ALL_MAX;

const MOMENT: Duration = Duration::from_millis(10);

type Sending = JoinHandle<Result<Vec<SendOutcome>, Fault>>;

/// Returns a front-end that has sent something to both queues, and stops.
async fn stopped() -> (StandardSimulation, Arc<FrontEnd>) {
    let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
    let front_end = simulation.any_front_end();
    for facts in [&simulation.queue, &simulation.dead_letters] {
        send(&front_end, facts, "before").await.await.unwrap().unwrap().remove(0).unwrap();
    }
    front_end.set(Process::Stopped);
    (simulation, front_end)
}

/// Sends a message, and waits a moment.
async fn send(front_end: &FrontEnd, facts: &Arc<QueueFacts>, body: &str) -> Sending {
    let (standard, facts) = (front_end.standard.clone(), facts.clone());
    let message = NewMessage { body: body.to_owned().into(), ..NewMessage::default() };
    let sending = tokio::spawn(async move { standard.send(&facts, vec![message]).await });
    sleep(MOMENT).await;
    sending
}

#[test]
fn what_was_not_begun_when_its_client_hung_up_is_not_sent() {
    in_virtual_time(async {
        let (simulation, front_end) = stopped().await;
        let first = send(&front_end, &simulation.queue, "first").await;
        let hung_up = send(&front_end, &simulation.queue, "hung up").await;
        let last = send(&front_end, &simulation.queue, "last").await;
        hung_up.abort();
        sleep(MOMENT).await;
        front_end.set(Process::Runs);
        for sent in [first, last] {
            sent.await.unwrap().unwrap().remove(0).unwrap();
        }
        let receive =
            Receive { max: 10, visibility_timeout_ms: 60_000, wait_ms: 0, attempt_id: None };
        let received = front_end.standard.receive(&simulation.queue, receive).await.unwrap();
        let bodies: Vec<_> = received.iter().map(|message| &message.body[..]).collect();
        assert_eq!(bodies, ["before", "first", "last"].map(str::as_bytes));
        assert_eq!(front_end.standard.room.available_permits(), WAITING_BYTES_IN_ALL_MAX);
    });
}

#[test]
fn what_waits_in_all_queues_is_bounded_whether_or_not_its_clients_wait() {
    in_virtual_time(async {
        let (simulation, front_end) = stopped().await;
        front_end.standard.room.forget_permits(WAITING_BYTES_IN_ALL_MAX - 10_000);
        let body = "x".repeat(6_000);
        let under_way = send(&front_end, &simulation.queue, &body).await;
        under_way.abort();
        sleep(MOMENT).await;
        let refused = send(&front_end, &simulation.dead_letters, &body).await.await.unwrap();
        assert!(matches!(refused, Err(Fault::Unavailable(_))), "{refused:?}");
        front_end.set(Process::Runs);
        sleep(Duration::from_secs(1)).await;
        let sent = send(&front_end, &simulation.dead_letters, &body).await.await.unwrap();
        sent.unwrap().remove(0).unwrap();
    });
}
