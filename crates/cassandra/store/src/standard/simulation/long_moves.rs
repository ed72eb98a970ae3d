//! A move task of many partitions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quelea_sqs_protocol::MoveTask;
use tokio::time::sleep;

use super::cluster::Mishap;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use super::unreadable::{alone, move_task, send};
use crate::standard::Standard;
use crate::standard::move_step::Step;

const MESSAGES: usize = 60;

/// Returns one front-end, and a task that moves letters of which each is in a partition of its own,
/// which is empty behind it.
async fn with_letters() -> (StandardSimulation, Arc<Standard>, MoveTask) {
    let (simulation, standard, facts) = alone().await;
    for _ in 0..MESSAGES {
        send(&standard, &simulation.dead_letters, "letter").await;
        sleep(Duration::from_secs(1_100)).await;
    }
    let task = move_task(&standard, &simulation.dead_letters, &facts);
    (simulation, standard, task)
}

#[test]
fn a_step_does_not_read_what_those_before_it_have_moved() {
    in_virtual_time(async {
        let (simulation, standard, task) = with_letters().await;
        let reads = &simulation.common.cluster.head_reads;
        let (before, mut moved) = (reads.load(Ordering::Relaxed), 0);
        while let Step::Moved(more) = standard.move_step(&task, 1).await.unwrap() {
            moved += more;
        }
        assert_eq!(moved, MESSAGES);
        let per_step = (reads.load(Ordering::Relaxed) - before) / MESSAGES as u64;
        assert!(per_step <= 12, "{per_step} partitions are read in a step");
    });
}

/// What could not be moved is found by a later step.
#[test]
fn what_a_step_left_is_moved_by_the_next() {
    in_virtual_time(async {
        let (simulation, standard, task) = with_letters().await;
        let (mut moved, mut failed) = (0, 0);
        loop {
            if moved > 0 && failed < 3 {
                simulation.common.cluster.have([Mishap::Fails; 3]);
                failed += 1;
            }
            match standard.move_step(&task, 10).await {
                Ok(Step::Moved(more) | Step::MovedInPart(more)) => moved += more,
                Ok(Step::Waits) => sleep(Duration::from_secs(1)).await,
                Ok(Step::Done) => break,
                Err(fault) => assert!(failed > 0, "{fault}"),
            }
        }
        assert!(moved >= MESSAGES && failed == 3, "{moved} of {MESSAGES}");
        assert_eq!(standard.peek(&simulation.dead_letters, 10).await.unwrap().messages.len(), 0);
    });
}
