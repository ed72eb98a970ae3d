//! Move tasks, as Cassandra has them: what each has done, in `move_task`; and who carries out those that run, in
//! `running_move_task`, which has one row a queue and changes by lightweight transactions.

use quelea_sqs_protocol::{Fault, MoveTask, MoveTaskState, NewMoveTask, QueueRef};
use scylla::errors::PrepareError;
use scylla::response::query_result::QueryRowsResult;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use uuid::Uuid;

use crate::database::Database;
use crate::database::driver;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, Write, change, undecided};

/// For how long an ended task is remembered, in seconds.
const TTL_S: i32 = 14 * 86_400;

pub(crate) struct MoveTable {
    begin: PreparedStatement,
    claim: PreparedStatement,
    renew: PreparedStatement,
    cancel: PreparedStatement,
    end: PreparedStatement,
    running: PreparedStatement,
    runs: PreparedStatement,
    insert: PreparedStatement,
    progress: PreparedStatement,
    list: PreparedStatement,
    read: PreparedStatement,
}

/// A task that runs, and who last said that it is at it, until when.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) queue: Uuid,
    pub(crate) handle: Uuid,
    pub(crate) held_until_ms: i64,
    pub(crate) holder: Option<Uuid>,
    pub(crate) is_cancelled: bool,
}

/// Whether somebody may go on with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It goes on.
    Kept,
    /// It ends.
    Cancelled,
    /// Somebody else has it.
    Lost,
}

/// A task with its handle.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) handle: Uuid,
    pub(crate) task: MoveTask,
}

const COLUMNS: &str =
    "handle, state, source, destination, per_second, moved, to_move, failure, started_at";

impl MoveTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| async move { preparing.prepare(&cql).await };
        let one = "WHERE slot = 0 AND queue = ?";
        Ok(Self {
            begin: prepare(
                "INSERT INTO @running_move_task (slot, queue, handle, holder, held_until) VALUES (0, ?, ?, ?, ?)
                 IF NOT EXISTS"
                    .to_owned(),
            )
            .await?,
            claim: prepare(format!(
                "UPDATE @running_move_task SET holder = ?, held_until = ? {one} IF handle = ? AND held_until < ?"
            ))
            .await?,
            renew: prepare(format!(
                "UPDATE @running_move_task SET held_until = ? {one}
                 IF handle = ? AND holder = ? AND is_cancelled = null"
            ))
            .await?,
            cancel: prepare(format!(
                "UPDATE @running_move_task SET is_cancelled = true {one} IF handle = ?"
            ))
            .await?,
            end: prepare(format!("DELETE FROM @running_move_task {one} IF handle = ?")).await?,
            running: prepare("SELECT queue, handle, held_until, holder, is_cancelled FROM @running_move_task WHERE slot = 0".to_owned()).await?,
            runs: prepare(format!("SELECT queue, handle, held_until, holder, is_cancelled FROM @running_move_task {one}")).await?,
            insert: prepare(format!(
                "INSERT INTO @move_task (queue, handle, state, source, destination, per_second, moved, to_move,
                    started_at) VALUES (?, ?, 'RUNNING', ?, ?, ?, 0, ?, ?) USING TTL {TTL_S}"
            ))
            .await?,
            progress: prepare(format!(
                "UPDATE @move_task USING TTL {TTL_S} SET state = ?, moved = ?, failure = ?
                 WHERE queue = ? AND handle = ?"
            ))
            .await?,
            list: prepare(format!("SELECT {COLUMNS} FROM @move_task WHERE queue = ? LIMIT ?")).await?,
            read: prepare(format!("SELECT {COLUMNS} FROM @move_task WHERE queue = ? AND handle = ?")).await?,
        })
    }

    /// Enters a task that runs. `false`: another of that queue does.
    pub(crate) async fn begin(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
        holder: Uuid,
        held_until_ms: i64,
    ) -> Result<bool, Fault> {
        let values = (queue, handle, holder, held_until_ms);
        let is_ours = |runs: Option<Running>| runs.map(|runs| runs.handle == handle);
        self.change(database, queue, (&self.begin, &values), is_ours).await
    }

    /// Takes a task over that nobody is at.
    pub(crate) async fn claim(
        &self,
        database: &Database,
        running: &Running,
        holder: Uuid,
        held_until_ms: i64,
    ) -> Result<bool, Fault> {
        let now_ms = database.clock.now_ms() as i64;
        let Running { queue, handle, .. } = *running;
        let values = (holder, held_until_ms, queue, handle, now_ms);
        let is_held = |runs: Running| {
            (runs.handle, runs.holder, runs.held_until_ms) == (handle, Some(holder), held_until_ms)
        };
        // One that is claimed late is nobody's until that hold ends.
        let is_ours = |runs: Option<Running>| Some(runs.is_some_and(is_held));
        self.change(database, queue, (&self.claim, &values), is_ours).await
    }

    /// Says that this holder still is at it, until then.
    pub(crate) async fn renew(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
        holder: Uuid,
        held_until_ms: i64,
    ) -> Result<Hold, Fault> {
        let values = (held_until_ms, queue, handle, holder);
        let is_ours = |runs: &Running| runs.handle == handle && runs.holder == Some(holder);
        let is_kept = |runs: Option<Running>| match runs.filter(is_ours) {
            Some(ours) if ours.held_until_ms == held_until_ms => Some(true),
            Some(ours) => ours.is_cancelled.then_some(false),
            None => Some(false),
        };
        if self.change(database, queue, (&self.renew, &values), is_kept).await? {
            return Ok(Hold::Kept);
        }
        let ours = self.runs(database, queue).await?.filter(is_ours);
        Ok(if ours.is_some_and(|ours| ours.is_cancelled) { Hold::Cancelled } else { Hold::Lost })
    }

    /// Stops a task after its step. `false`: it does not run.
    pub(crate) async fn cancel(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
    ) -> Result<bool, Fault> {
        let is_cancelled = |runs: Option<Running>| match runs {
            Some(runs) if runs.handle == handle => runs.is_cancelled.then_some(true),
            _ => Some(false),
        };
        self.change(database, queue, (&self.cancel, &(queue, handle)), is_cancelled).await
    }

    /// Ends a task. `false`: it does not run.
    pub(crate) async fn end(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
    ) -> Result<bool, Fault> {
        let is_over = |runs: Option<Running>| match runs {
            Some(runs) if runs.handle == handle => None,
            _ => Some(true),
        };
        self.change(database, queue, (&self.end, &(queue, handle)), is_over).await
    }

    /// Changes the row of a queue, and returns whether that was done. Where Cassandra does not say, `row_says` does by what
    /// there is then, or does not know either.
    async fn change(
        &self,
        database: &Database,
        queue: Uuid,
        (statement, values): Write<'_>,
        row_says: impl FnOnce(Option<Running>) -> Option<bool>,
    ) -> Result<bool, Fault> {
        match change(database, statement, values).await? {
            Change::Done => Ok(true),
            Change::Refused => Ok(false),
            Change::Unknown => {
                let mut runs = self.runs.clone();
                runs.set_consistency(Consistency::LocalSerial);
                let rows = driver::select(&database.session, &runs, &(queue,)).await?;
                row_says(running(&rows)?.pop()).ok_or_else(undecided)
            }
        }
    }

    /// Returns the tasks that run, of all queues.
    pub(crate) async fn running(&self, database: &Database) -> Result<Vec<Running>, Fault> {
        running(&driver::select(&database.session, &self.running, &()).await?)
    }

    /// Returns which task of a queue runs.
    pub(crate) async fn runs(
        &self,
        database: &Database,
        queue: Uuid,
    ) -> Result<Option<Running>, Fault> {
        Ok(running(&driver::select(&database.session, &self.runs, &(queue,)).await?)?.pop())
    }

    /// Writes a new task.
    pub(crate) async fn insert(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
        task: &MoveTask,
    ) -> Result<(), Fault> {
        let name = |queue: &QueueRef| (queue.account.to_string(), queue.name.to_string());
        let values = (
            queue,
            handle,
            name(&task.source),
            task.task.destination.as_ref().map(name),
            task.task.messages_per_second_max.map(|rate| rate as i32),
            task.to_move as i64,
            task.started_at_ms as i64,
        );
        driver::write(&database.session, &self.insert, &values).await
    }

    /// Writes how far a task is.
    pub(crate) async fn progress(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
        state: MoveTaskState,
        moved: u64,
        failure: Option<&str>,
    ) -> Result<(), Fault> {
        driver::write(
            &database.session,
            &self.progress,
            &(name_of(state), moved as i64, failure, queue, handle),
        )
        .await
    }

    /// Returns the last tasks of a queue, newest first.
    pub(crate) async fn list(
        &self,
        database: &Database,
        queue: Uuid,
        max: usize,
    ) -> Result<Vec<Stored>, Fault> {
        stored(&driver::select(&database.session, &self.list, &(queue, max as i32)).await?)
    }

    /// Returns one task.
    pub(crate) async fn read(
        &self,
        database: &Database,
        queue: Uuid,
        handle: Uuid,
    ) -> Result<Option<Stored>, Fault> {
        Ok(stored(&driver::select(&database.session, &self.read, &(queue, handle)).await?)?.pop())
    }
}

fn running(rows: &QueryRowsResult) -> Result<Vec<Running>, Fault> {
    let mut found = Vec::with_capacity(rows.rows_num());
    type Row = (Uuid, Option<Uuid>, Option<i64>, Option<Uuid>, Option<bool>);
    for row in rows.rows::<Row>().map_err(unreadable)? {
        let (queue, handle, held_until, holder, is_cancelled) = row.map_err(unreadable)?;
        let Some(handle) = handle else { continue };
        found.push(Running {
            queue,
            handle,
            held_until_ms: held_until.unwrap_or_default(),
            holder,
            is_cancelled: is_cancelled == Some(true),
        });
    }
    Ok(found)
}

fn stored(rows: &QueryRowsResult) -> Result<Vec<Stored>, Fault> {
    type Row = (
        Uuid,
        Option<String>,
        Option<(String, String)>,
        Option<(String, String)>,
        Option<i32>,
        Option<i64>,
        Option<i64>,
        Option<String>,
        Option<i64>,
    );
    let named =
        |(account, name): (String, String)| QueueRef { account: account.into(), name: name.into() };
    let count = |stored: Option<i64>| stored.unwrap_or_default().max(0).unsigned_abs();
    let mut tasks = Vec::with_capacity(rows.rows_num());
    for row in rows.rows::<Row>().map_err(unreadable)? {
        let (handle, state, source, destination, rate, moved, to_move, failure, started) =
            row.map_err(unreadable)?;
        // What a late note of an ended task has left.
        let (Some(state), Some(source)) = (state.as_deref().and_then(state_of), source) else {
            continue;
        };
        let task = MoveTask {
            handle: None,
            state,
            source: named(source),
            task: NewMoveTask {
                destination: destination.map(named),
                messages_per_second_max: rate.and_then(|rate| u32::try_from(rate).ok()),
            },
            moved: count(moved),
            to_move: count(to_move),
            failure_reason: failure,
            started_at_ms: count(started),
        };
        tasks.push(Stored { handle, task });
    }
    Ok(tasks)
}

const STATES: [(MoveTaskState, &str); 5] = [
    (MoveTaskState::Running, "RUNNING"),
    (MoveTaskState::Completed, "COMPLETED"),
    (MoveTaskState::Cancelling, "CANCELLING"),
    (MoveTaskState::Cancelled, "CANCELLED"),
    (MoveTaskState::Failed, "FAILED"),
];

fn name_of(state: MoveTaskState) -> &'static str {
    STATES.iter().find(|(one, _)| *one == state).map_or("FAILED", |(_, name)| name)
}

fn state_of(name: &str) -> Option<MoveTaskState> {
    STATES.iter().find(|(_, one)| *one == name).map(|(state, _)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_name_of_its_own() {
        for (state, name) in STATES {
            assert_eq!((name_of(state), state_of(name)), (name, Some(state)));
        }
        assert_eq!(state_of("running"), None);
    }
}
