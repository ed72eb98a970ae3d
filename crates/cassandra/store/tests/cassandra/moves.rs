//! Move tasks whose front-end dies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{MoveTask, MoveTaskState, NewMoveTask, QueueFacts, Queues};
use tokio::runtime::Builder;

use crate::site::{Site, queue, receive, send, settings};

/// Longer than the hold of who died, and than all that is left to be moved.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const MESSAGES: usize = 12;

/// Waits until the only task of a queue is as it has to become, and returns it.
async fn task_that(
    queues: &CassandraQueues,
    of: &Arc<QueueFacts>,
    is_so: impl Fn(&MoveTask) -> bool,
) -> MoveTask {
    let began = Instant::now();
    loop {
        let [task] = &queues.move_tasks(of, 10).await.unwrap()[..] else { panic!("one task") };
        if is_so(task) {
            return task.clone();
        }
        assert!(began.elapsed() < PATIENCE, "{task:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[test]
fn a_task_whose_front_end_dies_is_carried_out_by_another() {
    let site = Site::shared();
    // Whoever carries it out does so only while this runtime is waited for.
    let mortal = Builder::new_current_thread().enable_all().build().unwrap();
    let first = mortal.block_on(CassandraQueues::connect(&settings())).unwrap();
    let (from, to) = site.runtime.block_on(async {
        let from = queue(&site.queues, "moved-from", &[]).await;
        let to = queue(&site.queues, "moved-to", &[]).await;
        for number in 0..MESSAGES {
            send(&site.queues, &from, &number.to_string()).await.unwrap();
        }
        (from, to)
    });
    let under_way = mortal.block_on(async {
        let (destination, messages_per_second_max) = (Some(to.queue.clone()), Some(1));
        let task = NewMoveTask { destination, messages_per_second_max };
        first.start_move(&from, task).await.unwrap();
        task_that(&first, &from, |task| task.moved >= 2).await
    });
    // It ends in the middle of whatever it is about.
    drop(first);
    mortal.shutdown_background();
    assert_eq!(under_way.state, MoveTaskState::Running, "{under_way:?}");
    site.runtime.block_on(async {
        let is_over = |task: &MoveTask| task.state != MoveTaskState::Running;
        let over = task_that(&site.queues, &from, is_over).await;
        assert_eq!((over.state, over.failure_reason), (MoveTaskState::Completed, None));
        let mut bodies = BTreeSet::new();
        while bodies.len() < MESSAGES {
            // The one that was being moved may have come twice.
            let received = receive(&site.queues, &to, 600_000).await;
            assert!(!received.is_empty(), "only {bodies:?} came within the longest wait");
            bodies.extend(received.into_iter().map(|one| one.body.to_vec()));
        }
    });
}
