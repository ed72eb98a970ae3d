//! One move task: what was asked for, and how far it is.

use quelea_model::{QueueName, Timestamp, VhostName};

use super::report::{MoveProgress, MoveTaskId, MoveTaskReport, MoveTaskState};
use crate::queues::Queues;
use crate::queues::queue::Queue;
use crate::topology::StoredMove;

#[derive(Clone, Debug)]
pub(crate) struct MoveTask {
    pub(crate) id: MoveTaskId,
    pub(crate) progress: MoveProgress,
    /// What its destination is called, or was.
    pub(crate) destination: Option<(VhostName, QueueName)>,
    /// When the second began in which it moved `moved_in_second`.
    pub(crate) second: Timestamp,
    pub(crate) moved_in_second: u32,
    /// It waits until then, for its rate.
    pub(crate) not_before: Option<Timestamp>,
    /// When its progress was last written.
    pub(crate) noted_at: Timestamp,
}

impl MoveTask {
    /// Creates a task that begins, or goes on, now.
    pub(super) const fn new(id: MoveTaskId, progress: MoveProgress, now: Timestamp) -> Self {
        Self {
            id,
            progress,
            destination: None,
            second: now,
            moved_in_second: 0,
            not_before: None,
            noted_at: now,
        }
    }

    /// Notes what its destination is called, as long as it is there.
    pub(super) fn name_destination(&mut self, queues: &Queues) {
        if let Some(queue) = self.progress.destination.and_then(|id| queues.get(id)) {
            self.destination = Some((queue.vhost_name.clone(), queue.name.clone()));
        }
    }

    /// Returns whether its rate lets it move a message now. A second begins with its first message.
    pub(super) fn may_move(&mut self, now: Timestamp) -> bool {
        let Some(max) = self.progress.per_second_max else {
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

    pub(super) fn has_moved(&mut self) {
        self.progress.moved += 1;
        self.moved_in_second = self.moved_in_second.saturating_add(1);
    }

    pub(super) fn is_running(&self) -> bool {
        self.progress.state == MoveTaskState::Running
    }

    pub(super) fn report(&self) -> MoveTaskReport {
        let destination = self.destination.clone();
        MoveTaskReport { id: self.id, progress: self.progress.clone(), destination }
    }

    pub(super) fn stored(&self, queue: &Queue) -> StoredMove {
        StoredMove {
            vhost: queue.vhost_name.clone(),
            queue: queue.name.clone(),
            number: self.id.number,
            progress: self.progress.clone(),
        }
    }
}
