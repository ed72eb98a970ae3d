//! The store, as directories use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quelea_cassandra_store::{CassandraSettings, Change as Outcome, ConnectError};
use quelea_elastic_directory::ResultFuture;
use quelea_elastic_directory::meta::{
    Entry, LeaseId, Listing, MetaError, MetaStore, Revision, Txn, TxnOutcome, Watch,
};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::changes::row_of;
use crate::entries::{self, Seen};
use crate::fault::{NAME, timed, unavailable};
use crate::leases;
use crate::limits::{CHANGES_MAX, PAUSE_MS_MAX};
use crate::plan::{Plan, keys, leases, plan};
use crate::tables::{Statement, Tables};
use crate::watch::CassandraWatch;

const COMMIT: &str = "commit a transaction";

/// The store. Cheap to clone; its tasks run on the runtime in which it connected, and end with the last clone.
#[derive(Clone)]
pub struct CassandraMetadata {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) tables: Tables,
    /// A transaction of this process is done: those that watch need not wait for their next look.
    pub(crate) changed: Notify,
    /// The next beat of a lease: another one than the last, whoever has that.
    beats: AtomicI64,
}

impl CassandraMetadata {
    /// Connects, and makes what is missing: the keyspace, its tables, the first revision.
    ///
    /// # Errors
    /// What is wrong with the settings, the nodes, or the rights of the user.
    pub async fn connect(settings: &CassandraSettings) -> Result<Self, ConnectError> {
        let tables = Tables::connect(settings).await?;
        let shared = Shared {
            tables,
            changed: Notify::new(),
            beats: AtomicI64::new(fastrand::i64(1..i64::MAX / 2)),
        };
        let shared = Arc::new(shared);
        leases::keep_ending(&shared);
        Ok(Self { shared })
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), MetaError> {
        let Shared { tables, beats, .. } = self.shared.as_ref();
        loop {
            let beat = beats.fetch_add(1, Ordering::Relaxed);
            let beaten =
                tables.change("keep a lease alive", vec![tables.beat(lease, beat)]).await?;
            match beaten {
                Outcome::Done => return Ok(()),
                Outcome::Refused => return Err(MetaError::LeaseEnded(lease)),
                Outcome::Unknown => pause().await,
            }
        }
    }
}

impl Shared {
    async fn commit(&self, txn: &Txn) -> Result<TxnOutcome, MetaError> {
        if txn.changes.len() > CHANGES_MAX {
            let many =
                format!("it has {} changes, at most {CHANGES_MAX} are possible", txn.changes.len());
            return Err(unavailable(COMMIT, many));
        }
        self.begin().await?;
        let change = Uuid::from_u128(fastrand::u128(..));
        let mut unknown_at = None;
        loop {
            let seen = entries::read(&self.tables, keys(txn)).await?;
            if seen.change == Some(change) {
                return Ok(TxnOutcome::Done(Revision(seen.revision)));
            }
            if unknown_at.is_some_and(|at| seen.revision > at) {
                return Err(unavailable(COMMIT, "nobody knows whether it was done"));
            }
            let Some(plan) = plan(txn, &seen) else { return Ok(TxnOutcome::Refused) };
            if plan.is_empty() {
                return Ok(TxnOutcome::Done(Revision(seen.revision)));
            }
            match self.apply(&plan, &seen, change, Vec::new()).await? {
                Outcome::Done => return Ok(TxnOutcome::Done(Revision(seen.revision + 1))),
                Outcome::Refused => self.check_leases(&plan).await?,
                Outcome::Unknown => unknown_at = Some(seen.revision),
            }
            pause().await;
        }
    }

    /// The revision that all transactions count from.
    async fn begin(&self) -> Result<(), MetaError> {
        // Who was first does not matter, nor whether it is known: what follows finds out.
        if self.tables.revision().await? == 0 {
            self.tables.change(COMMIT, vec![self.tables.begin()]).await?;
        }
        Ok(())
    }

    /// Carries out a plan that was made for what was seen, if nothing has changed since, its leases live, and `conditions`
    /// hold.
    pub(crate) async fn apply<'a>(
        &'a self,
        plan: &Plan,
        seen: &Seen,
        change: Uuid,
        conditions: Vec<Statement<'a>>,
    ) -> Result<Outcome, MetaError> {
        let tables = &self.tables;
        let next = Revision(seen.revision + 1);
        let mut statements = vec![tables.advance(seen.revision, change)];
        statements.extend(conditions);
        statements.extend(leases(plan).into_iter().map(|id| tables.lease_lives(LeaseId(id))));
        for (number, (key, then)) in plan.iter().enumerate() {
            let row = row_of(next, number);
            statements.extend(match then {
                Some(stored) => [tables.put(stored), tables.log_put(row, stored)],
                None => [tables.delete(key), tables.log_gone(row, key, next)],
            });
        }
        if plan.is_empty() {
            // Each revision has a row.
            statements.push(tables.log_gone(row_of(next, 0), "", next));
        }
        let outcome = tables.change(COMMIT, statements).await?;
        if outcome == Outcome::Done {
            self.changed.notify_waiters();
        }
        Ok(outcome)
    }

    async fn check_leases(&self, plan: &Plan) -> Result<(), MetaError> {
        for lease in leases(plan).into_iter().map(LeaseId) {
            if self.tables.lease(lease).await?.is_none() {
                return Err(MetaError::LeaseEnded(lease));
            }
        }
        Ok(())
    }
}

/// Until it is tried again; others do so as well.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS_MAX))).await;
}

impl MetaStore for CassandraMetadata {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError> {
        Box::pin(async move {
            let read = entries::read(&self.shared.tables, vec![key.to_owned()]);
            let mut seen = timed("read an entry", read).await?;
            Ok(seen.entries.remove(key).map(|stored| stored.entry))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError> {
        Box::pin(async move {
            let seen = timed("list all entries", entries::list(&self.shared.tables)).await?;
            let entries = seen.entries.into_values().map(|stored| stored.entry);
            let entries = entries.filter(|entry| entry.key.starts_with(prefix)).collect();
            Ok(Listing { revision: Revision(seen.revision), entries })
        })
    }

    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError> {
        Box::pin(async move { timed(COMMIT, self.shared.commit(&txn)).await })
    }

    fn lease(&self, ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError> {
        Box::pin(timed("grant a lease", leases::grant(&self.shared, ttl)))
    }

    fn keep_alive(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(timed("keep a lease alive", self.keep_alive(lease)))
    }

    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(timed("revoke a lease", leases::revoke(&self.shared, lease)))
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError> {
        let watch = CassandraWatch::new(&self.shared, prefix, after);
        Box::pin(std::future::ready(Ok(Box::new(watch) as Box<dyn Watch>)))
    }
}
