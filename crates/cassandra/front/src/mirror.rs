//! Users, permissions and access keys of Cassandra in the memory of the node beside it: so AMQP logins, permissions and
//! signatures ask nobody, and go on by what was known last while Cassandra does not answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quelea_broker::AccessKey as BrokerKey;
use quelea_broker::access::{AccessRecords, Permission, User as BrokerUser};
use quelea_broker::report::QueueReport;
use quelea_cassandra_store::{CassandraIdentity, IdentityRevisions};
use quelea_model::{Timestamp, VhostName};
use quelea_node::CoreHandle;
use quelea_sqs_protocol::{
    AccessKeyRecord, Fault, IdentityDirectory, PermissionRecord, TakenOver, UserRecord, VhostRecord,
};
use tokio::sync::Mutex;

use crate::takeover::take_over;

/// How often what other front-ends have changed is looked for: by the revisions that a change leaves.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often all is read whatever those say: front-ends from before version 4 of the schema leave none.
const READ_EVERY: Duration = Duration::from_secs(30);

/// Cassandra's users and keys, which the node's memory follows. Cheap to clone.
#[derive(Clone)]
pub struct MirroredIdentity {
    identity: CassandraIdentity,
    core: CoreHandle,
    /// How many changes were made here.
    changes: Arc<AtomicU64>,
    /// One look at a time.
    shown: Arc<Mutex<Shown>>,
}

/// What the node has in memory.
struct Shown {
    records: AccessRecords,
    /// How many of the changes that were made here are among them.
    changes: u64,
    /// The reading that they are of; `None`: it is not known what has changed since.
    reading: Option<Reading>,
}

/// A reading of all of them.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// As they were before.
    revisions: IdentityRevisions,
    began: Instant,
    /// Whether the reading before had them, too: a replica may know a revision before the row that was changed with it, so that
    /// the first reading of a revision may be without the change.
    is_second: bool,
}

impl Reading {
    /// Returns whether all is still as it was read then.
    fn holds(&self, revisions: IdentityRevisions, now: Instant) -> bool {
        self.is_second && self.revisions == revisions && now.duration_since(self.began) < READ_EVERY
    }
}

impl MirroredIdentity {
    /// Returns a store of what is in Cassandra, and in the node's memory from `shown` on.
    pub(crate) fn new(identity: CassandraIdentity, core: CoreHandle, shown: AccessRecords) -> Self {
        let shown = Arc::new(Mutex::new(Shown { records: shown, changes: 0, reading: None }));
        Self { identity, core, changes: Arc::default(), shown }
    }

    /// Looks again and again for what others have changed, until the core stops.
    pub(crate) async fn follow(self) {
        let mut is_unreachable = false;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.refresh(None).await {
                Ok(true) => is_unreachable = false,
                // The core stops.
                Ok(false) => return,
                Err(fault) if is_unreachable => tracing::debug!(%fault, "users cannot be read"),
                Err(fault) => {
                    is_unreachable = true;
                    tracing::warn!(%fault, "users and keys stay as they were known: Cassandra cannot be read");
                }
            }
        }
    }

    /// Updates the node's memory to what Cassandra says now, or said after this change at least.
    /// Returns `false` if the core stops.
    async fn refresh(&self, change: Option<u64>) -> Result<bool, Fault> {
        let mut shown = self.shown.lock().await;
        // A look that began after it serves all who waited meanwhile.
        if change.is_some_and(|change| change <= shown.changes) {
            return Ok(true);
        }
        let changes = self.changes.load(Ordering::Acquire);
        // Before what they are of: what changes meanwhile is read again.
        let revisions = self.identity.revisions().await?;
        let is_second = shown.reading.is_some_and(|last| last.revisions == revisions);
        let reading = Reading { revisions, began: Instant::now(), is_second };
        if shown.reading.is_some_and(|last| last.holds(reading.revisions, reading.began)) {
            shown.changes = changes;
            return Ok(true);
        }
        let (records, reading) = (records_of(&self.identity).await?, Some(reading));
        if records == shown.records {
            (shown.changes, shown.reading) = (changes, reading);
            return Ok(true);
        }
        let adopted = records.clone();
        let adopt = move |core: &mut quelea_node::Core| {
            let now = core.now();
            let refused = core.broker.adopt_access(now, &adopted);
            let has_all = adopted.vhosts.iter().all(|vhost| core.broker.has_vhost(vhost.as_str()));
            (refused, has_all)
        };
        let Ok((refused, has_all)) = self.core.call(adopt).await else { return Ok(false) };
        for refused in refused {
            tracing::warn!(%refused, "not all users and permissions of Cassandra can be taken");
        }
        // A virtual host that is still being deleted is made at a later look.
        if has_all {
            *shown = Shown { records, changes, reading };
        } else {
            shown.reading = None;
        }
        Ok(true)
    }

    /// Deletes a virtual host of the node. Queues may have been made since they were counted: then it stays.
    async fn delete_if_empty(&self, vhost: String) -> Result<(), Fault> {
        let delete = move |core: &mut quelea_node::Core| {
            let now = core.now();
            let is_empty = core.broker.list_keys::<QueueReport>(Some(&vhost)).is_empty();
            let deleted = is_empty.then(|| core.broker.delete_vhost(now, &vhost));
            match deleted {
                Some(Ok(ticket)) => ((), ticket),
                Some(Err(_)) | None => ((), quelea_store::Ticket::NONE),
            }
        };
        self.core.promise(delete).await.map_err(stopped)
    }

    /// Updates the node's memory after a change that was made here, and returns `result`: whoever
    /// made the change expects it to hold here.
    async fn changed<T>(&self, result: T) -> Result<T, Fault> {
        let change = self.changes.fetch_add(1, Ordering::Release) + 1;
        // If it cannot be read, it was written all the same, and the next look comes.
        let _ = self.refresh(Some(change)).await;
        Ok(result)
    }
}

/// Returns all that Cassandra has, as the broker takes it.
pub(crate) async fn records_of(identity: &CassandraIdentity) -> Result<AccessRecords, Fault> {
    let vhost = |name: &str| VhostName::parse(name).ok();
    let vhosts: Vec<VhostName> =
        identity.vhosts().await?.iter().filter_map(|one| vhost(&one.name)).collect();
    let users: Vec<BrokerUser> = identity.users().await?.into_iter().map(user).collect();
    // Read one after the other: what belongs to a user who is not there yet comes with the next look.
    let names: HashSet<&str> = users.iter().map(|user| &*user.name).collect();
    let is_user = |name: &str| names.contains(name);
    let permissions = identity.permissions().await?.into_iter().filter(|one| is_user(&one.user));
    let permission = |one: PermissionRecord| {
        let PermissionRecord { user, vhost: within, configure, write, read } = one;
        let (configure, write, read) = (configure.into(), write.into(), read.into());
        Some(Permission { user, vhost: vhost(&within)?, configure, write, read })
    };
    let permissions = permissions.filter_map(permission).collect();
    let keys = identity.keys_with_secrets().await?.into_iter();
    let key = |(key, secret): (AccessKeyRecord, Arc<str>)| {
        Some(BrokerKey {
            id: key.id.into(),
            secret,
            user: key.user,
            vhost: vhost(&key.vhost)?,
            enabled: key.enabled,
            created_at: Timestamp::from_millis(key.created_at_ms),
        })
    };
    let keys = keys.filter(|(key, _)| is_user(&key.user)).filter_map(key).collect();
    Ok(AccessRecords { vhosts, users, permissions, keys })
}

fn user(record: UserRecord) -> BrokerUser {
    BrokerUser {
        name: record.name,
        password_hash: (&*record.password_hash).into(),
        tags: record.tags.into_iter().map(Into::into).collect(),
    }
}

impl IdentityDirectory for MirroredIdentity {
    async fn vhosts(&self) -> Result<Vec<VhostRecord>, Fault> {
        self.identity.vhosts().await
    }

    async fn put_vhost(&self, vhost: &str, maker: Option<&str>) -> Result<bool, Fault> {
        let is_new = self.identity.put_vhost(vhost, maker).await?;
        self.changed(is_new).await
    }

    /// Deletes a virtual host here and there, if neither store has queues in it.
    async fn delete_vhost(&self, vhost: &str) -> Result<bool, Fault> {
        let wanted = vhost.to_owned();
        let count = move |core: &mut quelea_node::Core| {
            core.broker.vhosts().into_iter().find(|found| found.name.as_str() == wanted)
        };
        let found = self.core.call(count).await.map_err(stopped)?;
        if found.as_ref().is_some_and(|vhost| vhost.queues > 0) {
            let account = self.identity.names().account_of(vhost).unwrap_or(vhost);
            return Err(Fault::Invalid(format!("the account {account} still has queues")));
        }
        let was_there = self.identity.delete_vhost(vhost).await?;
        // One that Cassandra does not know may still be here, from a log's own time.
        if found.is_some() {
            self.delete_if_empty(vhost.to_owned()).await?;
        }
        self.changed(was_there || found.is_some()).await
    }

    async fn users(&self) -> Result<Vec<UserRecord>, Fault> {
        self.identity.users().await
    }

    async fn user(&self, name: &str) -> Result<Option<UserRecord>, Fault> {
        self.identity.user(name).await
    }

    async fn put_user(&self, user: UserRecord) -> Result<bool, Fault> {
        let is_new = self.identity.put_user(user).await?;
        self.changed(is_new).await
    }

    async fn set_password_hash(&self, name: &str, hash: Arc<str>) -> Result<bool, Fault> {
        let is_there = self.identity.set_password_hash(name, hash).await?;
        self.changed(is_there).await
    }

    async fn delete_user(&self, name: &str) -> Result<bool, Fault> {
        let was_there = self.identity.delete_user(name).await?;
        self.changed(was_there).await
    }

    async fn permissions(&self) -> Result<Vec<PermissionRecord>, Fault> {
        self.identity.permissions().await
    }

    async fn put_permission(&self, permission: PermissionRecord) -> Result<bool, Fault> {
        let is_new = self.identity.put_permission(permission).await?;
        self.changed(is_new).await
    }

    async fn delete_permission(&self, user: &str, vhost: &str) -> Result<bool, Fault> {
        let was_there = self.identity.delete_permission(user, vhost).await?;
        self.changed(was_there).await
    }

    async fn access_keys(&self) -> Result<Vec<AccessKeyRecord>, Fault> {
        self.identity.access_keys().await
    }

    async fn create_access_key(&self, key: AccessKeyRecord, secret: &str) -> Result<(), Fault> {
        self.identity.create_access_key(key, secret).await?;
        self.changed(()).await
    }

    async fn enable_access_key(&self, id: &str, enabled: bool) -> Result<bool, Fault> {
        let was_there = self.identity.enable_access_key(id, enabled).await?;
        self.changed(was_there).await
    }

    async fn delete_access_key(&self, id: &str) -> Result<bool, Fault> {
        let was_there = self.identity.delete_access_key(id).await?;
        self.changed(was_there).await
    }

    async fn check(&self) -> Result<(), Fault> {
        self.identity.check().await
    }

    async fn take_over(&self, replaces: bool) -> Result<TakenOver, Fault> {
        let records = self.core.call(|core| core.broker.access_records()).await;
        let records = records.map_err(stopped)?;
        let taken = take_over(&self.identity, &records, replaces).await?;
        self.changed(taken).await
    }
}

fn stopped(_: quelea_node::CoreStopped) -> Fault {
    Fault::Unavailable("the broker stops, or its disk failed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_read_again_when_it_has_changed_and_now_and_then() {
        let (revisions, began) = (IdentityRevisions::default(), Instant::now());
        let first = Reading { revisions, began, is_second: false };
        assert!(
            !first.holds(revisions, began + POLL_INTERVAL),
            "the row may come behind its revision"
        );
        let last = Reading { is_second: true, ..first };
        assert!(last.holds(revisions, began + POLL_INTERVAL));
        let changed = IdentityRevisions([Some(Default::default()); 4]);
        assert!(!last.holds(changed, began + POLL_INTERVAL));
        assert!(!last.holds(revisions, began + READ_EVERY));
    }
}
