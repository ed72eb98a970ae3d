//! Tasks that move messages out of a dead-letter queue.

use std::sync::Arc;

use quelea_broker::{
    MoveError, MoveFailure, MoveTaskId, MoveTaskReport, MoveTaskState as BrokerState, NoMoveTaskId,
};
use quelea_sqs_protocol::{
    ErrorKind, Fault, MoveTask, MoveTaskState, NewMoveTask, QueueFacts, QueueKey, QueueRef,
};

use crate::broker_calls::{BrokerCalls, queue_id};

pub(crate) async fn start(
    calls: &BrokerCalls,
    queue: &QueueFacts,
    task: NewMoveTask,
) -> Result<String, Fault> {
    let source = queue_id(queue.key)?;
    let destination = match task.destination {
        None => None,
        Some(queue) => {
            let vhost = calls.vhost(&queue.account).ok_or(Fault::NoSuchQueue)?;
            Some((vhost, queue.name))
        }
    };
    calls
        .promise(move |core| {
            let destination = match destination {
                None => None,
                Some((vhost, name)) => {
                    Some(core.broker.queue_id(&vhost, &name).ok_or(Fault::NoSuchQueue)?)
                }
            };
            let (now, rate) = (core.now(), task.messages_per_second_max);
            let started = core.broker.start_move(now, source, destination, rate);
            started.map(|(id, ticket)| (id.to_string(), ticket)).map_err(move_fault)
        })
        .await
}

pub(crate) async fn cancel(
    calls: &BrokerCalls,
    queue: &QueueFacts,
    handle: &str,
) -> Result<u64, Fault> {
    let id = task_of(queue.key, handle)?;
    calls.promise(move |core| core.broker.cancel_move(id).map_err(move_fault)).await
}

pub(crate) async fn list(
    calls: &BrokerCalls,
    queue: &Arc<QueueFacts>,
    max: usize,
) -> Result<Vec<MoveTask>, Fault> {
    let id = queue_id(queue.key)?;
    let (owned, queue) = (calls.clone(), Arc::clone(queue));
    calls
        .call(move |core| {
            let reports = core.broker.move_tasks(id).into_iter().take(max);
            reports.map(|report| task(&owned, &queue.queue, &report)).collect()
        })
        .await
}

fn task(calls: &BrokerCalls, source: &QueueRef, report: &MoveTaskReport) -> MoveTask {
    let progress = &report.progress;
    let destination = report.destination.as_ref().map(|(vhost, name)| QueueRef {
        account: calls.account(vhost.as_str()),
        name: name.as_str().into(),
    });
    let (state, failure_reason) = match progress.state {
        BrokerState::Running => (MoveTaskState::Running, None),
        BrokerState::Completed => (MoveTaskState::Completed, None),
        BrokerState::Cancelled => (MoveTaskState::Cancelled, None),
        BrokerState::Failed(failure) => (MoveTaskState::Failed, Some(reason(failure))),
    };
    MoveTask {
        handle: (state == MoveTaskState::Running).then(|| report.id.to_string()),
        state,
        source: source.clone(),
        task: NewMoveTask { destination, messages_per_second_max: progress.per_second_max },
        moved: progress.moved,
        to_move: progress.to_move,
        failure_reason,
        started_at_ms: progress.started_at.as_millis(),
    }
}

/// Returns the task of that queue that a handle means. Handles can be guessed, and the permission
/// was asked for that queue only.
fn task_of(queue: QueueKey, handle: &str) -> Result<MoveTaskId, Fault> {
    let id: MoveTaskId =
        handle.parse().map_err(|error: NoMoveTaskId| Fault::NotFound(error.to_string()))?;
    match id.source == queue_id(queue)? {
        true => Ok(id),
        false => Err(Fault::NotFound("the task is one of another queue".to_owned())),
    }
}

/// Returns why a task failed: SQS gives an error's code where it has one, and clients compare it.
fn reason(failure: MoveFailure) -> String {
    match failure {
        MoveFailure::DestinationGone => ErrorKind::QueueDoesNotExist.code().to_owned(),
        MoveFailure::SourceUnknown | MoveFailure::DestinationFull | MoveFailure::SourceGone => {
            failure.to_string()
        }
    }
}

fn move_fault(error: MoveError) -> Fault {
    match error {
        MoveError::NoSuchQueue(_) => Fault::NoSuchQueue,
        MoveError::NoSuchTask { .. } | MoveError::Over { .. } => Fault::NotFound(error.to_string()),
        MoveError::SameQueue | MoveError::Running { .. } => Fault::Unsupported(error.to_string()),
        MoveError::LimitReached(reached) => Fault::Unavailable(reached.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use quelea_sqs_protocol::QueueClass;

    use super::*;

    #[test]
    fn a_handle_means_a_task_of_its_own_queue_only() {
        let task_of = |id, handle| task_of(QueueKey::new(QueueClass::Ordered, id), handle);
        assert_eq!(task_of(7, "move-7-1").unwrap().to_string(), "move-7-1");
        for (queue, handle) in [(8, "move-7-1"), (7, "move-8-1"), (7, "nonsense"), (7, "")] {
            assert!(matches!(task_of(queue, handle), Err(Fault::NotFound(_))), "{handle}");
        }
    }

    #[test]
    fn a_destination_that_is_gone_is_reported_by_its_code() {
        assert_eq!(reason(MoveFailure::DestinationGone), "AWS.SimpleQueueService.NonExistentQueue");
        assert!(reason(MoveFailure::DestinationFull).contains("full"));
    }
}
