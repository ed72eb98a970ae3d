//! Who there is, to be looked at and changed: virtual hosts, which are accounts by their other names, users, their
//! permissions and their access keys, whoever keeps them. The management API is made of it.

use std::sync::Arc;

use crate::Fault;

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostRecord {
    /// The name.
    pub name: Arc<str>,
    /// How many queues it has, where that is known without counting them.
    pub queues: Option<u64>,
}

/// A user who may sign in to the management API, and whose access keys sign requests.
#[derive(Clone, PartialEq, Eq)]
pub struct UserRecord {
    /// The name.
    pub name: Arc<str>,
    /// The password as a PHC string of argon2; empty: nobody signs in with a password.
    pub password_hash: Arc<str>,
    /// What the management API shows to the user, such as `administrator`.
    pub tags: Vec<String>,
}

impl std::fmt::Debug for UserRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, tags, .. } = self;
        f.debug_struct("UserRecord").field("name", name).field("tags", tags).finish_non_exhaustive()
    }
}

/// A user, and where the user may do anything: what is asked of whoever signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserWithVhosts {
    /// The user.
    pub user: UserRecord,
    /// Virtual hosts in which the user has permissions.
    pub vhosts: Vec<Arc<str>>,
}

/// What a user may do in a virtual host: patterns of queues' names, as RabbitMQ means them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRecord {
    /// Who.
    pub user: Arc<str>,
    /// Where.
    pub vhost: Arc<str>,
    /// Which queues may be made, changed and deleted.
    pub configure: String,
    /// To which may be sent.
    pub write: String,
    /// From which may be received.
    pub read: String,
}

impl PermissionRecord {
    /// Returns a record of all permissions.
    #[must_use]
    pub fn all(user: &str, vhost: &str) -> Self {
        let all = || ".*".to_owned();
        let (user, vhost) = (user.into(), vhost.into());
        Self { user, vhost, configure: all(), write: all(), read: all() }
    }
}

/// An access key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKeyRecord {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub user: Arc<str>,
    /// In which virtual host.
    pub vhost: Arc<str>,
    /// Whether it signs.
    pub enabled: bool,
    /// When it was made, in ms since 1970.
    pub created_at_ms: u64,
}

/// How much was taken over from a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Accounts that were made.
    pub accounts: usize,
    /// Users that were made or replaced.
    pub users: usize,
    /// Permissions likewise.
    pub permissions: usize,
    /// Access keys likewise.
    pub access_keys: usize,
    /// What was there already and stays, or could not be taken, in words.
    pub kept: Vec<String>,
}

/// Virtual hosts, users, permissions and keys that can be changed. A change is durable when its call returns. Who asks has
/// checked names and patterns.
///
/// What is to be deleted and is not there is `Ok(false)`. A virtual host that is needed and is not there is
/// [`Fault::NotFound`]; what else cannot be, such as a key for a user that is not there, or one more than a limit allows, is
/// [`Fault::Invalid`].
pub trait IdentityDirectory: Clone + Send + Sync + 'static {
    /// Returns all virtual hosts, by name.
    fn vhosts(&self) -> impl Future<Output = Result<Vec<VhostRecord>, Fault>> + Send;

    /// Makes a virtual host, with all permissions for who makes it if that is a user; false if it was there.
    fn put_vhost(
        &self,
        vhost: &str,
        maker: Option<&str>,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Deletes a virtual host with the permissions and keys in it, and with its queues, or it is [`Fault::Invalid`] while
    /// there are any.
    fn delete_vhost(&self, vhost: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Returns all users, by name.
    fn users(&self) -> impl Future<Output = Result<Vec<UserRecord>, Fault>> + Send;

    /// Returns one user.
    fn user(&self, name: &str) -> impl Future<Output = Result<Option<UserRecord>, Fault>> + Send;

    /// Returns one user, and the virtual hosts in which the user has permissions.
    fn user_with_vhosts(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<UserWithVhosts>, Fault>> + Send {
        async move {
            let Some(user) = self.user(name).await? else { return Ok(None) };
            let permissions = self.permissions().await?.into_iter();
            let own = permissions.filter(|permission| permission.user == user.name);
            let vhosts = own.map(|permission| permission.vhost).collect();
            Ok(Some(UserWithVhosts { user, vhosts }))
        }
    }

    /// Makes or changes a user; false if it was there.
    fn put_user(&self, user: UserRecord) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Gives a user another hash of the password, and changes nothing else; false if there is none.
    fn set_password_hash(
        &self,
        name: &str,
        password_hash: Arc<str>,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Deletes a user with permissions and keys.
    fn delete_user(&self, name: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Returns all permissions, by user and virtual host.
    fn permissions(&self) -> impl Future<Output = Result<Vec<PermissionRecord>, Fault>> + Send;

    /// Sets what a user may do in a virtual host; false if there were permissions before.
    fn put_permission(
        &self,
        permission: PermissionRecord,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Takes back what a user may do in a virtual host.
    fn delete_permission(
        &self,
        user: &str,
        vhost: &str,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Returns all access keys, by id.
    fn access_keys(&self) -> impl Future<Output = Result<Vec<AccessKeyRecord>, Fault>> + Send;

    /// Returns one access key.
    fn access_key_record(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<Option<AccessKeyRecord>, Fault>> + Send {
        async move { Ok(self.access_keys().await?.into_iter().find(|key| *key.id == *id)) }
    }

    /// Makes an access key.
    fn create_access_key(
        &self,
        key: AccessKeyRecord,
        secret: &str,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Enables or disables an access key; false if there is none.
    fn enable_access_key(
        &self,
        id: &str,
        enabled: bool,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Deletes an access key.
    fn delete_access_key(&self, id: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Takes over what a log beside this store has of all these. What is here already stays, unless `replaces`.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where there is no log.
    fn take_over(&self, _replaces: bool) -> impl Future<Output = Result<TakenOver, Fault>> + Send {
        let reason = "a front-end alone has no log whose users could be taken over";
        std::future::ready(Err(Fault::Unsupported(reason.to_owned())))
    }

    /// Checks that the store answers now.
    ///
    /// # Errors
    ///
    /// [`Fault::Unavailable`] if it does not.
    fn check(&self) -> impl Future<Output = Result<(), Fault>> + Send {
        std::future::ready(Ok(()))
    }
}
