//! Why calls of SQS fail, and move tasks.

use quelea_model::NameError;
use thiserror::Error;

use super::{LimitReached, NoSuchQueueId};
use crate::sqs::move_tasks::report::{MoveTaskId, MoveTaskState};

/// Why nothing is received.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReceiveError {
    /// The queue is gone.
    #[error(transparent)]
    NoSuchQueue(#[from] NoSuchQueueId),
    /// Too many messages of the queue are in flight.
    #[error("{0}")]
    OverLimit(LimitReached),
    /// Too many wait.
    #[error("{0}")]
    Busy(LimitReached),
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The queue has a length limit, was declared to refuse what is above it, and is full.
    #[error("the queue is full")]
    QueueFull,
    /// Too much is remembered.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
}

/// Why a queue was not made or changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CreateQueueError {
    /// There is no such virtual host.
    #[error("no vhost '{vhost}'")]
    NoSuchVhost {
        /// Its name.
        vhost: String,
    },
    /// There is one of that name.
    #[error("the queue exists")]
    Exists,
    /// One of that name was deleted, and not all of its bindings are out of the log.
    #[error("the queue is being deleted, try again later")]
    BeingDeleted,
    /// The queue is gone.
    #[error(transparent)]
    NoSuchQueue(#[from] NoSuchQueueId),
    /// The name is none.
    #[error(transparent)]
    InvalidName(#[from] NameError),
    /// There are enough of them, or it is too large.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// The broker's own defaults do not go together.
    #[error("{0}")]
    Arguments(String),
}

/// Why a move task was not begun, or not cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// The source or the destination is gone.
    #[error(transparent)]
    NoSuchQueue(#[from] NoSuchQueueId),
    /// The source is the destination.
    #[error("messages cannot be moved to where they are")]
    SameQueue,
    /// The source has a task that is running.
    #[error("{task} is running")]
    Running {
        /// That one.
        task: MoveTaskId,
    },
    /// Enough tasks are running.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// There is no such task, or it is forgotten.
    #[error("there is no {task}")]
    NoSuchTask {
        /// The task.
        task: MoveTaskId,
    },
    /// The task is over.
    #[error("{task} is over")]
    Over {
        /// The task.
        task: MoveTaskId,
        /// How it ended.
        state: MoveTaskState,
    },
}
