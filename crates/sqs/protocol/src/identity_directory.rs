//! Who there is, to be looked at and changed: accounts, users, their permissions and their access keys, where they are
//! not the broker's own. The management API of a front-end is made of it.

use std::sync::Arc;

use crate::{Fault, Identity};

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

/// What a user may do in an account: patterns of queues' names, as RabbitMQ means them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRecord {
    /// Who.
    pub user: Arc<str>,
    /// Where.
    pub account: Arc<str>,
    /// Which queues may be made, changed and deleted.
    pub configure: String,
    /// To which may be sent.
    pub write: String,
    /// From which may be received.
    pub read: String,
}

/// An access key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKeyRecord {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub user: Arc<str>,
    /// In which account.
    pub account: Arc<str>,
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

/// Accounts, users, permissions and keys that can be changed. A change is durable when its call returns; how soon
/// other front-ends act by it is that of [`Identity`].
///
/// What is to be deleted and is not there is `Ok(false)`. What cannot be, such as a pattern that is no regular
/// expression, or a key for a user that is not there, is [`Fault::Invalid`].
pub trait IdentityDirectory: Identity {
    /// All accounts, by name.
    fn accounts(&self) -> impl Future<Output = Result<Vec<Arc<str>>, Fault>> + Send;

    /// Makes an account; false if it was there.
    fn put_account(&self, account: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Deletes an account with the permissions and keys in it. One that has queues is [`Fault::Invalid`].
    fn delete_account(&self, account: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// All users, by name.
    fn users(&self) -> impl Future<Output = Result<Vec<UserRecord>, Fault>> + Send;

    /// One user.
    fn user(&self, name: &str) -> impl Future<Output = Result<Option<UserRecord>, Fault>> + Send;

    /// Makes or changes a user; false if it was there.
    fn put_user(&self, user: UserRecord) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Deletes a user with permissions and keys.
    fn delete_user(&self, name: &str) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// All permissions, by account and user.
    fn permissions(&self) -> impl Future<Output = Result<Vec<PermissionRecord>, Fault>> + Send;

    /// Sets what a user may do in an account.
    fn put_permission(
        &self,
        permission: PermissionRecord,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Takes back what a user may do in an account.
    fn delete_permission(
        &self,
        user: &str,
        account: &str,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// All access keys, by id.
    fn access_keys(&self) -> impl Future<Output = Result<Vec<AccessKeyRecord>, Fault>> + Send;

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

    /// Whether the store answers now.
    fn check(&self) -> impl Future<Output = Result<(), Fault>> + Send;
}
