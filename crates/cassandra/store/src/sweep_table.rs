//! What the sweep asks of Cassandra: the partitions of messages, the messages in them, and the entries of the index.

use std::ops::ControlFlow;

use quelea_sqs_protocol::{Consistency, Fault, QueueRef};
use scylla::errors::PrepareError;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::{Database, For};
use crate::fault::{unavailable, unreadable};
use crate::preparing::Preparing;
use crate::queue::BUCKET_TTL_S;
use crate::statements::{AtEach, prepare};

/// Rows of one read.
pub(crate) const PAGE: usize = 500;

/// The statements.
pub(crate) struct SweepTable {
    queues: PreparedStatement,
    list: AtEach,
    unlist: AtEach,
    bodies: AtEach,
    buckets: AtEach,
    messages: AtEach,
    entries: AtEach,
}

/// A message, as the sweep finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) bucket: Bucket,
    /// Where the last change of its visibility has put it, and when that was written; 0: nobody has changed it.
    pub(crate) lease_visible_at_us: i64,
    pub(crate) lease_written_at_us: i64,
}

impl SweepTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let mut queues = preparing.prepare("SELECT account, name FROM @queue").await?;
        queues.set_page_size(PAGE as i32);
        queues.set_is_idempotent(true);
        let at_each = async |cql: &str| prepare(preparing, cql.to_owned()).await;
        Ok(Self {
            queues,
            list: at_each(
                "INSERT INTO @bucket (generation, shard, start, level) VALUES (?, 1, ?, ?) USING TIMESTAMP ? AND TTL ?",
            )
            .await?,
            unlist: at_each(
                "DELETE FROM @bucket USING TIMESTAMP ? WHERE generation = ? AND shard = 1 AND start = ? AND level = ?",
            )
            .await?,
            bodies: at_each(
                "SELECT start, level FROM @bucket WHERE generation = ? AND shard = 1 AND (start, level) > (?, ?) LIMIT ?",
            )
            .await?,
            buckets: at_each(
                "SELECT start, level FROM @bucket WHERE generation = ? AND shard = 0 AND (start, level) > (?, ?) LIMIT ?",
            )
            .await?,
            messages: at_each(
                "SELECT message, sender, lease_visible_at, lease_written_at FROM @message
                 WHERE generation = ? AND shard = 0 AND start = ? AND level = ? AND message > ? LIMIT ?",
            )
            .await?,
            entries: at_each(
                "SELECT visible_at, message FROM @entry
                 WHERE generation = ? AND shard = 0 AND start = ? AND level = ? AND (visible_at, message) > (?, ?)
                 LIMIT ?",
            )
            .await?,
        })
    }

    /// Some of all queues of the keyspace, and where the others begin.
    pub(crate) async fn queues(
        &self,
        database: &Database,
        from: PagingState,
    ) -> Result<(Vec<QueueRef>, Option<PagingState>), Fault> {
        database.count(For::Sweep);
        let page = database.session.execute_single_page(&self.queues, (), from).await;
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

    /// Says that messages are in these partitions.
    pub(crate) async fn list(
        &self,
        database: &Database,
        consistency: Consistency,
        generation: Uuid,
        buckets: &[Bucket],
        now_us: i64,
    ) -> Result<(), Fault> {
        let value =
            |bucket: &Bucket| (generation, bucket.start_s, bucket.level, now_us, BUCKET_TTL_S);
        let values = buckets.iter().map(value).collect();
        database.write(For::Upkeep, &self.list, consistency, values).await
    }

    /// No messages are there any more, nor will there be.
    pub(crate) async fn unlist(
        &self,
        database: &Database,
        generation: Uuid,
        bucket: Bucket,
        now_us: i64,
    ) -> Result<(), Fault> {
        let values = vec![(now_us, generation, bucket.start_s, bucket.level)];
        database.write(For::Sweep, &self.unlist, Consistency::LocalQuorum, values).await
    }

    /// Some of the partitions with messages, behind one of them, in order.
    pub(crate) async fn bodies(
        &self,
        database: &Database,
        generation: Uuid,
        after: Bucket,
    ) -> Result<Vec<Bucket>, Fault> {
        self.listed(database, &self.bodies, generation, after).await
    }

    /// The same of those with entries.
    pub(crate) async fn buckets(
        &self,
        database: &Database,
        generation: Uuid,
        after: Bucket,
    ) -> Result<Vec<Bucket>, Fault> {
        self.listed(database, &self.buckets, generation, after).await
    }

    async fn listed(
        &self,
        database: &Database,
        statement: &AtEach,
        generation: Uuid,
        after: Bucket,
    ) -> Result<Vec<Bucket>, Fault> {
        let values = (generation, after.start_s, after.level, PAGE as i32);
        let found = database.read(For::Sweep, statement, Consistency::LocalQuorum, values).await?;
        let mut buckets = Vec::with_capacity(found.rows_num());
        for row in found.rows::<(i64, i8)>().map_err(unreadable)? {
            let (start_s, level) = row.map_err(unreadable)?;
            buckets.extend(Bucket::stored(start_s, level));
        }
        Ok(buckets)
    }

    /// Some of the messages of a partition, behind one of them, and the last that was read, if there may be more.
    pub(crate) async fn messages(
        &self,
        database: &Database,
        generation: Uuid,
        bucket: Bucket,
        after: Uuid,
    ) -> Result<(Vec<(Uuid, Found)>, Option<Uuid>), Fault> {
        let values = (generation, bucket.start_s, bucket.level, after, PAGE as i32);
        let read = database.read(For::Sweep, &self.messages, Consistency::LocalQuorum, values);
        let read = read.await?;
        let (mut found, mut last) = (Vec::with_capacity(read.rows_num()), None);
        type Row = (Uuid, Option<String>, Option<i64>, Option<i64>);
        for row in read.rows::<Row>().map_err(unreadable)? {
            let (message, sender, visible_at_us, written_at_us) = row.map_err(unreadable)?;
            last = Some(message);
            // What is left of a message that was deleted is none.
            if sender.is_some() {
                let lease_visible_at_us = visible_at_us.unwrap_or_default();
                let lease_written_at_us = written_at_us.unwrap_or_default();
                found.push((message, Found { bucket, lease_visible_at_us, lease_written_at_us }));
            }
        }
        Ok((found, last.filter(|_| read.rows_num() == PAGE)))
    }

    /// Some of the entries of a partition, behind one of them: when they are visible, and of which message.
    pub(crate) async fn entries(
        &self,
        database: &Database,
        generation: Uuid,
        bucket: Bucket,
        after: (i64, Uuid),
    ) -> Result<Vec<(i64, Uuid)>, Fault> {
        let (visible_at_us, message) = after;
        let values =
            (generation, bucket.start_s, bucket.level, visible_at_us, message, PAGE as i32);
        let read = database.read(For::Sweep, &self.entries, Consistency::LocalQuorum, values);
        let read = read.await?;
        let rows = read.rows::<(i64, Uuid)>().map_err(unreadable)?;
        rows.map(|row| row.map_err(unreadable)).collect()
    }
}
