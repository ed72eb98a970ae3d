//! StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Caller, Service};
use crate::action::{
    CancelMessageMoveTaskRequest, CancelMessageMoveTaskResult, ListMessageMoveTasksRequest,
    ListMessageMoveTasksResult, ListMessageMoveTasksResultEntry, StartMessageMoveTaskRequest,
    StartMessageMoveTaskResult,
};
use crate::limits::{MOVE_TASKS_LISTED_MAX, MOVED_MESSAGES_PER_S_MAX};
use crate::names::queue_of_arn;
use crate::refusal;
use crate::{
    Action, Error, ErrorKind, Fault, Identity, MoveTask, MoveTaskState, NewMoveTask, QueueFacts,
    QueueRef, Queues, Reply,
};

/// What the caller has to be allowed with a dead-letter queue that is emptied, as SQS asks it: a task
/// must not be a way around a deny of receiving or deleting.
const NEEDED_OF_A_SOURCE: [Action; 4] = [
    Action::StartMessageMoveTask,
    Action::ReceiveMessage,
    Action::DeleteMessage,
    Action::GetQueueAttributes,
];

/// Queues that are looked up at once, of those whose dead-letter queue is emptied.
const SOURCES_AT_ONCE: usize = 1_000;

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn start_message_move_task(
        &self,
        caller: &Caller,
        request: StartMessageMoveTaskRequest,
    ) -> Result<Reply, Error> {
        let source_arn = request.source_arn.as_deref();
        let source = self.queue_by_arn(source_arn, "SourceArn").await?;
        for action in NEEDED_OF_A_SOURCE {
            self.authorize(caller, action, &source).await?;
        }
        let per_second = per_second(request.max_number_of_messages_per_second)?;
        let destination_arn = request.destination_arn.as_deref().filter(|arn| !arn.is_empty());
        self.check_sources(caller, &source, destination_arn.is_none()).await?;
        let destination = match destination_arn {
            None => None,
            Some(arn) => {
                let destination = self.queue_by_arn(Some(arn), "DestinationArn").await?;
                self.authorize(caller, Action::SendMessage, &destination).await?;
                check_destination(&source, &destination)?;
                Some(destination.queue.clone())
            }
        };
        let last = self.queues.move_tasks(&source, 1).await.map_err(refusal::fault)?;
        let active = |task: &MoveTask| {
            matches!(task.state, MoveTaskState::Running | MoveTaskState::Cancelling)
        };
        if last.first().is_some_and(active) {
            return Err(refusal::invalid(
                "There is already a task running. Only one active task is allowed for a source \
                 queue arn at a given time.",
            ));
        }
        let task = NewMoveTask { destination, messages_per_second_max: per_second };
        let handle = self.queues.start_move(&source, task).await.map_err(refusal::fault)?;
        let task_handle = Some(task_handle(&handle, &self.arn(&source.queue)));
        Ok(Reply::StartMessageMoveTask(StartMessageMoveTaskResult { task_handle }))
    }

    /// Checks that a queue is the dead-letter queue of others, and, if its messages go back to those,
    /// that the caller may send to each.
    async fn check_sources(
        &self,
        caller: &Caller,
        dead_letters: &Arc<QueueFacts>,
        back: bool,
    ) -> Result<(), Error> {
        let asks_each = back && caller.user.name.is_some();
        let max = if asks_each { SOURCES_AT_ONCE } else { 1 };
        let mut after: Option<String> = None;
        loop {
            let names = self.queues.dead_letter_sources(dead_letters, after.as_deref(), max).await;
            let names = names.map_err(refusal::fault)?;
            if names.is_empty() && after.is_none() {
                return Err(refusal::invalid(
                    "Source queue must be configured as a Dead Letter Queue.",
                ));
            }
            for name in names.iter().filter(|_| asks_each) {
                let account = Arc::clone(&dead_letters.queue.account);
                let source = QueueRef { account, name: name.as_str().into() };
                // One that went away meanwhile gets nothing.
                if let Some(source) = self.find(&source).await? {
                    self.authorize(caller, Action::SendMessage, &source).await?;
                }
            }
            if !asks_each || names.len() < max {
                return Ok(());
            }
            after = names.last().cloned();
        }
    }

    pub(super) async fn cancel_message_move_task(
        &self,
        caller: &Caller,
        request: CancelMessageMoveTaskRequest,
    ) -> Result<Reply, Error> {
        let given = request.task_handle.filter(|handle| !handle.is_empty());
        let given = given.ok_or_else(|| refusal::missing("TaskHandle"))?;
        let (handle, source_arn) = read_task_handle(&given)
            .ok_or_else(|| refusal::invalid("Value for parameter TaskHandle is invalid."))?;
        let source = self.queue_by_arn(Some(&source_arn), "SourceArn").await?;
        self.authorize(caller, Action::CancelMessageMoveTask, &source).await?;
        let moved = match self.queues.cancel_move(&source, &handle).await {
            Ok(moved) => moved,
            Err(Fault::NotFound(_)) => {
                let kind = ErrorKind::ResourceNotFoundException;
                return Err(refusal::error(kind, "Task does not exist."));
            }
            Err(fault) => return Err(refusal::fault(fault)),
        };
        Ok(Reply::CancelMessageMoveTask(CancelMessageMoveTaskResult {
            approximate_number_of_messages_moved: Some(moved.cast_signed()),
        }))
    }

    pub(super) async fn list_message_move_tasks(
        &self,
        caller: &Caller,
        request: ListMessageMoveTasksRequest,
    ) -> Result<Reply, Error> {
        let source_arn = request.source_arn.as_deref();
        let source = self.queue_by_arn(source_arn, "SourceArn").await?;
        self.authorize(caller, Action::ListMessageMoveTasks, &source).await?;
        let max = request.max_results.unwrap_or(1);
        if !(1..=MOVE_TASKS_LISTED_MAX).contains(&max) {
            let reason = "Must be between 1 and 10, if provided.";
            return Err(refusal::invalid_value(max, "MaxResults", reason));
        }
        let tasks = self.queues.move_tasks(&source, max as usize).await;
        let tasks = tasks.map_err(refusal::fault)?;
        let results = tasks.into_iter().map(|task| self.entry(task)).collect();
        Ok(Reply::ListMessageMoveTasks(ListMessageMoveTasksResult { results }))
    }

    fn entry(&self, task: MoveTask) -> ListMessageMoveTasksResultEntry {
        let source_arn = self.arn(&task.source);
        let running = task.handle.filter(|_| task.state == MoveTaskState::Running);
        let rate = task.task.messages_per_second_max;
        ListMessageMoveTasksResultEntry {
            task_handle: running.map(|handle| task_handle(&handle, &source_arn)),
            status: Some(state(task.state).to_owned()),
            destination_arn: task.task.destination.map(|queue| self.arn(&queue)),
            source_arn: Some(source_arn),
            max_number_of_messages_per_second: rate.map(i64::from),
            approximate_number_of_messages_moved: Some(task.moved.cast_signed()),
            approximate_number_of_messages_to_move: Some(task.to_move.cast_signed()),
            failure_reason: task.failure_reason,
            started_timestamp: Some(task.started_at_ms.cast_signed()),
        }
    }

    async fn queue_by_arn(
        &self,
        arn: Option<&str>,
        parameter: &str,
    ) -> Result<Arc<QueueFacts>, Error> {
        let arn = arn.filter(|arn| !arn.is_empty()).ok_or_else(|| refusal::missing(parameter))?;
        let queue = queue_of_arn(arn).ok_or_else(|| {
            refusal::invalid(format!(
                "You must use this format to specify the {parameter}: \
                 arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
            ))
        })?;
        self.find_now(&queue).await?.ok_or_else(|| {
            let message = format!(
                "The resource that you specified for the {parameter} parameter doesn't exist."
            );
            refusal::error(ErrorKind::ResourceNotFoundException, message)
        })
    }
}

fn per_second(given: Option<i64>) -> Result<Option<u32>, Error> {
    match given {
        None => Ok(None),
        Some(given) if (1..=MOVED_MESSAGES_PER_S_MAX).contains(&given) => Ok(Some(given as u32)),
        Some(given) => {
            let reason = "Must be between 1 and 500, if provided.";
            Err(refusal::invalid_value(given, "MaxNumberOfMessagesPerSecond", reason))
        }
    }
}

fn check_destination(source: &QueueFacts, destination: &QueueFacts) -> Result<(), Error> {
    if source.queue == destination.queue {
        return Err(refusal::invalid(
            "Source queue arn and destination queue arn cannot be the same.",
        ));
    }
    if source.settings.is_fifo() != destination.settings.is_fifo() {
        return Err(refusal::invalid(
            "Source queue and destination queue must be of the same type.",
        ));
    }
    if source.key.class() != destination.key.class() {
        return Err(refusal::invalid(
            "Source queue and destination queue must be of the same Class.",
        ));
    }
    Ok(())
}

const fn state(state: MoveTaskState) -> &'static str {
    match state {
        MoveTaskState::Running => "RUNNING",
        MoveTaskState::Completed => "COMPLETED",
        MoveTaskState::Cancelling => "CANCELLING",
        MoveTaskState::Cancelled => "CANCELLED",
        MoveTaskState::Failed => "FAILED",
    }
}

/// A task's handle for clients, in the form of SQS: the store's, with the queue, whose permissions have
/// to be asked for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskHandle {
    task_id: String,
    source_arn: String,
}

fn task_handle(handle: &str, source_arn: &str) -> String {
    let (task_id, source_arn) = (handle.to_owned(), source_arn.to_owned());
    // Two texts can always be written.
    STANDARD.encode(serde_json::to_vec(&TaskHandle { task_id, source_arn }).unwrap_or_default())
}

/// Reads a task's handle. Returns the store's handle, and the source's ARN.
fn read_task_handle(given: &str) -> Option<(String, String)> {
    let text = STANDARD.decode(given).ok()?;
    let TaskHandle { task_id, source_arn } = serde_json::from_slice(&text).ok()?;
    queue_of_arn(&source_arn)?;
    Some((task_id, source_arn))
}
