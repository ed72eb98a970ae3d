//! Leases: given, ended by whoever sees that their time is over, and given up.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use quelea_cassandra_store::Change as Outcome;
use quelea_elastic_directory::meta::{LeaseId, MetaError};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use crate::entries;
use crate::fault::timed;
use crate::lease_observations::{LeaseObservations, ObservedLease};
use crate::limits::{CHANGES_MAX, LEASES_EVERY};
use crate::plan::Plan;
use crate::shared::{Shared, pause};
use crate::tables::{LeaseRow, Tables, lease_of, unsigned};

/// Why a lease ends.
#[derive(Clone, Copy)]
enum End {
    /// Its beat stands still: it has to be this one all the while.
    Over(i64),
    /// Its holder wants it so.
    Revoked,
}

/// Grants a new lease.
pub(crate) async fn grant(shared: &Shared, ttl: Duration) -> Result<LeaseId, MetaError> {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
    loop {
        // Nobody has drawn this one, nor will.
        let lease = LeaseId(fastrand::u64(1..i64::MAX.unsigned_abs()));
        let given = vec![shared.tables.new_lease(lease, ttl_ms)];
        if shared.tables.change("grant a lease", given).await? == Outcome::Done {
            return Ok(lease);
        }
        // One of which that is not known ends by itself.
        pause().await;
    }
}

/// Keeps a lease alive: changes its beat.
pub(crate) async fn keep_alive(shared: &Shared, lease: LeaseId) -> Result<(), MetaError> {
    let tables = &shared.tables;
    loop {
        let beat = vec![tables.beat(lease, shared.next_beat())];
        match tables.change("keep a lease alive", beat).await? {
            Outcome::Done => return Ok(()),
            Outcome::Refused => return Err(MetaError::LeaseEnded(lease)),
            Outcome::Unknown => pause().await,
        }
    }
}

/// Ends a lease with its entries.
pub(crate) async fn revoke(shared: &Shared, lease: LeaseId) -> Result<(), MetaError> {
    end(shared, lease, End::Revoked).await.map(drop)
}

/// Ends all leases whose time is over, as long as the store is used.
pub(crate) fn keep_ending(shared: &Arc<Shared>) {
    tokio::spawn(watch_all(Arc::downgrade(shared)));
}

async fn watch_all(shared: Weak<Shared>) {
    let mut observations = LeaseObservations::default();
    let mut ticks = tokio::time::interval(LEASES_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if let Err(error) = end_expired(&shared, &mut observations).await {
            tracing::debug!(%error, "leases of directories were not looked at");
        }
    }
}

async fn end_expired(
    shared: &Shared,
    observations: &mut LeaseObservations,
) -> Result<(), MetaError> {
    let began = Instant::now();
    let found = timed("list leases", list(&shared.tables)).await?;
    for ObservedLease { lease, beat, .. } in observations.observe(began, Instant::now(), &found) {
        match timed("end a lease", end(shared, lease, End::Over(beat))).await {
            Ok(true) => tracing::info!("the lease {:016x} of a directory has ended", lease.0),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "the lease {:016x} has not ended", lease.0),
        }
    }
    Ok(())
}

async fn list(tables: &Tables) -> Result<Vec<ObservedLease>, MetaError> {
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let rows = tables.leases_after(&after).await?;
        let Some(last) = rows.last() else { return Ok(found) };
        after.clone_from(&last.0);
        found.extend(rows.into_iter().filter_map(observed));
    }
}

fn observed((key, beat, ttl_ms): LeaseRow) -> Option<ObservedLease> {
    let ttl = Duration::from_millis(unsigned(ttl_ms).max(1));
    Some(ObservedLease { lease: lease_of(&key)?, beat: beat?, ttl })
}

/// Removes a lease's entries, as many at once as a transaction may change, and with the last of them the lease. From the first on
/// its holder cannot keep it, and whoever goes on after a failure finds it still there, with no time left. Returns whether it was ended here: somebody else may have done it,
/// and one whose time seemed to be over may live again.
async fn end(shared: &Shared, lease: LeaseId, why: End) -> Result<bool, MetaError> {
    let tables = &shared.tables;
    let mut seen = entries::list(tables).await?;
    loop {
        let held = seen.entries.iter().filter(|(_, stored)| stored.lease == Some(lease));
        let plan: Plan = held.map(|(key, _)| (key.clone(), None)).take(CHANGES_MAX).collect();
        let is_last = plan.len() < CHANGES_MAX;
        let condition = match (why, is_last) {
            (End::Over(beat), true) => tables.end_lease(lease, beat),
            (End::Over(beat), false) => tables.begin_to_end_lease(lease, beat),
            (End::Revoked, true) => tables.revoke_lease(lease),
            (End::Revoked, false) => tables.begin_to_revoke_lease(lease),
        };
        let change = Uuid::from_u128(fastrand::u128(..));
        let outcome = shared.apply(&plan, &seen, change, vec![condition]).await?;
        if outcome == Outcome::Done && is_last {
            return Ok(true);
        }
        if outcome != Outcome::Done {
            let found = tables.lease(lease).await?;
            let stands = found.and_then(observed).is_some_and(|found| match why {
                End::Over(beat) => found.beat == beat,
                End::Revoked => true,
            });
            if !stands {
                return Ok(false);
            }
            // Another transaction came in between.
            pause().await;
        }
        entries::catch_up(tables, &mut seen, tables.revision().await?).await?;
    }
}
