//! What others see of a move task: its handle, how far it is, and why it failed.

use std::fmt;
use std::str::FromStr;

use quelea_model::{QueueId, QueueName, Seq, Timestamp, VhostName};
use thiserror::Error;

/// A task. As text it is the handle that cancels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveTaskId {
    /// From where it moves.
    pub source: QueueId,
    /// Tasks of a source are counted from 1.
    pub(crate) number: u64,
}

impl fmt::Display for MoveTaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "move-{}-{}", self.source.0, self.number)
    }
}

/// A text is not the handle of a move task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this is not the handle of a move task")]
pub struct NoMoveTaskId;

impl FromStr for MoveTaskId {
    type Err = NoMoveTaskId;

    /// Parses a task's text. Strict: each task has one text.
    fn from_str(text: &str) -> Result<Self, NoMoveTaskId> {
        let parse = || {
            let (source, number) = text.strip_prefix("move-")?.split_once('-')?;
            Some(Self { source: QueueId(source.parse().ok()?), number: number.parse().ok()? })
        };
        parse().filter(|id| id.to_string() == text).ok_or(NoMoveTaskId)
    }
}

/// How far a task is. One that is cancelled has stopped when that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveTaskState {
    /// At it.
    Running,
    /// All that it could move is moved.
    Completed,
    /// Stopped by request.
    Cancelled,
    /// Stopped at a message that it could not move; that one is still in the source.
    Failed(MoveFailure),
}

/// Why a message could not be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoveFailure {
    /// The message does not say which queue it came from, or one that does not redrive here.
    #[error("a message does not say which queue it came from")]
    SourceUnknown,
    /// The queue that it was to go to is gone.
    #[error("the destination queue does not exist")]
    DestinationGone,
    /// The queue that it was to go to takes no more.
    #[error("the destination queue is full")]
    DestinationFull,
    /// The message cannot be read any more.
    #[error("the source queue does not have the message any more")]
    SourceGone,
}

/// A task as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTaskReport {
    /// The task.
    pub id: MoveTaskId,
    /// How far it is.
    pub progress: MoveProgress,
    /// Virtual host and name of the destination, which may be gone by now. Not known of one that was
    /// gone already when the broker started.
    pub destination: Option<(VhostName, QueueName)>,
}

/// What was asked of a task, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveProgress {
    /// Where to; `None`: where each message came from.
    pub destination: Option<QueueId>,
    /// Messages a second at most.
    pub per_second_max: Option<u32>,
    /// Whether it runs, or how it ended.
    pub state: MoveTaskState,
    /// It moves messages with smaller numbers.
    pub(crate) before: Seq,
    /// Messages moved so far.
    pub moved: u64,
    /// Messages that were visible when it began.
    pub to_move: u64,
    /// When it began.
    pub started_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_back_and_nothing_else_is() {
        let id = MoveTaskId { source: QueueId(7), number: 12 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "move-7", "move-7-", "move-07-12", "move-7-12 ", "move-+7-12", "x-7-12"] {
            assert_eq!(text.parse::<MoveTaskId>(), Err(NoMoveTaskId), "{text}");
        }
    }
}
