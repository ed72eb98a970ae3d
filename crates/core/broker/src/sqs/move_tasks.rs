//! Tasks that move the messages of a dead-letter queue: back to where each came from, or to another
//! queue.
//!
//! A task moves what was in its source when it began, as far as it is visible and in the source's
//! order, so it ends although messages come back meanwhile. Each move is atomic in the log. A task
//! goes on after a restart; what it had moved is then known to a second or so.

pub(crate) mod report;
mod task;

use std::collections::{BTreeMap, VecDeque};

use quelea_model::limits::{MOVE_TASKS_KEPT, MOVE_TASKS_RUNNING_MAX};
use quelea_model::{Message, QueueId, Timestamp};
use quelea_store::QueuedMessage;

use crate::error::{LimitReached, MoveError, NoSuchQueueId};
use crate::log::Log;
use crate::messaging::{Messaging, source_of, without_source};
use crate::queues::Queues;
use crate::queues::queue::dead_letters::DeadLetterReason;
use crate::queues::queue::{Choice, Queue};
use crate::topology::{Item, StoredMove};
use report::{MoveFailure, MoveProgress, MoveTaskId, MoveTaskReport, MoveTaskState};
use task::MoveTask;

/// Messages that one task moves before everything else has its turn.
const MOVES_PER_TURN: u32 = 512;

/// How often the progress of a running task is written.
const NOTED_EVERY_MS: u64 = 1_000;

/// The tasks of all queues.
#[derive(Debug, Default)]
pub(crate) struct MoveTasks {
    /// By source; the last ones, oldest first. Only the newest may be running.
    by_source: BTreeMap<QueueId, VecDeque<MoveTask>>,
    /// The sources of those that are running.
    running: Vec<QueueId>,
}

/// Why a task stopped moving for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveStop {
    /// There is more to move at once.
    More,
    /// It goes on when a message has been read, the log has written, or its time has come.
    Waits,
    /// It is over.
    Ended(MoveTaskState),
}

impl MoveTasks {
    /// Returns when the next task that waits for its rate goes on.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.running.iter().filter_map(|source| self.running(*source)?.not_before).min()
    }

    /// Begins to move the messages that are in a queue now; to the destination, or each to the queue
    /// that it was redriven from.
    ///
    /// # Errors
    /// [`MoveError`].
    pub(crate) fn start(
        &mut self,
        messaging: &mut Messaging,
        now: Timestamp,
        source: QueueId,
        destination: Option<QueueId>,
        per_second_max: Option<u32>,
    ) -> Result<MoveTaskId, MoveError> {
        for queue in [Some(source), destination].into_iter().flatten() {
            if !messaging.queues.contains(queue) {
                return Err(NoSuchQueueId { queue }.into());
            }
        }
        if destination == Some(source) {
            return Err(MoveError::SameQueue);
        }
        if let Some(task) = self.running(source) {
            return Err(MoveError::Running { task: task.id });
        }
        if self.running.len() >= MOVE_TASKS_RUNNING_MAX {
            let what = String::from("another move task that runs");
            return Err(LimitReached { what, limit: MOVE_TASKS_RUNNING_MAX }.into());
        }
        messaging.queues.make_due_visible(&mut messaging.log, source, now);
        let to_move = messaging.queues.get(source).map_or(0, |queue| queue.ready.len() as u64);
        let tasks = self.by_source.entry(source).or_default();
        let number = tasks.back().map_or(1, |last| last.id.number + 1);
        let id = MoveTaskId { source, number };
        let progress = MoveProgress {
            destination,
            per_second_max,
            state: MoveTaskState::Running,
            before: messaging.queues.next_seq(),
            moved: 0,
            to_move,
            started_at: now,
        };
        let mut task = MoveTask::new(id, progress, now);
        task.name_destination(&messaging.queues);
        tasks.push_back(task);
        let forgotten = if tasks.len() > MOVE_TASKS_KEPT { tasks.pop_front() } else { None };
        self.running.push(source);
        if let Some(item) = forgotten.and_then(|task| stored(&messaging.queues, &task)) {
            messaging.log.unpersist(&item);
        }
        self.persist(messaging, source);
        messaging.queues.wake(source);
        Ok(id)
    }

    /// Ends a task. Returns the number of messages that it has moved.
    ///
    /// # Errors
    /// [`MoveError`] if there is no such task, or it is over.
    pub(crate) fn cancel(
        &mut self,
        messaging: &mut Messaging,
        id: MoveTaskId,
    ) -> Result<u64, MoveError> {
        let tasks = self.by_source.get(&id.source);
        let task = tasks.and_then(|tasks| tasks.iter().find(|task| task.id == id));
        let MoveProgress { state, moved, .. } =
            task.ok_or(MoveError::NoSuchTask { task: id })?.progress;
        if state != MoveTaskState::Running {
            return Err(MoveError::Over { task: id, state });
        }
        self.end(messaging, id.source, MoveTaskState::Cancelled);
        Ok(moved)
    }

    /// Returns the last tasks of a source, the newest first.
    pub(crate) fn reports(&self, source: QueueId) -> Vec<MoveTaskReport> {
        let tasks = self.by_source.get(&source);
        tasks.map_or_else(Vec::new, |tasks| tasks.iter().rev().map(MoveTask::report).collect())
    }

    /// Runs each task for a while. True: there is more to do at once.
    pub(crate) fn run(&mut self, messaging: &mut Messaging, now: Timestamp) -> bool {
        let mut more = false;
        let mut at = 0;
        while let Some(source) = self.running.get(at).copied() {
            match self.run_one(messaging, source, now) {
                MoveStop::Ended(state) => {
                    // Its place is another's now.
                    self.end(messaging, source, state);
                    continue;
                }
                MoveStop::More => more = true,
                MoveStop::Waits => {}
            }
            self.persist_progress(messaging, source, now);
            at += 1;
        }
        more
    }

    fn run_one(&mut self, messaging: &mut Messaging, source: QueueId, now: Timestamp) -> MoveStop {
        if let Some(task) = self.running_mut(source) {
            // Unless it waits for its rate, something else wakes it.
            task.not_before = None;
        }
        let mut moved = 0;
        let stop = loop {
            if moved == MOVES_PER_TURN {
                break MoveStop::More;
            }
            // What is appended waits to be written, or there is no place for it.
            if !messaging.log.takes_moved(messaging.clients.config.store_pending_bytes_max) {
                break MoveStop::Waits;
            }
            match self.move_next(messaging, source, now) {
                None => moved += 1,
                Some(stop) => break stop,
            }
        };
        if moved > 0 {
            messaging.queues.reschedule(source);
        }
        stop
    }

    /// Moves one message, or says why not.
    fn move_next(
        &mut self,
        messaging: &mut Messaging,
        source: QueueId,
        now: Timestamp,
    ) -> Option<MoveStop> {
        let Some(task) = self.running_mut(source) else {
            return Some(MoveStop::Ended(MoveTaskState::Cancelled));
        };
        if !task.may_move(now) {
            return Some(MoveStop::Waits);
        }
        let MoveProgress { before, destination, .. } = task.progress;
        let queue = messaging.queues.get_mut(source)?;
        let choice = queue.choose(None, None);
        let seq = match choice {
            Choice::Nothing => return Some(MoveStop::Ended(MoveTaskState::Completed)),
            Choice::Absent(Some(seq)) if seq >= before => {
                return Some(MoveStop::Ended(MoveTaskState::Completed));
            }
            Choice::Absent(seq) => {
                match seq {
                    Some(seq) => messaging.queues.read_one(&mut messaging.log, source, seq),
                    None => messaging.queues.read_head(&mut messaging.log, source, now),
                }
                return Some(MoveStop::Waits);
            }
            Choice::This(seq) => Some(seq),
            Choice::Front => queue.ready.head_seq(),
        };
        if seq.is_some_and(|seq| seq >= before) {
            return Some(MoveStop::Ended(MoveTaskState::Completed));
        }
        let message = queue.take(choice)?;
        queue.read_ahead.given_out();
        if message.expires_at.is_some_and(|at| at <= now) {
            messaging.counters.expired += 1;
            queue.discard(message, DeadLetterReason::Expired);
            return None;
        }
        match move_taken(messaging, source, destination, &message, now) {
            Ok(()) => {
                if let Some(task) = self.running_mut(source) {
                    task.has_moved();
                }
                None
            }
            Err(failure) => {
                messaging.queues.put_back(&mut messaging.log, source, message);
                Some(MoveStop::Ended(MoveTaskState::Failed(failure)))
            }
        }
    }

    fn end(&mut self, messaging: &mut Messaging, source: QueueId, state: MoveTaskState) {
        self.running.retain(|running| *running != source);
        if let Some(task) = self.running_mut(source) {
            task.progress.state = state;
            task.not_before = None;
        }
        self.persist(messaging, source);
    }

    /// Writes how far a task is, now and then.
    fn persist_progress(&mut self, messaging: &mut Messaging, source: QueueId, now: Timestamp) {
        if let Some(task) = self.running_mut(source)
            && task.progress.moved > 0
            && now.since_ms(task.noted_at) >= NOTED_EVERY_MS
        {
            task.noted_at = now;
            self.persist(messaging, source);
        }
    }

    /// Writes the newest task of a source.
    fn persist(&self, messaging: &mut Messaging, source: QueueId) {
        let tasks = self.by_source.get(&source);
        let newest = tasks.and_then(|tasks| tasks.back());
        if let Some(item) = newest.and_then(|task| stored(&messaging.queues, task)) {
            messaging.log.persist(&item);
        }
    }

    /// The source is deleted: so are its tasks.
    pub(crate) fn remove_queue(&mut self, log: &mut Log, queue: &Queue) {
        self.running.retain(|running| *running != queue.id);
        let tasks = self.by_source.remove(&queue.id).unwrap_or_default();
        for task in tasks.iter().filter(|_| queue.keeps_messages()) {
            log.unpersist(&Item::Move(task.stored(queue)));
        }
    }

    /// A task that was stored, of a queue that is there.
    pub(crate) fn restore(&mut self, source: QueueId, stored: StoredMove, now: Timestamp) {
        let id = MoveTaskId { source, number: stored.number };
        let task = MoveTask::new(id, stored.progress, now);
        if task.is_running() {
            self.running.push(source);
        }
        let tasks = self.by_source.entry(source).or_default();
        // Keys do not sort by number.
        let at = tasks.partition_point(|other| other.id.number < task.id.number);
        tasks.insert(at, task);
    }

    /// Notes what the tasks' destinations are called, once all queues are known.
    pub(crate) fn name_destinations(&mut self, queues: &Queues) {
        let tasks = self.by_source.values_mut().flatten();
        tasks.for_each(|task| task.name_destination(queues));
    }

    fn running(&self, source: QueueId) -> Option<&MoveTask> {
        let task = self.by_source.get(&source)?.back()?;
        task.is_running().then_some(task)
    }

    fn running_mut(&mut self, source: QueueId) -> Option<&mut MoveTask> {
        let task = self.by_source.get_mut(&source)?.back_mut()?;
        task.is_running().then_some(task)
    }
}

/// Moves a message that was taken out of its queue.
fn move_taken(
    messaging: &mut Messaging,
    source: QueueId,
    destination: Option<QueueId>,
    message: &QueuedMessage,
    now: Timestamp,
) -> Result<(), MoveFailure> {
    let (Some(queue), Some(body)) = (messaging.queues.get(source), &message.body) else {
        return Err(MoveFailure::SourceGone);
    };
    let to = match destination {
        Some(id) => messaging.queues.contains(id).then_some(id),
        None => came_from(&messaging.queues, queue, body)?,
    };
    let to = to.filter(|to| *to != source).ok_or(MoveFailure::DestinationGone)?;
    let bare = without_source(body);
    if !messaging.move_message(source, message, to, &bare, now) {
        return Err(MoveFailure::DestinationFull);
    }
    if let Some(queue) = messaging.queues.get_mut(source) {
        queue.forget_visible(message.entry.seq);
    }
    Ok(())
}

/// Returns the queue that a message was redriven from; `None` if it is gone. Whoever may publish to
/// a dead-letter queue can write the header too, so only a queue that still redrives to this one is
/// meant: a task puts messages nowhere else.
fn came_from(
    queues: &Queues,
    queue: &Queue,
    body: &Message,
) -> Result<Option<QueueId>, MoveFailure> {
    let name = source_of(body).ok_or(MoveFailure::SourceUnknown)?;
    let Some(id) = queues.find(queue.vhost, &name) else {
        return Ok(None);
    };
    let redrive = queues.get(id).and_then(|origin| origin.settings().redrive.as_ref());
    match redrive.is_some_and(|redrive| *redrive.target == *queue.name.as_str()) {
        true => Ok(Some(id)),
        false => Err(MoveFailure::SourceUnknown),
    }
}

/// Returns a task as the log keeps it, if its source survives a restart.
fn stored(queues: &Queues, task: &MoveTask) -> Option<Item> {
    let queue = queues.get(task.id.source).filter(|queue| queue.keeps_messages())?;
    Some(Item::Move(task.stored(queue)))
}
