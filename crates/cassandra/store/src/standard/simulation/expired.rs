//! Messages that are older than their queue keeps them since that was made shorter.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{QueueFacts, QueueSettings, Receive};
use tokio::time::sleep;

use super::standard_simulation::{StandardSimulation, in_virtual_time};
use super::sweeps::all_entries;
use super::unreadable::{alone, move_task, send};
use crate::database::queue_table::Record;
use crate::limits::SWEPT_AGE_MS_MIN;
use crate::standard::Standard;
use crate::standard::move_step::Step;
use crate::standard::pace::Pace;

const MESSAGES: usize = 250;

/// Sends messages, and lets them become older than they are kept from then on. Returns the queue as it is then.
async fn outlived(
    simulation: &StandardSimulation,
    standard: &Arc<Standard>,
    facts: &Arc<QueueFacts>,
) -> Arc<QueueFacts> {
    for _ in 0..MESSAGES {
        send(standard, facts, "old").await;
    }
    sleep(Duration::from_secs(120)).await;
    let settings = QueueSettings { retention_ms: 60_000, ..facts.settings.clone() };
    let shorter = Arc::new(QueueFacts { settings, ..QueueFacts::clone(facts) });
    let generation = standard.queue(facts).await.unwrap().generation;
    let record = Record { facts: shorter.clone(), generation, purged_at_ms: 0 };
    simulation.common.queues.insert(&Arc::new(record));
    standard.tables.forget(&facts.queue);
    shorter
}

#[test]
fn a_move_task_drops_what_has_expired() {
    in_virtual_time(async {
        let (simulation, standard, facts) = alone().await;
        let from = outlived(&simulation, &standard, &simulation.dead_letters).await;
        send(&standard, &from, "new").await;
        let task = move_task(&standard, &from, &facts);
        let mut moved = 0;
        loop {
            match standard.move_step(&task, 100).await.unwrap() {
                Step::Moved(more) => moved += more,
                other => {
                    assert_eq!(other, Step::Done, "nothing is waited for");
                    break;
                }
            }
        }
        assert_eq!(moved, 1);
        let peeked = standard.peek(&facts, 10).await.unwrap().messages;
        assert_eq!(peeked.iter().map(|one| &one.body[..]).collect::<Vec<_>>(), [b"new"]);
    });
}

#[test]
fn what_has_expired_does_not_come_back_when_messages_are_kept_longer() {
    in_virtual_time(async {
        let (simulation, standard, longer) = alone().await;
        let shorter = outlived(&simulation, &standard, &longer).await;
        while !all_entries(&standard, &shorter).await.is_empty() {
            let receive =
                Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 0, attempt_id: None };
            assert_eq!(standard.receive(&shorter, receive).await.unwrap(), []);
        }
        sleep(Duration::from_millis(3 * SWEPT_AGE_MS_MIN)).await;
        let generation = standard.queue(&longer).await.unwrap().generation;
        let record = Record { facts: longer, generation, purged_at_ms: 0 };
        assert_eq!(standard.sweep(&record, &Pace::AT_ONCE).await, Ok(0));
    });
}
