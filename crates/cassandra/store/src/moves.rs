//! Move tasks: any front-end carries out those that nobody is at. One that dies is followed by another when its hold ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use quelea_cassandra_fifo::{MoveCall, MovedOut};
use quelea_sqs_protocol::{Fault, MoveTask, MoveTaskState, NewMoveTask, QueueFacts};
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::move_table::{Hold, Stored};
use crate::database::transaction::fresh_id;
use crate::limits::MOVE_TASKS_MAX;
use crate::shared::Shared;
use crate::standard::id_of;
use crate::standard::move_rate::MoveRate;
use crate::standard::move_step::{Step, deleted};

/// For how long whoever is at a task has it, and how often the others ask whether it is free.
const HELD_MS: i64 = 10_000;
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// How long a task pauses that has left messages in both queues.
const AFTER_A_PART: Duration = Duration::from_secs(10);

/// How long a task pauses that cannot move yet what there is.
const AFTER_NOTHING: Duration = Duration::from_secs(1);

impl Shared {
    pub(crate) async fn start_move(
        self: &Arc<Self>,
        facts: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        if let Some(destination) = &task.destination
            && self.queues.record(&self.database, destination).await?.is_none()
        {
            return Err(Fault::NoSuchQueue);
        }
        let (queue, database) = (id_of(facts), &self.database);
        // They are sorted by time, the newest first.
        let handle = database.clock.new_message_id();
        let backlog = match facts.settings.is_fifo() {
            true => self.fifo_backlog(facts).await?,
            false => self.standard.backlog(facts).await?,
        };
        let to_move = backlog.visible;
        let task = MoveTask {
            handle: None,
            state: MoveTaskState::Running,
            source: facts.queue.clone(),
            task,
            moved: 0,
            to_move,
            failure_reason: None,
            started_at_ms: database.clock.now_ms(),
        };
        // Of this claim: a front-end whose hold has ended may claim the task anew while it is still at a step of it.
        let holder = fresh_id();
        if !self.move_tasks.begin(database, queue, handle, holder, self.hold_ms()).await? {
            return Err(Fault::Unsupported("There is already a task running.".to_owned()));
        }
        self.move_tasks.insert(database, queue, handle, &task).await?;
        self.spawn_task(queue, handle, holder);
        Ok(handle.to_string())
    }

    pub(crate) async fn cancel_move(&self, facts: &QueueFacts, handle: &str) -> Result<u64, Fault> {
        let not_found = || Fault::NotFound("There is no running task with this handle.".to_owned());
        let handle: Uuid = handle.parse().map_err(|_| not_found())?;
        let (queue, database) = (id_of(facts), &self.database);
        if !self.move_tasks.cancel(database, queue, handle).await? {
            return Err(not_found());
        }
        // Whoever is at it says so when its step is done.
        let stored = self.move_tasks.read(database, queue, handle).await?;
        let moved = stored.map_or(0, |stored| stored.task.moved);
        Ok(moved)
    }

    pub(crate) async fn list_move_tasks(
        &self,
        facts: &QueueFacts,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        let (queue, database) = (id_of(facts), &self.database);
        let running = self.move_tasks.runs(database, queue).await?;
        let tasks = self.move_tasks.list(database, queue, max.min(MOVE_TASKS_MAX)).await?;
        let shown = |Stored { handle, mut task }: Stored| {
            if task.state == MoveTaskState::Running {
                match running.as_ref().filter(|running| running.handle == handle) {
                    Some(running) if running.is_cancelled => task.state = MoveTaskState::Cancelling,
                    Some(_) => task.handle = Some(handle.to_string()),
                    // It was begun and never written down as ended.
                    None => task.state = MoveTaskState::Failed,
                }
            }
            task
        };
        Ok(tasks.into_iter().map(shown).collect())
    }

    fn hold_ms(&self) -> i64 {
        self.database.clock.now_ms() as i64 + HELD_MS
    }

    /// Looks after tasks that nobody is at, as long as the store is used.
    pub(crate) fn keep_move_tasks_going(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(POLL_INTERVAL).await;
                let Some(shared) = weak.upgrade() else { return };
                if let Err(fault) = shared.take_over_tasks().await {
                    tracing::debug!(%fault, "running move tasks could not be looked for");
                }
            }
        });
    }

    async fn take_over_tasks(self: &Arc<Self>) -> Result<(), Fault> {
        let now_ms = self.database.clock.now_ms() as i64;
        for running in self.move_tasks.running(&self.database).await? {
            let (is_held, holder) = (running.held_until_ms >= now_ms, fresh_id());
            let (database, tasks) = (&self.database, &self.move_tasks);
            if !is_held && tasks.claim(database, &running, holder, self.hold_ms()).await? {
                self.spawn_task(running.queue, running.handle, holder);
            }
        }
        Ok(())
    }

    fn spawn_task(self: &Arc<Self>, queue: Uuid, handle: Uuid, holder: Uuid) {
        let shared = self.clone();
        self.runtime.spawn(async move {
            if let Err(fault) = shared.carry_out(queue, handle, holder).await {
                // Its hold ends, and somebody goes on with it.
                tracing::warn!(%queue, %fault, "a move task was interrupted");
            }
        });
    }

    async fn carry_out(
        self: &Arc<Self>,
        queue: Uuid,
        handle: Uuid,
        holder: Uuid,
    ) -> Result<(), Fault> {
        let (database, tasks) = (&self.database, &self.move_tasks);
        let Some(Stored { mut task, .. }) = tasks.read(database, queue, handle).await? else {
            return tasks.end(database, queue, handle).await.map(drop);
        };
        let rate = MoveRate(task.task.messages_per_second_max);
        while task.state == MoveTaskState::Running {
            let (began, moved_before) = (Instant::now(), task.moved);
            match tasks.renew(database, queue, handle, holder, self.hold_ms()).await? {
                Hold::Lost => return Ok(()),
                Hold::Cancelled => task.state = MoveTaskState::Cancelled,
                Hold::Kept => {
                    if !self.carry_on_held(queue, handle, holder, &mut task).await? {
                        return Ok(());
                    }
                }
            }
            let failure = task.failure_reason.as_deref();
            tasks.progress(database, queue, handle, task.state, task.moved, failure).await?;
            if task.state == MoveTaskState::Running {
                rate.after(began, task.moved - moved_before).await;
            }
        }
        tasks.end(database, queue, handle).await.map(drop)
    }

    /// Carries out one step of a task, which is held however long that takes: two at once would
    /// move messages twice. Returns whether it still is: what becomes of it is for its holder to
    /// say.
    async fn carry_on_held(
        self: &Arc<Self>,
        queue: Uuid,
        handle: Uuid,
        holder: Uuid,
        task: &mut MoveTask,
    ) -> Result<bool, Fault> {
        let hold = pin!(async {
            loop {
                tokio::time::sleep(Duration::from_millis(HELD_MS.unsigned_abs() / 3)).await;
                let (database, until_ms) = (&self.database, self.hold_ms());
                match self.move_tasks.renew(database, queue, handle, holder, until_ms).await {
                    Ok(Hold::Kept | Hold::Cancelled) => {}
                    Ok(Hold::Lost) => return,
                    Err(fault) => {
                        tracing::debug!(%queue, %fault, "a move task's hold was not renewed");
                    }
                }
            }
        });
        match select(pin!(self.carry_on(task)), hold).await {
            Either::Left((done, _)) => done.map(|()| true),
            // Broken off, it would leave messages in both queues.
            Either::Right(((), carried_on)) => carried_on.await.map(|()| false),
        }
    }

    /// Carries out one step of a task, and notes what becomes of it.
    async fn carry_on(self: &Arc<Self>, task: &mut MoveTask) -> Result<(), Fault> {
        match self.step(task).await {
            Ok(Step::Moved(moved)) => {
                task.moved += moved as u64;
            }
            Ok(Step::MovedInPart(moved)) => {
                task.moved += moved as u64;
                tokio::time::sleep(AFTER_A_PART).await;
            }
            Ok(Step::Waits) => tokio::time::sleep(AFTER_NOTHING).await,
            Ok(Step::Done) => task.state = MoveTaskState::Completed,
            Err(Fault::Unavailable(reason)) => return Err(Fault::Unavailable(reason)),
            Err(fault) => {
                task.failure_reason = Some(fault.to_string());
                task.state = MoveTaskState::Failed;
            }
        }
        Ok(())
    }

    /// Moves some messages of the queue's head.
    async fn step(self: &Arc<Self>, task: &MoveTask) -> Result<Step, Fault> {
        let most = MoveRate(task.task.messages_per_second_max).step_rows_max();
        let record = self.queues.record(&self.database, &task.source).await?;
        let facts = record.ok_or_else(deleted)?.facts.clone();
        match facts.settings.is_fifo() {
            true => self.fifo_step(task, &facts, most).await,
            false => self.standard.move_step(task, most).await,
        }
    }

    /// Asks the queue's owner to move its next messages. What comes to the queue later is behind
    /// those that were there when the task began, so that it ends though its messages return.
    async fn fifo_step(
        self: &Arc<Self>,
        task: &MoveTask,
        facts: &QueueFacts,
        most: usize,
    ) -> Result<Step, Fault> {
        let left = usize::try_from(task.to_move.saturating_sub(task.moved)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(Step::Done);
        }
        let wanted = MoveCall { max: most.min(left), to: task.task.destination.clone() };
        Ok(match self.fifo_move_out(facts, wanted).await? {
            MovedOut { moved: 0, is_empty: true } => Step::Done,
            MovedOut { moved: 0, is_empty: false } => Step::Waits,
            MovedOut { moved, .. } => Step::Moved(moved as usize),
        })
    }
}
