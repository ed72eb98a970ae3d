//! One move task: what was asked for, and how far it is.

use std::fmt;
use std::str::FromStr;

use quelea_model::{QueueId, Seq, Timestamp};
use thiserror::Error;

use crate::queue::Queue;
use crate::topology::StoredMove;

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

    /// Strict: each task has one text.
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
    /// Where to; `None`: where each message came from.
    pub destination: Option<QueueId>,
    /// Messages a second at most.
    pub per_second_max: Option<u32>,
    /// How far it is.
    pub state: MoveTaskState,
    /// Messages moved so far.
    pub moved: u64,
    /// Messages that were visible when it began.
    pub to_move: u64,
    /// When it began.
    pub started_at: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct MoveTask {
    pub(crate) id: MoveTaskId,
    pub(crate) destination: Option<QueueId>,
    pub(crate) per_second_max: Option<u32>,
    pub(crate) state: MoveTaskState,
    /// It moves messages with smaller numbers.
    pub(crate) before: Seq,
    pub(crate) moved: u64,
    pub(crate) to_move: u64,
    pub(crate) started_at: Timestamp,
    /// When the second began in which it moved `moved_in_second`.
    pub(crate) second: Timestamp,
    pub(crate) moved_in_second: u32,
    /// It waits until then, for its rate.
    pub(crate) not_before: Option<Timestamp>,
    /// When the log was last told of it.
    pub(crate) noted_at: Timestamp,
}

impl MoveTask {
    /// Whether its rate lets it move a message now. A second begins with its first message.
    pub(super) fn may_move(&mut self, now: Timestamp) -> bool {
        let Some(max) = self.per_second_max else {
            return true;
        };
        let end = self.second.plus_ms(1_000);
        if now >= end || self.moved_in_second == 0 {
            self.second = now;
            self.moved_in_second = 0;
        }
        let may = self.moved_in_second < max.max(1);
        self.not_before = (!may).then_some(end);
        may
    }

    pub(super) fn has_moved(&mut self, _now: Timestamp) {
        self.moved += 1;
        self.moved_in_second = self.moved_in_second.saturating_add(1);
    }

    pub(super) fn report(&self) -> MoveTaskReport {
        MoveTaskReport {
            id: self.id,
            destination: self.destination,
            per_second_max: self.per_second_max,
            state: self.state,
            moved: self.moved,
            to_move: self.to_move,
            started_at: self.started_at,
        }
    }

    pub(super) fn stored(&self, queue: &Queue) -> StoredMove {
        StoredMove {
            vhost: queue.vhost_name.clone(),
            queue: queue.name.clone(),
            number: self.id.number,
            destination: self.destination,
            per_second_max: self.per_second_max,
            state: self.state,
            before: self.before,
            moved: self.moved,
            to_move: self.to_move,
            started_at: self.started_at,
        }
    }

    pub(super) fn restored(source: QueueId, stored: &StoredMove, now: Timestamp) -> Self {
        Self {
            id: MoveTaskId { source, number: stored.number },
            destination: stored.destination,
            per_second_max: stored.per_second_max,
            state: stored.state,
            before: stored.before,
            moved: stored.moved,
            to_move: stored.to_move,
            started_at: stored.started_at,
            second: now,
            moved_in_second: 0,
            not_before: None,
            noted_at: now,
        }
    }
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
