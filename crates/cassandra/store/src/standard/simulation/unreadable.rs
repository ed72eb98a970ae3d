//! Messages whose rows cannot be read, among others that can.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{
    MoveTask, MoveTaskState, NewMessage, NewMoveTask, QueueFacts, Receive, Received,
};
use tokio::time::sleep;
use uuid::Uuid;

use super::chaos::Chaos;
use super::process::lock;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::limits::SWEPT_AGE_MS_MIN;
use crate::standard::Standard;
use crate::standard::move_step::Step;
use crate::standard::pace::Pace;

/// Returns a simulation of one front-end, where nothing fails, with that front-end and the queue.
pub(super) async fn alone() -> (StandardSimulation, Arc<Standard>, Arc<QueueFacts>) {
    let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
    let standard = simulation.any_front_end().standard.clone();
    let facts = simulation.queue.clone();
    (simulation, standard, facts)
}

pub(super) async fn send(
    standard: &Arc<Standard>,
    facts: &Arc<QueueFacts>,
    body: &'static str,
) -> Uuid {
    let message = NewMessage { body: body.into(), ..NewMessage::default() };
    let sent = standard.send(facts, vec![message]).await.unwrap().remove(0).unwrap();
    sent.message_id.parse().unwrap()
}

/// Returns a task that moves what is there now.
pub(super) fn move_task(standard: &Standard, from: &QueueFacts, to: &QueueFacts) -> MoveTask {
    MoveTask {
        handle: None,
        state: MoveTaskState::Running,
        source: from.queue.clone(),
        task: NewMoveTask { destination: Some(to.queue.clone()), messages_per_second_max: None },
        moved: 0,
        to_move: 1_000,
        failure_reason: None,
        started_at_ms: standard.clock.now_ms(),
    }
}

/// Sends a message that cannot be read.
async fn send_unreadable(simulation: &StandardSimulation, facts: &Arc<QueueFacts>) -> Uuid {
    let standard = &simulation.any_front_end().standard;
    let id = send(standard, facts, "unreadable").await;
    lock(&simulation.common.cluster.unreadable).insert(id);
    id
}

async fn receive(standard: &Arc<Standard>, facts: &Arc<QueueFacts>) -> Vec<Received> {
    let receive =
        Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 2_000, attempt_id: None };
    let received = standard.receive(facts, receive).await.unwrap();
    let deliveries = received.iter().map(|one| one.delivery.clone()).collect();
    standard.delete(facts, deliveries).await.unwrap();
    received
}

/// For far longer than the head's reads reach behind one that stays.
#[test]
fn those_behind_them_are_received_however_long_they_stay() {
    for unreadable in [1, 250] {
        in_virtual_time(async {
            let (simulation, standard, facts) = alone().await;
            for _ in 0..unreadable {
                send_unreadable(&simulation, &facts).await;
            }
            for hour in 0..24 {
                send(&standard, &facts, "readable").await;
                let received = receive(&standard, &facts).await;
                assert_eq!(received.len(), 1, "in hour {hour}, {unreadable} unreadable");
                assert_eq!(received[0].body, "readable");
                sleep(Duration::from_secs(3_600)).await;
            }
        });
    }
}

#[test]
fn one_is_received_when_it_can_be_read_or_found_by_the_sweep() {
    in_virtual_time(async {
        let (simulation, standard, facts) = alone().await;
        let readable = |id: Uuid| lock(&simulation.common.cluster.unreadable).remove(&id);
        let id = send_unreadable(&simulation, &facts).await;
        assert_eq!(receive(&standard, &facts).await, []);
        // The mark passes it.
        sleep(Duration::from_millis(3 * SWEPT_AGE_MS_MIN)).await;
        for _ in 0..3 {
            assert_eq!(receive(&standard, &facts).await, []);
        }
        let record = standard.to_sweep(&facts.queue).await.unwrap().unwrap();
        assert_eq!(standard.sweep(&record, &Pace::AT_ONCE).await, Ok(0));
        readable(id);
        // It is not asked for again at once.
        sleep(Duration::from_secs(61)).await;
        let mut received = receive(&standard, &facts).await;
        if received.is_empty() {
            assert_eq!(standard.sweep(&record, &Pace::AT_ONCE).await, Ok(1));
            sleep(Duration::from_secs(60)).await;
            received = receive(&standard, &facts).await;
        }
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].message_id, id.to_string());
    });
}

#[test]
fn a_move_task_and_a_peek_leave_them_out() {
    in_virtual_time(async {
        let (simulation, standard, facts) = alone().await;
        let dead_letters = simulation.dead_letters.clone();
        for _ in 0..30 {
            send_unreadable(&simulation, &dead_letters).await;
        }
        for _ in 0..5 {
            send(&standard, &dead_letters, "readable").await;
        }
        let peeked = standard.peek(&dead_letters, 50).await.unwrap();
        assert_eq!((peeked.messages.len(), peeked.is_whole), (5, false));
        let task = move_task(&standard, &dead_letters, &facts);
        let mut moved = 0;
        loop {
            match standard.move_step(&task, 10).await.unwrap() {
                Step::Moved(more) => moved += more,
                Step::Waits => sleep(Duration::from_secs(1)).await,
                other => {
                    assert_eq!((other, moved), (Step::Done, 5));
                    return;
                }
            }
        }
    });
}
