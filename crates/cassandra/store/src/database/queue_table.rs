//! Queues by their names: the table `queue`. It changes by lightweight transactions only, and what is read of it is
//! remembered for a moment.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_sqs_protocol::{
    Created, Fault, NewQueue, QueueClass, QueueFacts, QueueKey, QueueRef, QueueSettings,
    RedrivePolicy,
};
use scylla::errors::PrepareError;
use scylla::response::PagingState;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::MaybeUnset;
use uuid::Uuid;

use crate::database::driver;
use crate::database::fault::{unavailable, unreadable};
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, PartitionLocks, Unmade, fresh_id, undecided};
use crate::database::{Database, For};
use crate::limits::{FACTS_AGE_MS_MAX, REMEMBERED_QUEUES_MAX, WAITING_MS_MAX};
use crate::peers::peer_changes::PeerChanges;
use crate::remembered::Remembered;

/// Attempts to make a queue whose name is being made or deleted by others.
const CREATE_ATTEMPTS: usize = 5;

/// Attempts to have a deleted queue's name rest. It is deleted all the same.
const REST_ATTEMPTS: usize = 2;

/// How long the answer to a deletion waits for that.
const REST_PATIENCE: Duration = Duration::from_secs(2);

/// Rows of a page of names.
const PAGE: i32 = 500;

/// A queue, as its row has it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) generation: Uuid,
    pub(crate) purged_at_ms: u64,
}

/// The table, its statements, and what was read of it.
pub(crate) struct QueueTable {
    read: PreparedStatement,
    create: PreparedStatement,
    delete: PreparedStatement,
    rest: PreparedStatement,
    purge: PreparedStatement,
    put_attributes: PreparedStatement,
    put_tags: PreparedStatement,
    list: PreparedStatement,
    all: PreparedStatement,
    remembered: Remembered<QueueRef, Arc<Record>>,
    peer_changes: Arc<PeerChanges>,
    locks: PartitionLocks,
}

type Texts = BTreeMap<String, String>;
type RecordRow = (
    Option<Uuid>,
    Option<Uuid>,
    Option<Texts>,
    Option<Texts>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<Uuid>,
    Option<i64>,
);

/// What a name stands for.
enum NameLookup {
    Queue(Box<Record>, Uuid),
    /// When, in ms, and by which change.
    Deleted(i64, Uuid),
    Nothing,
}

impl QueueTable {
    pub(crate) async fn prepare(
        preparing: &Preparing<'_>,
        peer_changes: Arc<PeerChanges>,
    ) -> Result<Self, PrepareError> {
        let change = |cql: String| async move { preparing.prepare(&cql).await };
        let read = |cql: String| async move {
            let mut prepared = preparing.prepare(&cql).await?;
            prepared.set_is_idempotent(true);
            prepared.set_page_size(PAGE);
            Ok::<_, PrepareError>(prepared)
        };
        let this = "WHERE account = ? AND name = ?";
        Ok(Self {
            read: read(format!(
                "SELECT id, generation, attributes, tags, created_at, modified_at, purged_at, revision, change,
                    deleted_at FROM @queue {this}"
            ))
            .await?,
            create: change(format!(
                "UPDATE @queue SET id = ?, generation = ?, attributes = ?, tags = ?, created_at = ?, modified_at = ?,
                    revision = 1, change = ?, deleted_at = ? {this} IF id = null AND deleted_at = ?"
            ))
            .await?,
            // The row as a whole: of each value that is set to null a tombstone stays, and whoever lists queues reads them all.
            delete: change(format!("DELETE FROM @queue {this} IF id = ?")).await?,
            rest: change(format!(
                "UPDATE @queue USING TTL ? SET deleted_at = ? {this} IF id = null AND deleted_at = null"
            ))
            .await?,
            purge: change(format!(
                "UPDATE @queue SET generation = ?, purged_at = ?, change = ? {this} IF id = ? AND generation = ?"
            ))
            .await?,
            put_attributes: change(format!(
                "UPDATE @queue SET attributes = ?, modified_at = ?, revision = ?, change = ? {this}
                 IF id = ? AND revision = ?"
            ))
            .await?,
            put_tags: change(format!(
                "UPDATE @queue SET tags = ?, modified_at = ?, revision = ?, change = ? {this} IF id = ? AND revision = ?"
            ))
            .await?,
            all: read("SELECT account, name FROM @queue".to_owned()).await?,
            list: read("SELECT name, id, attributes FROM @queue WHERE account = ? AND name >= ? LIMIT ?".to_owned())
                .await?,
            remembered: Remembered::new(
                Duration::from_millis(FACTS_AGE_MS_MAX),
                REMEMBERED_QUEUES_MAX,
            ),
            peer_changes,
            locks: PartitionLocks::default(),
        })
    }

    // -- looking up ---------------------------------------------------------------------------

    /// Returns a queue as it is, or was a moment ago.
    pub(crate) async fn record(
        &self,
        database: &Database,
        queue: &QueueRef,
    ) -> Result<Option<Arc<Record>>, Fault> {
        let now = Instant::now();
        let valid_at =
            |read_at: Instant| self.peer_changes.valid_at(read_at.into(), now.into()).into_std();
        match self.remembered.recall_by(queue, now, valid_at) {
            Some(record) => Ok(Some(record)),
            None => self.record_now(database, queue).await,
        }
    }

    /// Returns a queue as it is.
    pub(crate) async fn record_now(
        &self,
        database: &Database,
        queue: &QueueRef,
    ) -> Result<Option<Arc<Record>>, Fault> {
        let began = Instant::now();
        match self.find(database, queue, None).await? {
            NameLookup::Queue(record, _) => Ok(Some(self.remember(queue, *record, began))),
            NameLookup::Deleted(..) | NameLookup::Nothing => {
                self.remembered.remove(queue);
                Ok(None)
            }
        }
    }

    /// Remembers what was begun to be read at that time.
    fn remember(&self, queue: &QueueRef, record: Record, began: Instant) -> Arc<Record> {
        let record = Arc::new(record);
        self.remembered.remember(queue.clone(), record.clone(), began);
        record
    }

    /// What is remembered of it does not hold any more.
    pub(crate) fn forget(&self, queue: &QueueRef) {
        self.remembered.forget(queue, Instant::now());
    }

    async fn find(
        &self,
        database: &Database,
        queue: &QueueRef,
        level: Option<Consistency>,
    ) -> Result<NameLookup, Fault> {
        let rows = self.select_row(database, queue, level).await?;
        let row = rows.maybe_first_row::<RecordRow>().map_err(unreadable)?;
        Ok(row.map_or(NameLookup::Nothing, |row| found(queue, row)))
    }

    /// Ends or finishes a change of that queue which a node has begun, and whose outcome is unknown: a serial read does.
    pub(crate) async fn settle(&self, database: &Database, queue: &QueueRef) -> Result<(), Fault> {
        self.select_row(database, queue, Some(Consistency::LocalSerial)).await.map(drop)
    }

    async fn select_row(
        &self,
        database: &Database,
        queue: &QueueRef,
        level: Option<Consistency>,
    ) -> Result<QueryRowsResult, Fault> {
        let mut statement = self.read.clone();
        if let Some(level) = level {
            statement.set_consistency(level);
        }
        let values = (queue.account.as_ref(), queue.name.as_ref());
        database.count(For::Upkeep);
        driver::select(&database.session, &statement, &values).await
    }

    // -- changing -----------------------------------------------------------------------------

    /// Makes a queue, unless there is one.
    pub(crate) async fn create(
        &self,
        database: &Database,
        queue: &QueueRef,
        new: &NewQueue,
        cooldown_ms: u64,
    ) -> Result<Created, Fault> {
        let (asked, limit) = (Instant::now(), Duration::from_millis(WAITING_MS_MAX));
        let mut deleted_at_ms: Option<i64> = None;
        for attempt in 0..CREATE_ATTEMPTS {
            // Each may take twice as long as a request where a node is frozen.
            if attempt > 0 && asked.elapsed() >= limit {
                break;
            }
            let (id, generation, change) = (fresh_id(), fresh_id(), fresh_id());
            let (began, now_ms) = (Instant::now(), database.clock.now_ms() as i64);
            let values = (
                id,
                generation,
                &new.attributes,
                &new.tags,
                now_ms,
                now_ms,
                change,
                // What is not there is not set to null, which would leave a tombstone.
                deleted_at_ms.map_or(MaybeUnset::Unset, |_| MaybeUnset::Set(None::<i64>)),
                queue.account.as_ref(),
                queue.name.as_ref(),
                deleted_at_ms,
            );
            let made = self.change(database, queue, &self.create, values).await?;
            // Whoever made it, its row says what it is.
            match self.find(database, queue, Some(Consistency::LocalSerial)).await? {
                NameLookup::Queue(record, last_change) => {
                    let facts = record.facts.clone();
                    self.remember(queue, *record, began);
                    let is_ours = last_change == change
                        || facts.key.id_in(QueueClass::Replicated) == Some(id.as_u128());
                    return Ok(if is_ours { Created::New } else { Created::Exists(facts) });
                }
                NameLookup::Deleted(at_ms, _)
                    if now_ms < at_ms.saturating_add(cooldown_ms as i64) =>
                {
                    return Ok(Created::DeletedRecently);
                }
                NameLookup::Deleted(at_ms, _) => deleted_at_ms = Some(at_ms),
                // It was made, and is deleted already.
                NameLookup::Nothing if matches!(made, Change::Done) => return Ok(Created::New),
                NameLookup::Nothing => deleted_at_ms = None,
            }
        }
        Err(undecided())
    }

    /// Deletes a queue. Its messages end by their age: nobody finds them any more.
    pub(crate) async fn delete(
        &self,
        database: &Database,
        facts: &QueueFacts,
        id: Uuid,
        cooldown_ms: u64,
    ) -> Result<(), Unmade> {
        let queue = &facts.queue;
        let values = (queue.account.as_ref(), queue.name.as_ref(), id);
        let done = self.change(database, queue, &self.delete, values).await?;
        match done {
            Change::Done => {}
            Change::Refused => return Err(Fault::NoSuchQueue.into()),
            Change::Unknown => {
                let found = self.find(database, queue, Some(Consistency::LocalSerial)).await;
                match found.map_err(Unmade::perhaps)? {
                    NameLookup::Queue(record, _) if record.facts.key == facts.key => {
                        return Err(Unmade::perhaps(undecided()));
                    }
                    NameLookup::Queue(..) | NameLookup::Nothing | NameLookup::Deleted(..) => {}
                }
            }
        }
        self.rest(database, queue, cooldown_ms).await;
        Ok(())
    }

    /// Has a deleted queue's name rest: nobody makes a queue of it until then, and what was to make it before and comes late
    /// is refused. Another transaction than the deletion, since of two of one time that one would win; in between somebody may
    /// make a queue, as at the same time.
    async fn rest(&self, database: &Database, queue: &QueueRef, cooldown_ms: u64) {
        // It ends by itself, when the name is to be had again.
        let ttl_s = (cooldown_ms.div_ceil(1_000).max(1)).min(i32::MAX as u64) as i32;
        let now_ms = database.clock.now_ms() as i64;
        let values = (ttl_s, now_ms, queue.account.as_ref(), queue.name.as_ref());
        let attempts = async {
            for _ in 0..REST_ATTEMPTS {
                match self.change(database, queue, &self.rest, values).await {
                    Ok(Change::Done | Change::Refused) => return true,
                    Ok(Change::Unknown) => {}
                    Err(fault) => tracing::debug!(%fault, "a deleted queue's name does not rest"),
                }
            }
            false
        };
        // The queue is deleted, which its client is not to wait for any longer.
        if !tokio::time::timeout(REST_PATIENCE, attempts).await.unwrap_or(false) {
            tracing::warn!(queue = %queue.name, "the name of a deleted queue may be had again at once: Cassandra did not say that it rests");
        }
    }

    /// Begins a new generation of a queue's messages.
    pub(crate) async fn purge(
        &self,
        database: &Database,
        facts: &QueueFacts,
        id: Uuid,
        cooldown_ms: u64,
    ) -> Result<(), Unmade> {
        let (queue, change, generation) = (&facts.queue, fresh_id(), fresh_id());
        let NameLookup::Queue(record, _) =
            self.find(database, queue, Some(Consistency::LocalSerial)).await?
        else {
            return Err(Fault::NoSuchQueue.into());
        };
        if record.facts.key != facts.key {
            return Err(Fault::NoSuchQueue.into());
        }
        let now_ms = database.clock.now_ms();
        if record.purged_at_ms != 0 && now_ms < record.purged_at_ms.saturating_add(cooldown_ms) {
            return Err(Fault::PurgeInProgress.into());
        }
        let values = (
            generation,
            now_ms as i64,
            change,
            queue.account.as_ref(),
            queue.name.as_ref(),
            id,
            record.generation,
        );
        let done = self.change(database, queue, &self.purge, values).await?;
        match done {
            Change::Done => Ok(()),
            // Somebody else was quicker, or it was deleted.
            Change::Refused => {
                let found = self.find(database, queue, Some(Consistency::LocalSerial)).await?;
                let is_there =
                    matches!(found, NameLookup::Queue(record, _) if record.facts.key == facts.key);
                Err(if is_there { Fault::PurgeInProgress } else { Fault::NoSuchQueue }.into())
            }
            Change::Unknown => {
                self.was_made(database, queue, change).await.map_err(Unmade::perhaps)
            }
        }
    }

    /// Replaces attributes, if nothing has changed since the facts were read.
    pub(crate) async fn put_attributes(
        &self,
        database: &Database,
        seen: &QueueFacts,
        id: Uuid,
        attributes: Texts,
    ) -> Result<(), Unmade> {
        self.put(database, &self.put_attributes, seen, id, attributes).await
    }

    /// Replaces tags, as [`QueueTable::put_attributes`].
    pub(crate) async fn put_tags(
        &self,
        database: &Database,
        seen: &QueueFacts,
        id: Uuid,
        tags: Texts,
    ) -> Result<(), Unmade> {
        self.put(database, &self.put_tags, seen, id, tags).await
    }

    async fn put(
        &self,
        database: &Database,
        statement: &PreparedStatement,
        seen: &QueueFacts,
        id: Uuid,
        texts: Texts,
    ) -> Result<(), Unmade> {
        let (queue, change) = (&seen.queue, fresh_id());
        let revision = seen.revision as i64;
        let values = (
            texts,
            database.clock.now_ms() as i64,
            revision.saturating_add(1),
            change,
            queue.account.as_ref(),
            queue.name.as_ref(),
            id,
            revision,
        );
        let done = self.change(database, queue, statement, values).await?;
        match done {
            Change::Done => Ok(()),
            Change::Refused => {
                match self.find(database, queue, Some(Consistency::LocalSerial)).await? {
                    NameLookup::Queue(record, _) if record.facts.key == seen.key => {
                        Err(Fault::Conflict.into())
                    }
                    _ => Err(Fault::NoSuchQueue.into()),
                }
            }
            Change::Unknown => {
                self.was_made(database, queue, change).await.map_err(Unmade::perhaps)
            }
        }
    }

    /// Checks that the last change of a queue was this one, whose outcome is unknown.
    async fn was_made(
        &self,
        database: &Database,
        queue: &QueueRef,
        change: Uuid,
    ) -> Result<(), Fault> {
        match self.find(database, queue, Some(Consistency::LocalSerial)).await? {
            NameLookup::Queue(_, last) | NameLookup::Deleted(_, last) if last == change => Ok(()),
            _ => Err(undecided()),
        }
    }

    async fn change(
        &self,
        database: &Database,
        queue: &QueueRef,
        statement: &PreparedStatement,
        values: impl SerializeRow + Sync,
    ) -> Result<Change, Fault> {
        self.locks.change(database, &queue.account, statement, &values).await
    }

    // -- listing ------------------------------------------------------------------------------

    /// Returns the names of an account's queues, sorted.
    pub(crate) async fn list(
        &self,
        database: &Database,
        account: &str,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        self.select(database, account, prefix, after, max, |_| true).await
    }

    /// Returns the names of an account's queues whose dead-letter queue this is, sorted.
    pub(crate) async fn dead_letter_sources(
        &self,
        database: &Database,
        queue: &QueueRef,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let is_source = |attributes: &Texts| {
            let policy = attributes.get("RedrivePolicy").map(|text| RedrivePolicy::parse(text));
            matches!(policy, Some(Ok(policy)) if policy.dead_letter_queue == *queue)
        };
        self.select(database, &queue.account, "", after, max, is_source).await
    }

    /// Returns some of all queues of the keyspace, and where the others begin.
    pub(crate) async fn page(
        &self,
        database: &Database,
        from: PagingState,
    ) -> Result<(Vec<QueueRef>, Option<PagingState>), Fault> {
        database.count(For::Sweep);
        let page = database.session.execute_single_page(&self.all, (), from).await;
        let (page, next) = page.map_err(|error| unavailable(&error))?;
        let rows = page.into_rows_result().map_err(unreadable)?;
        let mut queues = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<(String, String)>().map_err(unreadable)? {
            let (account, name) = row.map_err(unreadable)?;
            queues.push(QueueRef { account: account.into(), name: name.into() });
        }
        let next = match next.into_paging_control_flow() {
            ControlFlow::Continue(next) => Some(next),
            ControlFlow::Break(()) => None,
        };
        Ok((queues, next))
    }

    async fn select(
        &self,
        database: &Database,
        account: &str,
        prefix: &str,
        after: Option<&str>,
        max: usize,
        is_wanted: impl Fn(&Texts) -> bool,
    ) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        // The smallest name that may come next: a name and a zero byte follows that name directly.
        let mut from = prefix.to_owned();
        if let Some(after) = after.filter(|after| *after >= prefix) {
            from = format!("{after}\0");
        }
        while names.len() < max {
            let values = (account, from.as_str(), PAGE);
            let rows = driver::select(&database.session, &self.list, &values).await?;
            let count = rows.rows_num();
            for row in rows.rows::<(String, Option<Uuid>, Option<Texts>)>().map_err(unreadable)? {
                let (name, id, attributes) = row.map_err(unreadable)?;
                if !name.starts_with(prefix) {
                    return Ok(names);
                }
                from = format!("{name}\0");
                if id.is_some() && names.len() < max && is_wanted(&attributes.unwrap_or_default()) {
                    names.push(name);
                }
            }
            if count < PAGE as usize {
                break;
            }
        }
        Ok(names)
    }
}

fn found(queue: &QueueRef, row: RecordRow) -> NameLookup {
    let (id, generation, attributes, tags, created, modified, purged, revision, change, deleted_at) =
        row;
    let change = change.unwrap_or_default();
    let (Some(id), Some(generation)) = (id, generation) else {
        return deleted_at.map_or(NameLookup::Nothing, |at_ms| NameLookup::Deleted(at_ms, change));
    };
    let ms = |stored: Option<i64>| stored.unwrap_or_default().max(0).unsigned_abs();
    let attributes = attributes.unwrap_or_default();
    let facts = QueueFacts {
        key: QueueKey::new(QueueClass::Replicated, id.as_u128()),
        queue: queue.clone(),
        revision: ms(revision),
        settings: QueueSettings::of(&attributes),
        attributes,
        tags: tags.unwrap_or_default(),
        created_at_ms: ms(created),
        modified_at_ms: ms(modified),
    };
    NameLookup::Queue(
        Box::new(Record { facts: Arc::new(facts), generation, purged_at_ms: ms(purged) }),
        change,
    )
}
