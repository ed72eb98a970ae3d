//! Tasks that move messages out of a dead-letter queue.

use std::sync::Arc;
use std::time::Instant;

use quelea_sqs_protocol::{
    ErrorKind, Fault, MoveTask, MoveTaskState, NewMoveTask, QueueFacts, Queues, ReceiptOutcome,
    Receive,
};

use crate::suite::{HIDDEN_MS, PATIENCE, SHORT_WAIT_MS, Suite, at_once, waiting};

const BACK: NewMoveTask = NewMoveTask { destination: None, messages_per_second_max: None };

pub(crate) async fn dead_letters_go_back_to_where_they_came_from<Q: Queues>(suite: &Suite<Q>) {
    let (queue, dead) = with_dead_letters(suite, 3).await;
    let handle = suite.store.start_move(&dead, BACK).await.unwrap();
    let task = until_over(suite, &dead).await;
    assert_eq!((task.state, task.moved), (MoveTaskState::Completed, 3));
    assert_eq!((task.source, task.task), (dead.queue.clone(), BACK));
    assert!(task.started_at_ms > 1_600_000_000_000);
    let mut bodies = suite.receive_bodies(&queue, 3).await;
    bodies.sort_unstable();
    assert_eq!(bodies, ["0", "1", "2"]);
    suite.expect_nothing(&dead).await;
    let ended = suite.store.cancel_move(&dead, &handle).await;
    assert!(matches!(ended, Err(Fault::NotFound(_))), "{ended:?}");
}

pub(crate) async fn dead_letters_go_to_another_queue<Q: Queues>(suite: &Suite<Q>) {
    let (queue, dead) = with_dead_letters(suite, 2).await;
    let other = suite.queue(&[]).await;
    let task = NewMoveTask { destination: Some(other.queue.clone()), ..BACK };
    suite.store.start_move(&dead, task.clone()).await.unwrap();
    let over = until_over(suite, &dead).await;
    assert_eq!((over.state, over.task), (MoveTaskState::Completed, task));
    let mut bodies = suite.receive_bodies(&other, 2).await;
    bodies.sort_unstable();
    assert_eq!(bodies, ["0", "1"]);
    suite.expect_nothing(&queue).await;
    // The newest comes first.
    suite.store.start_move(&dead, BACK).await.unwrap();
    until_over(suite, &dead).await;
    let tasks = suite.store.move_tasks(&dead, 10).await.unwrap();
    let destinations: Vec<_> = tasks.into_iter().map(|task| task.task.destination).collect();
    assert_eq!(destinations, [None, Some(other.queue.clone())]);
}

pub(crate) async fn a_slow_task_is_cancelled_and_keeps_the_rest<Q: Queues>(suite: &Suite<Q>) {
    let (queue, dead) = with_dead_letters(suite, 6).await;
    let slow = NewMoveTask { messages_per_second_max: Some(1), ..BACK };
    let handle = suite.store.start_move(&dead, slow).await.unwrap();
    let second = suite.store.start_move(&dead, BACK).await;
    assert!(matches!(second, Err(Fault::Unsupported(_))), "one at a time: {second:?}");
    let running = suite.store.move_tasks(&dead, 10).await.unwrap();
    assert_eq!((running.len(), running[0].state), (1, MoveTaskState::Running));
    assert_eq!(running[0].handle.as_ref(), Some(&handle));
    let moved = suite.store.cancel_move(&dead, &handle).await.unwrap();
    assert!(moved < 6, "{moved} were moved");
    let over = until_over(suite, &dead).await;
    assert_eq!(over.state, MoveTaskState::Cancelled);
    // Every message is in one of the two.
    let left = 6 - usize::try_from(over.moved).unwrap();
    suite.receive_bodies(&dead, left).await;
    suite.receive_bodies(&queue, 6 - left).await;
    suite.expect_nothing(&dead).await;
}

pub(crate) async fn a_task_whose_destination_goes_fails_with_its_code<Q: Queues>(suite: &Suite<Q>) {
    let (_, dead) = with_dead_letters(suite, 3).await;
    let other = suite.queue(&[]).await;
    let (destination, messages_per_second_max) = (Some(other.queue.clone()), Some(1));
    let task = NewMoveTask { destination, messages_per_second_max };
    suite.store.start_move(&dead, task).await.unwrap();
    suite.store.delete_queue(&other).await.unwrap();
    let over = until_over(suite, &dead).await;
    assert_eq!(over.state, MoveTaskState::Failed);
    let code = ErrorKind::QueueDoesNotExist.code();
    assert_eq!(over.failure_reason.as_deref(), Some(code));
    // It says where its messages were to go, although that is gone.
    assert_eq!(over.task.destination, Some(other.queue.clone()));
}

pub(crate) async fn tasks_of_another_queue_or_that_never_were_are_not_found<Q: Queues>(
    suite: &Suite<Q>,
) {
    let (_, dead) = with_dead_letters(suite, 3).await;
    let other = suite.queue(&[]).await;
    let slow = NewMoveTask { messages_per_second_max: Some(1), ..BACK };
    let handle = suite.store.start_move(&dead, slow).await.unwrap();
    for (queue, handle) in [(&other, &*handle), (&dead, "nonsense"), (&dead, "")] {
        let cancelled = suite.store.cancel_move(queue, handle).await;
        assert!(matches!(cancelled, Err(Fault::NotFound(_))), "{handle}: {cancelled:?}");
    }
    assert_eq!(suite.store.move_tasks(&other, 10).await, Ok(Vec::new()));
    suite.store.cancel_move(&dead, &handle).await.unwrap();
}

/// Makes a queue and its dead-letter queue, in which so many messages are, `0` and so on.
async fn with_dead_letters<Q: Queues>(
    suite: &Suite<Q>,
    count: usize,
) -> (Arc<QueueFacts>, Arc<QueueFacts>) {
    let (queue, dead) = suite.queue_with_dead_letters(1).await;
    for number in 0..count {
        suite.send_bodies(&queue, &[&number.to_string()]).await;
    }
    let began = Instant::now();
    let mut arrived = Vec::new();
    while arrived.len() < count {
        assert!(began.elapsed() < PATIENCE, "{} of {count} are dead letters", arrived.len());
        // Each is received once, and found spent by a later receive; by a further one where the store is busy.
        suite.receive(&queue, at_once(10, 0)).await;
        let soon = Receive { wait_ms: SHORT_WAIT_MS, ..waiting(10, HIDDEN_MS) };
        let came = suite.receive(&dead, soon).await;
        arrived.extend(came.into_iter().map(|one| (one.delivery, 0)));
    }
    let shown = suite.store.change_visibility(&dead, arrived).await.unwrap();
    assert_eq!(shown, vec![ReceiptOutcome::Done; count]);
    (queue, dead)
}

/// Waits until the newest task is over, and returns it.
async fn until_over<Q: Queues>(suite: &Suite<Q>, queue: &Arc<QueueFacts>) -> MoveTask {
    let look = async || suite.store.move_tasks(queue, 1).await.unwrap().remove(0);
    let over =
        |task: &MoveTask| !matches!(task.state, MoveTaskState::Running | MoveTaskState::Cancelling);
    suite.until("the task to end", look, over).await
}
