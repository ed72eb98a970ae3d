//! Users, permissions and access keys of Cassandra in the memory of the node beside it: so AMQP logins, permissions and
//! signatures ask nobody, and go on by what was known last while Cassandra does not answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quelea_broker::AccessKey as BrokerKey;
use quelea_broker::access::{AccessRecords, Permission, User as BrokerUser};
use quelea_broker::report::QueueReport;
use quelea_cassandra_store::CassandraIdentity;
use quelea_model::{Timestamp, VhostName};
use quelea_node::CoreHandle;
use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, Fault, Identity, IdentityDirectory, PermissionRecord, Permits,
    QueueRef, TakenOver, User, UserRecord,
};
use tokio::sync::Mutex;

use crate::account_names::AccountNames;
use crate::takeover::take_over;

/// How often what other front-ends have changed is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Cassandra's users and keys, which the node's memory follows. Cheap to clone.
#[derive(Clone)]
pub struct MirroredIdentity {
    identity: CassandraIdentity,
    core: CoreHandle,
    names: AccountNames,
    /// What the node has in memory. One look at a time.
    shown: Arc<Mutex<AccessRecords>>,
}

impl MirroredIdentity {
    /// What is in Cassandra, and in the node's memory from `shown` on.
    pub(crate) fn new(
        identity: CassandraIdentity,
        core: CoreHandle,
        names: AccountNames,
        shown: AccessRecords,
    ) -> Self {
        Self { identity, core, names, shown: Arc::new(Mutex::new(shown)) }
    }

    /// Looks again and again for what others have changed, until the core stops.
    pub(crate) async fn follow(self) {
        let mut is_unreachable = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.refresh().await {
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

    /// Has the node's memory be what Cassandra says now. False: the core stops.
    async fn refresh(&self) -> Result<bool, Fault> {
        let mut shown = self.shown.lock().await;
        let records = records_of(&self.identity, &self.names).await?;
        if records == *shown {
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
            *shown = records;
        }
        Ok(true)
    }

    /// A change was made here: whoever made it expects it to hold here.
    async fn changed<T>(&self, result: T) -> Result<T, Fault> {
        // If it cannot be read, it was written all the same, and the next look comes.
        let _ = self.refresh().await;
        Ok(result)
    }
}

/// All that Cassandra has, as the broker takes it.
pub(crate) async fn records_of(
    identity: &CassandraIdentity,
    names: &AccountNames,
) -> Result<AccessRecords, Fault> {
    let vhost = |account: &str| VhostName::parse(names.vhost_of(account)?).ok();
    let vhosts: Vec<VhostName> =
        identity.accounts().await?.iter().filter_map(|account| vhost(account)).collect();
    let users: Vec<BrokerUser> = identity.users().await?.into_iter().map(user).collect();
    // Read one after the other: what belongs to a user who is not there yet comes with the next look.
    let names: HashSet<&str> = users.iter().map(|user| &*user.name).collect();
    let is_user = |name: &str| names.contains(name);
    let permissions = identity.permissions().await?.into_iter().filter(|one| is_user(&one.user));
    let permission = |one: PermissionRecord| {
        let PermissionRecord { user, account, configure, write, read } = one;
        let (configure, write, read) = (configure.into(), write.into(), read.into());
        Some(Permission { user, vhost: vhost(&account)?, configure, write, read })
    };
    let permissions = permissions.filter_map(permission).collect();
    let keys = identity.keys_with_secrets().await?.into_iter();
    let key = |(key, secret): (AccessKeyRecord, Arc<str>)| {
        Some(BrokerKey {
            id: key.id.into(),
            secret,
            user: key.user,
            vhost: vhost(&key.account)?,
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

impl Identity for MirroredIdentity {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        self.identity.access_key(id).await
    }

    async fn permits(&self, user: &User, queue: &QueueRef) -> Result<Permits, Fault> {
        self.identity.permits(user, queue).await
    }

    async fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        names: Vec<String>,
    ) -> Result<Vec<String>, Fault> {
        self.identity.visible(user, account, names).await
    }
}

impl IdentityDirectory for MirroredIdentity {
    async fn accounts(&self) -> Result<Vec<Arc<str>>, Fault> {
        self.identity.accounts().await
    }

    async fn put_account(&self, account: &str) -> Result<bool, Fault> {
        let is_new = self.identity.put_account(account).await?;
        self.changed(is_new).await
    }

    /// The virtual host goes with the account, which neither store may have queues in.
    async fn delete_account(&self, account: &str) -> Result<bool, Fault> {
        let Some(vhost) = self.names.vhost_of(account).map(str::to_owned) else { return Ok(false) };
        let wanted = vhost.clone();
        let count = move |core: &mut quelea_node::Core| {
            core.broker.vhosts().into_iter().find(|found| found.name.as_str() == wanted)
        };
        let found = self.core.call(count).await.map_err(stopped)?;
        if found.as_ref().is_some_and(|vhost| vhost.queues > 0) {
            return Err(Fault::Invalid(format!("the account {account} still has queues")));
        }
        let was_there = self.identity.delete_account(account).await?;
        // One that Cassandra does not know may still be here, from a log's own time.
        if found.is_some() {
            let delete = move |core: &mut quelea_node::Core| {
                let now = core.now();
                // Queues may have been made since they were counted.
                let is_empty =
                    core.broker.list_keys::<QueueReport>(Some(vhost.as_str())).is_empty();
                let deleted = is_empty.then(|| core.broker.delete_vhost(now, &vhost));
                match deleted {
                    Some(Ok(ticket)) => ((), ticket),
                    Some(Err(_)) | None => ((), quelea_store::Ticket::NONE),
                }
            };
            self.core.promise(delete).await.map_err(stopped)?;
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

    async fn delete_user(&self, name: &str) -> Result<bool, Fault> {
        let was_there = self.identity.delete_user(name).await?;
        self.changed(was_there).await
    }

    async fn permissions(&self) -> Result<Vec<PermissionRecord>, Fault> {
        self.identity.permissions().await
    }

    async fn put_permission(&self, permission: PermissionRecord) -> Result<(), Fault> {
        self.identity.put_permission(permission).await?;
        self.changed(()).await
    }

    async fn delete_permission(&self, user: &str, account: &str) -> Result<bool, Fault> {
        let was_there = self.identity.delete_permission(user, account).await?;
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
        let taken = take_over(&self.identity, &self.names, &records, replaces).await?;
        self.changed(taken).await
    }
}

fn stopped(_: quelea_node::CoreStopped) -> Fault {
    Fault::Unavailable("the broker stops, or its disk failed".to_owned())
}
