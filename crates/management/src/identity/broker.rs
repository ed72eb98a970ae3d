//! The broker's own users, permissions and keys, which its log has.

use std::sync::Arc;

use quelea_broker::access::{Permission, User};
use quelea_broker::error::AdminError;
use quelea_broker::report::VhostReport;
use quelea_broker::{AccessKey, NewAccessKey};
use quelea_node::{Core, CoreStopped};
use quelea_sqs_protocol::{
    AccessKeyRecord, Fault, IdentityDirectory, PermissionRecord, UserRecord, UserWithVhosts,
    VhostRecord,
};
use quelea_store::Ticket;

use crate::operation::until_free;
use crate::paging::fetch;
use crate::state::ApiState;

impl ApiState {
    /// Returns what `question` finds out on the core's thread.
    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        self.core.call(question).await.map_err(stopped)
    }

    /// Makes a change, which is durable when its result is returned.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Core) -> Result<(T, Ticket), AdminError> + Send + 'static,
    ) -> Result<T, Fault> {
        let changed = self.core.promise(move |core| match change(core) {
            Ok((result, ticket)) => (Ok(result), ticket),
            Err(error) => (Err(error), Ticket::NONE),
        });
        changed.await.map_err(stopped)?.map_err(refused)
    }
}

impl IdentityDirectory for ApiState {
    async fn vhosts(&self) -> Result<Vec<VhostRecord>, Fault> {
        let vhosts = fetch::<VhostReport>(self, None).await;
        let vhosts = vhosts.map_err(|error| Fault::Unavailable(error.reason()))?;
        let record = |vhost: &VhostReport| VhostRecord {
            name: vhost.name.as_str().into(),
            queues: Some(vhost.queues as u64),
        };
        Ok(vhosts.iter().map(record).collect())
    }

    async fn put_vhost(&self, vhost: &str, maker: Option<&str>) -> Result<bool, Fault> {
        let name = vhost.to_owned();
        let free = until_free(self, move |broker| broker.is_vhost_being_deleted(&name)).await;
        free.map_err(|error| Fault::Unavailable(error.reason()))?;
        let (vhost, maker) = (vhost.to_owned(), maker.map(str::to_owned));
        self.change(move |core| {
            if core.broker.has_vhost(&vhost) {
                return Ok((false, Ticket::NONE));
            }
            let now = core.now();
            let mut ticket = core.broker.put_vhost(now, &vhost)?;
            if let Some(maker) = maker {
                ticket = core.broker.set_permissions(now, &maker, &vhost, ".*", ".*", ".*")?;
            }
            Ok((true, ticket))
        })
        .await
    }

    async fn delete_vhost(&self, vhost: &str) -> Result<bool, Fault> {
        let vhost = vhost.to_owned();
        self.change(move |core| if_there(core.broker.delete_vhost(core.now(), &vhost))).await
    }

    async fn users(&self) -> Result<Vec<UserRecord>, Fault> {
        self.read(|core| core.broker.access().accounts().users().map(user).collect()).await
    }

    async fn user(&self, name: &str) -> Result<Option<UserRecord>, Fault> {
        let name = name.to_owned();
        self.read(move |core| core.broker.access().accounts().user(&name).map(user)).await
    }

    async fn user_with_vhosts(&self, name: &str) -> Result<Option<UserWithVhosts>, Fault> {
        let name = name.to_owned();
        self.read(move |core| {
            let accounts = core.broker.access().accounts();
            let own = accounts.permissions().filter(|permission| *permission.user == *name);
            let vhosts = own.map(|permission| permission.vhost.as_str().into()).collect();
            accounts.user(&name).map(|found| UserWithVhosts { user: user(found), vhosts })
        })
        .await
    }

    async fn put_user(&self, user: UserRecord) -> Result<bool, Fault> {
        let UserRecord { name, password_hash, tags } = user;
        self.change(move |core| {
            let is_new = core.broker.access().accounts().user(&name).is_none();
            let put = core.broker.put_user(core.now(), &name, &password_hash, &tags);
            put.map(|ticket| (is_new, ticket))
        })
        .await
    }

    /// Sets the hash of a user's password. Who was deleted meanwhile is not made again.
    async fn set_password_hash(&self, name: &str, hash: Arc<str>) -> Result<bool, Fault> {
        let name = name.to_owned();
        self.change(move |core| {
            let Some(user) = core.broker.access().accounts().user(&name) else {
                return Ok((false, Ticket::NONE));
            };
            let tags = user.tags.clone();
            core.broker.put_user(core.now(), &name, &hash, &tags).map(|ticket| (true, ticket))
        })
        .await
    }

    async fn delete_user(&self, name: &str) -> Result<bool, Fault> {
        let name = name.to_owned();
        self.change(move |core| if_there(core.broker.delete_user(core.now(), &name))).await
    }

    async fn permissions(&self) -> Result<Vec<PermissionRecord>, Fault> {
        self.read(|core| core.broker.access().accounts().permissions().map(permission).collect())
            .await
    }

    async fn put_permission(&self, permission: PermissionRecord) -> Result<bool, Fault> {
        let PermissionRecord { user, vhost, configure, write, read } = permission;
        self.change(move |core| {
            let (now, is_new) = (core.now(), !has_permissions(core, &user, &vhost));
            let set = core.broker.set_permissions(now, &user, &vhost, &configure, &write, &read);
            set.map(|ticket| (is_new, ticket))
        })
        .await
    }

    async fn delete_permission(&self, user: &str, vhost: &str) -> Result<bool, Fault> {
        let (user, vhost) = (user.to_owned(), vhost.to_owned());
        self.change(move |core| {
            if !has_permissions(core, &user, &vhost) {
                return Ok((false, Ticket::NONE));
            }
            let cleared = core.broker.clear_permissions(core.now(), &user, &vhost);
            cleared.map(|ticket| (true, ticket))
        })
        .await
    }

    async fn access_keys(&self) -> Result<Vec<AccessKeyRecord>, Fault> {
        self.read(|core| core.broker.access().keys().iter().map(access_key).collect()).await
    }

    async fn access_key_record(&self, id: &str) -> Result<Option<AccessKeyRecord>, Fault> {
        let id = id.to_owned();
        self.read(move |core| core.broker.access().keys().get(&id).map(access_key)).await
    }

    /// Makes an access key. When it was made is the core's time.
    async fn create_access_key(&self, key: AccessKeyRecord, secret: &str) -> Result<(), Fault> {
        let secret = secret.to_owned();
        self.change(move |core| {
            let AccessKeyRecord { id, user, vhost, .. } = &key;
            let new = NewAccessKey { id, secret: &secret, user, vhost };
            core.broker.create_access_key(core.now(), new).map(|ticket| ((), ticket))
        })
        .await
    }

    async fn enable_access_key(&self, id: &str, enabled: bool) -> Result<bool, Fault> {
        let id = id.to_owned();
        self.change(move |core| if_there(core.broker.enable_access_key(core.now(), &id, enabled)))
            .await
    }

    async fn delete_access_key(&self, id: &str) -> Result<bool, Fault> {
        let id = id.to_owned();
        self.change(move |core| if_there(core.broker.delete_access_key(core.now(), &id))).await
    }
}

fn user(user: &User) -> UserRecord {
    UserRecord {
        name: Arc::clone(&user.name),
        password_hash: (&*user.password_hash).into(),
        tags: user.tags.iter().map(ToString::to_string).collect(),
    }
}

fn has_permissions(core: &Core, user: &str, vhost: &str) -> bool {
    let is_theirs = |one: &Permission| *one.user == *user && one.vhost.as_str() == vhost;
    core.broker.access().accounts().permissions().any(is_theirs)
}

fn permission(permission: &Permission) -> PermissionRecord {
    PermissionRecord {
        user: Arc::clone(&permission.user),
        vhost: permission.vhost.as_str().into(),
        configure: permission.configure.to_string(),
        write: permission.write.to_string(),
        read: permission.read.to_string(),
    }
}

fn access_key(key: &AccessKey) -> AccessKeyRecord {
    AccessKeyRecord {
        id: key.id.to_string(),
        user: Arc::clone(&key.user),
        vhost: key.vhost.as_str().into(),
        enabled: key.enabled,
        created_at_ms: key.created_at.as_millis(),
    }
}

/// Returns whether there was something to be changed, and the change's ticket.
fn if_there(changed: Result<Ticket, AdminError>) -> Result<(bool, Ticket), AdminError> {
    match changed {
        Err(
            AdminError::NoSuchVhost { .. }
            | AdminError::NoSuchUser { .. }
            | AdminError::NoSuchAccessKey { .. },
        ) => Ok((false, Ticket::NONE)),
        changed => changed.map(|ticket| (true, ticket)),
    }
}

fn refused(error: AdminError) -> Fault {
    match error {
        AdminError::NoSuchVhost { .. } => Fault::NotFound(error.to_string()),
        _ => Fault::Invalid(error.to_string()),
    }
}

fn stopped(_: CoreStopped) -> Fault {
    Fault::Unavailable("the broker is stopping".to_owned())
}
