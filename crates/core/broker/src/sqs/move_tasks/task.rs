//! One move task: what was asked for, and how far it is.

use quelea_model::{QueueId, Seq, Timestamp};

use super::report::{MoveTaskId, MoveTaskReport, MoveTaskState};
use crate::queues::queue::Queue;
use crate::topology::StoredMove;

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
    /// When its progress was last written.
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
