//! What the store's clones, its watches and its task share; and a transaction, from what it finds to its outcome.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quelea_cassandra_store::Change as Outcome;
use quelea_elastic_directory::meta::{LeaseId, MetaError, Revision, Txn, TxnOutcome};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::changes::row_of;
use crate::entries::{self, EntriesRead};
use crate::fault::unavailable;
use crate::limits::{CHANGES_MAX, PAUSE_MS_MAX};
use crate::plan::{Plan, keys, leases, plan};
use crate::tables::{Statement, Tables};

const COMMIT: &str = "commit a transaction";

pub(crate) struct Shared {
    pub(crate) tables: Tables,
    /// A transaction of this process is done: those that watch need not wait for their next look.
    pub(crate) changed: Notify,
    /// The next beat of a lease: another one than the last, whoever has that.
    beats: AtomicI64,
}

impl Shared {
    pub(crate) fn new(tables: Tables) -> Self {
        let beats = AtomicI64::new(fastrand::i64(1..i64::MAX / 2));
        Self { tables, changed: Notify::new(), beats }
    }

    /// Returns a beat that no lease has had.
    pub(crate) fn next_beat(&self) -> i64 {
        self.beats.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn commit(&self, txn: &Txn) -> Result<TxnOutcome, MetaError> {
        if txn.changes.len() > CHANGES_MAX {
            let many =
                format!("it has {} changes, at most {CHANGES_MAX} are possible", txn.changes.len());
            return Err(unavailable(COMMIT, many));
        }
        let change = Uuid::from_u128(fastrand::u128(..));
        let mut unknown_at = None;
        loop {
            let seen = entries::read(&self.tables, keys(txn)).await?;
            if seen.change == Some(change) {
                return Ok(TxnOutcome::Done(Revision(seen.revision)));
            }
            match unknown_at {
                // Another one has come in its place: it cannot be done there any more.
                Some(at) if seen.revision == at + 1 => unknown_at = None,
                Some(at) if seen.revision > at => {
                    return Err(unavailable(COMMIT, "nobody knows whether it was done"));
                }
                _ => {}
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

    /// Carries out a plan that was made for what was seen, if nothing has changed since, its leases live, and `conditions`
    /// hold.
    pub(crate) async fn apply<'a>(
        &'a self,
        plan: &Plan,
        seen: &EntriesRead,
        change: Uuid,
        conditions: Vec<Statement<'a>>,
    ) -> Result<Outcome, MetaError> {
        let tables = &self.tables;
        let next = Revision(seen.revision + 1);
        if seen.revision == 0 {
            // What all transactions count from. Who was first does not matter: what follows finds out.
            tables.change(COMMIT, vec![tables.begin()]).await?;
        }
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
            let found = self.tables.lease(lease).await?;
            if found.is_none_or(|(_, _, ttl_ms)| ttl_ms.is_none_or(|ttl_ms| ttl_ms <= 0)) {
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
