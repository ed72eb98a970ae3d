//! Tasks that move the messages of a dead-letter queue: back to where each came from, or to another
//! queue.
//!
//! A task moves what was in its source when it began, as far as it is visible and in the source's
//! order, so it ends although messages come back meanwhile. Each move is atomic in the log. A task
//! goes on after a restart; what it had moved is then known to a second or so.

mod task;

use std::collections::{BTreeMap, VecDeque};

use quelea_model::limits::{MOVE_TASKS_KEPT, MOVE_TASKS_RUNNING_MAX};
use quelea_model::{Message, QueueId, Timestamp};
use quelea_store::{Durability, QueuedMessage, StoreState, Ticket};

use crate::Broker;
use crate::dead_letter::{source_of, without_source};
use crate::death::Reason;
use crate::error::{LimitReached, MoveError, NoSuchQueueId};
use crate::queue::{Choice, Queue};
use crate::topology::{Item, StoredMove};
pub(crate) use task::MoveTask;
pub use task::{MoveFailure, MoveTaskId, MoveTaskReport, MoveTaskState, NoMoveTaskId};

/// Messages that one task moves before everything else has its turn.
const MOVES_PER_TURN: u32 = 512;

/// How often the log is told how far a running task is.
const NOTED_EVERY_MS: u64 = 1_000;

/// The tasks of all queues.
#[derive(Debug, Default)]
pub(crate) struct MoveTasks {
    /// By source; the last ones, oldest first. Only the newest may be running.
    by_source: BTreeMap<QueueId, VecDeque<MoveTask>>,
    /// The sources of those that are running.
    running: Vec<QueueId>,
}

impl MoveTasks {
    /// When the next task that waits for its rate goes on.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.running.iter().filter_map(|source| self.running(*source)?.not_before).min()
    }

    /// Takes a task that was recovered.
    pub(crate) fn restore(&mut self, task: MoveTask) {
        let source = task.id.source;
        if task.state == MoveTaskState::Running {
            self.running.push(source);
        }
        let tasks = self.by_source.entry(source).or_default();
        // Keys do not sort by number.
        let at = tasks.partition_point(|other| other.id.number < task.id.number);
        tasks.insert(at, task);
    }

    fn running(&self, source: QueueId) -> Option<&MoveTask> {
        let task = self.by_source.get(&source)?.back()?;
        (task.state == MoveTaskState::Running).then_some(task)
    }

    fn running_mut(&mut self, source: QueueId) -> Option<&mut MoveTask> {
        let task = self.by_source.get_mut(&source)?.back_mut()?;
        (task.state == MoveTaskState::Running).then_some(task)
    }
}

/// Why a turn of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// There is more to move at once.
    More,
    /// It goes on when a message has been read, the log has written, or its time has come.
    Waits,
    /// It is over.
    Ended(MoveTaskState),
}

impl Broker {
    /// Begins to move the messages that are in a queue now; to the destination, or each to the queue
    /// that it was redriven from.
    ///
    /// # Errors
    /// [`MoveError`].
    pub fn start_move(
        &mut self,
        now: Timestamp,
        source: QueueId,
        destination: Option<QueueId>,
        per_second_max: Option<u32>,
    ) -> Result<(MoveTaskId, Ticket), MoveError> {
        for queue in [Some(source), destination].into_iter().flatten() {
            if !self.queues.contains_key(&queue) {
                return Err(NoSuchQueueId { queue }.into());
            }
        }
        if destination == Some(source) {
            return Err(MoveError::SameQueue);
        }
        if let Some(task) = self.move_tasks.running(source) {
            return Err(MoveError::Running { task: task.id });
        }
        if self.move_tasks.running.len() >= MOVE_TASKS_RUNNING_MAX {
            let what = String::from("another move task that runs");
            return Err(LimitReached { what, limit: MOVE_TASKS_RUNNING_MAX }.into());
        }
        self.show_due(source, now);
        let to_move = self.queues.get(&source).map_or(0, |queue| queue.ready.len() as u64);
        let tasks = self.move_tasks.by_source.entry(source).or_default();
        let number = tasks.back().map_or(1, |last| last.id.number + 1);
        let id = MoveTaskId { source, number };
        tasks.push_back(MoveTask {
            id,
            destination,
            per_second_max,
            state: MoveTaskState::Running,
            before: self.next_seq,
            moved: 0,
            to_move,
            started_at: now,
            second: now,
            moved_in_second: 0,
            not_before: None,
            noted_at: now,
        });
        let forgotten = if tasks.len() > MOVE_TASKS_KEPT { tasks.pop_front() } else { None };
        self.move_tasks.running.push(source);
        if let Some(item) = forgotten.and_then(|task| self.stored_move(&task)) {
            self.unpersist(&item);
        }
        self.note_move(source);
        self.touch(source);
        Ok((id, self.ticket(Durability::Fsync)))
    }

    /// Ends a task; gives the number of messages that it has moved.
    ///
    /// # Errors
    /// [`MoveError`] if there is no such task, or it is over.
    pub fn cancel_move(&mut self, id: MoveTaskId) -> Result<(u64, Ticket), MoveError> {
        let tasks = self.move_tasks.by_source.get(&id.source);
        let task = tasks.and_then(|tasks| tasks.iter().find(|task| task.id == id));
        let state = task.ok_or(MoveError::NoSuchTask { task: id })?.state;
        if state != MoveTaskState::Running {
            return Err(MoveError::Over { task: id, state });
        }
        let moved = task.map_or(0, |task| task.moved);
        self.end_move(id.source, MoveTaskState::Cancelled);
        Ok((moved, self.ticket(Durability::Fsync)))
    }

    /// The last tasks of a source, the newest first.
    #[must_use]
    pub fn move_tasks(&self, source: QueueId) -> Vec<MoveTaskReport> {
        let tasks = self.move_tasks.by_source.get(&source);
        tasks.map_or_else(Vec::new, |tasks| tasks.iter().rev().map(MoveTask::report).collect())
    }

    /// Gives each running task a turn. True: there is more to do at once.
    pub(crate) fn run_move_tasks(&mut self, now: Timestamp) -> bool {
        let mut more = false;
        let mut at = 0;
        while let Some(source) = self.move_tasks.running.get(at).copied() {
            match self.move_turn(source, now) {
                Turn::Ended(state) => {
                    // Its place is another's now.
                    self.end_move(source, state);
                    continue;
                }
                Turn::More => more = true,
                Turn::Waits => {}
            }
            self.note_progress(source, now);
            at += 1;
        }
        more
    }

    fn move_turn(&mut self, source: QueueId, now: Timestamp) -> Turn {
        if let Some(task) = self.move_tasks.running_mut(source) {
            // Unless it waits for its rate, something else wakes it.
            task.not_before = None;
        }
        let mut moved = 0;
        let turn = loop {
            if moved == MOVES_PER_TURN {
                break Turn::More;
            }
            // What is appended waits to be written, or there is no place for it. Memory does not
            // matter: what was read to be moved would only be read again.
            let is_backed_up = self.store.pending_bytes() >= self.config.store_pending_bytes_max;
            if is_backed_up || *self.store.state() != StoreState::Healthy {
                break Turn::Waits;
            }
            match self.move_next(source, now) {
                None => moved += 1,
                Some(turn) => break turn,
            }
        };
        if moved > 0 {
            self.follow_up(source);
        }
        turn
    }

    /// Moves one message, or says why not.
    fn move_next(&mut self, source: QueueId, now: Timestamp) -> Option<Turn> {
        let Some(task) = self.move_tasks.running_mut(source) else {
            return Some(Turn::Ended(MoveTaskState::Cancelled));
        };
        if !task.may_move(now) {
            return Some(Turn::Waits);
        }
        let (before, destination) = (task.before, task.destination);
        let queue = self.queues.get_mut(&source)?;
        let choice = queue.choose(None, None);
        let seq = match choice {
            Choice::Nothing => return Some(Turn::Ended(MoveTaskState::Completed)),
            Choice::Absent(Some(seq)) if seq >= before => {
                return Some(Turn::Ended(MoveTaskState::Completed));
            }
            Choice::Absent(seq) => {
                match seq {
                    Some(seq) => self.read_one(source, seq),
                    None => self.read_ahead(source, now),
                }
                return Some(Turn::Waits);
            }
            Choice::This(seq) => Some(seq),
            Choice::Front => queue.ready.head_seq(),
        };
        if seq.is_some_and(|seq| seq >= before) {
            return Some(Turn::Ended(MoveTaskState::Completed));
        }
        let message = queue.take(choice)?;
        queue.read_ahead.given_out();
        if message.expires_at.is_some_and(|at| at <= now) {
            self.counters.expired += 1;
            queue.discard(message, Reason::Expired);
            return None;
        }
        match self.move_taken(source, destination, &message, now) {
            Ok(()) => {
                if let Some(task) = self.move_tasks.running_mut(source) {
                    task.has_moved(now);
                }
                None
            }
            Err(failure) => {
                self.put_back(source, message);
                Some(Turn::Ended(MoveTaskState::Failed(failure)))
            }
        }
    }

    fn move_taken(
        &mut self,
        source: QueueId,
        destination: Option<QueueId>,
        message: &QueuedMessage,
        now: Timestamp,
    ) -> Result<(), MoveFailure> {
        let (Some(queue), Some(body)) = (self.queues.get(&source), &message.body) else {
            return Err(MoveFailure::SourceGone);
        };
        let to = match destination {
            Some(id) => self.queues.contains_key(&id).then_some(id),
            None => self.came_from(queue, body)?,
        };
        let to = to.filter(|to| *to != source).ok_or(MoveFailure::DestinationGone)?;
        let bare = without_source(body);
        if !self.move_message(source, message, to, &bare, now) {
            return Err(MoveFailure::DestinationFull);
        }
        if let Some(queue) = self.queues.get_mut(&source) {
            queue.left(message.entry.seq);
        }
        Ok(())
    }

    /// The queue that a message was redriven from; `None` if it is gone. Whoever may publish to a
    /// dead-letter queue can write the header too, so only a queue that still redrives to this one
    /// is meant: a task puts messages nowhere else.
    fn came_from(&self, queue: &Queue, body: &Message) -> Result<Option<QueueId>, MoveFailure> {
        let name = source_of(body).ok_or(MoveFailure::SourceUnknown)?;
        let vhost = self.vhosts.get(queue.vhost.0);
        let Some(id) = vhost.and_then(|vhost| vhost.queues.get(&*name).copied()) else {
            return Ok(None);
        };
        let redrive = self.queues.get(&id).and_then(|origin| origin.settings().redrive.as_ref());
        match redrive.is_some_and(|redrive| *redrive.target == *queue.name.as_str()) {
            true => Ok(Some(id)),
            false => Err(MoveFailure::SourceUnknown),
        }
    }

    fn end_move(&mut self, source: QueueId, state: MoveTaskState) {
        self.move_tasks.running.retain(|running| *running != source);
        if let Some(task) = self.move_tasks.running_mut(source) {
            task.state = state;
            task.not_before = None;
        }
        self.note_move(source);
    }

    /// Tells the log how far a task is, now and then.
    fn note_progress(&mut self, source: QueueId, now: Timestamp) {
        if let Some(task) = self.move_tasks.running_mut(source)
            && task.moved > 0
            && now.since_ms(task.noted_at) >= NOTED_EVERY_MS
        {
            task.noted_at = now;
            self.note_move(source);
        }
    }

    /// Writes the newest task of a source.
    fn note_move(&mut self, source: QueueId) {
        let tasks = self.move_tasks.by_source.get(&source);
        let newest = tasks.and_then(|tasks| tasks.back());
        if let Some(item) = newest.and_then(|task| self.stored_move(task)) {
            self.persist(&item);
        }
    }

    fn stored_move(&self, task: &MoveTask) -> Option<Item> {
        let queue = self.queues.get(&task.id.source).filter(|queue| queue.keeps_messages())?;
        Some(Item::Move(task.stored(queue)))
    }

    /// The source is deleted: so are its tasks.
    pub(crate) fn forget_moves(&mut self, queue: &Queue) {
        self.move_tasks.running.retain(|running| *running != queue.id);
        let tasks = self.move_tasks.by_source.remove(&queue.id).unwrap_or_default();
        for task in tasks.iter().filter(|_| queue.keeps_messages()) {
            self.unpersist(&Item::Move(task.stored(queue)));
        }
    }

    /// A task that was stored, of a queue that is there.
    pub(crate) fn restore_move(&mut self, source: QueueId, stored: &StoredMove, now: Timestamp) {
        self.move_tasks.restore(MoveTask::restored(source, stored, now));
    }
}
