//! The stored move tasks of a queue.

use quelea_model::{QueueId, QueueName, Seq, Timestamp, VhostName};

use super::codec::{Reader, Writer};
use super::error::TopologyError;
use crate::sqs::move_tasks::report::{MoveFailure, MoveProgress, MoveTaskState};

const HAS_DESTINATION: u8 = 1;
const HAS_RATE: u8 = 2;

/// A task, running or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredMove {
    pub(crate) vhost: VhostName,
    /// The source.
    pub(crate) queue: QueueName,
    pub(crate) number: u64,
    pub(crate) progress: MoveProgress,
}

impl StoredMove {
    pub(super) fn write_key(&self, out: &mut Writer) {
        out.text(self.vhost.as_str());
        out.text(self.queue.as_str());
        out.u64(self.number);
    }

    pub(super) fn write_value(&self, out: &mut Writer) {
        let task = &self.progress;
        out.flags(&[
            (HAS_DESTINATION, task.destination.is_some()),
            (HAS_RATE, task.per_second_max.is_some()),
        ]);
        out.one_of(&STATES, &task.state);
        out.u32(task.destination.map_or(0, |queue| queue.0));
        out.u32(task.per_second_max.unwrap_or(0));
        out.u64(task.before.0);
        out.u64(task.moved);
        out.u64(task.to_move);
        out.u64(task.started_at.as_millis());
    }

    pub(super) fn read(
        key: &mut Reader<'_>,
        value: &mut Reader<'_>,
    ) -> Result<Self, TopologyError> {
        let vhost = key.name("vhost name", VhostName::parse)?;
        let queue = key.name("queue name", QueueName::parse)?;
        let number = key.u64("number of the task")?;
        let bits = [HAS_DESTINATION, HAS_RATE];
        let [has_destination, has_rate] = value.flags("flags", bits)?;
        let state = value.one_of("state", &STATES)?;
        let destination = QueueId(value.u32("destination")?);
        let per_second_max = value.u32("messages a second")?;
        let progress = MoveProgress {
            destination: has_destination.then_some(destination),
            per_second_max: has_rate.then_some(per_second_max),
            state,
            before: Seq(value.u64("first message that stays")?),
            moved: value.u64("messages moved")?,
            to_move: value.u64("messages to move")?,
            started_at: Timestamp::from_millis(value.u64("time of the start")?),
        };
        Ok(Self { vhost, queue, number, progress })
    }
}

/// States with their numbers on disk.
const STATES: [(u8, MoveTaskState); 7] = [
    (1, MoveTaskState::Running),
    (2, MoveTaskState::Completed),
    (3, MoveTaskState::Cancelled),
    (4, MoveTaskState::Failed(MoveFailure::SourceUnknown)),
    (5, MoveTaskState::Failed(MoveFailure::DestinationGone)),
    (6, MoveTaskState::Failed(MoveFailure::DestinationFull)),
    (7, MoveTaskState::Failed(MoveFailure::SourceGone)),
];
