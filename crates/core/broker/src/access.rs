//! Who may do what: users, their permissions, and the access keys that stand for them. What changes
//! is written to the log by the operation that changes it.

pub(crate) mod access_key;
pub(crate) mod accounts;
mod decisions;
pub(crate) mod error;
pub(crate) mod keys;
mod pattern;
pub(crate) mod permission;
mod records;

use quelea_model::VhostName;

use crate::error::{AccessRefused, AdminError, ResourceKind};
use crate::log::Log;
use crate::topology::Item;
pub use accounts::{ADMINISTRATION, Accounts, check_user_name};
pub use error::AccessError;
pub use keys::AccessKeys;
pub use pattern::check_pattern;
pub use permission::{Operation, Permission, TopicPermission, User};
pub use records::AccessRecords;

/// Users, permissions and access keys. Whether a vhost exists is the caller's matter.
#[derive(Debug, Default)]
pub struct Access {
    /// Users and permissions. What is changed here, as when it is recovered, is not written again.
    pub(crate) accounts: Accounts,
    pub(crate) keys: AccessKeys,
}

impl Access {
    /// Returns the users and their permissions.
    #[must_use]
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns the access keys.
    #[must_use]
    pub const fn keys(&self) -> &AccessKeys {
        &self.keys
    }

    /// Refuses what a user's permissions do not allow with a queue or exchange of that name.
    ///
    /// # Errors
    /// [`AccessRefused`].
    pub(crate) fn authorize(
        &mut self,
        user: &str,
        vhost: &VhostName,
        operation: Operation,
        kind: ResourceKind,
        name: &str,
    ) -> Result<(), AccessRefused> {
        if self.accounts.check(user, vhost.as_str(), operation, name) {
            return Ok(());
        }
        // RabbitMQ's name of the default exchange, in patterns and in this text.
        let is_default = kind == ResourceKind::Exchange && name.is_empty();
        let name = if is_default { "amq.default" } else { name };
        Err(refused(user, vhost, operation, kind, name))
    }

    /// Refuses what a user's topic permissions do not allow. `client_id` is what the variable of
    /// that name stands for.
    ///
    /// # Errors
    /// [`AccessRefused`].
    pub(crate) fn authorize_topic(
        &mut self,
        user: &str,
        vhost: &VhostName,
        operation: Operation,
        exchange: &str,
        routing_key: &str,
        client_id: Option<&str>,
    ) -> Result<(), AccessRefused> {
        let accounts = &mut self.accounts;
        if accounts.check_topic(user, vhost.as_str(), operation, exchange, routing_key, client_id) {
            return Ok(());
        }
        Err(refused(user, vhost, operation, ResourceKind::Topic, routing_key))
    }

    /// Creates or replaces a user, who keeps its permissions.
    ///
    /// # Errors
    /// [`AccessError`]; nothing has changed then.
    pub(crate) fn put_user<T: AsRef<str>>(
        &mut self,
        log: &mut Log,
        name: &str,
        password_hash: &str,
        tags: &[T],
    ) -> Result<(), AccessError> {
        self.accounts.put_user(name, password_hash, tags)?;
        if let Some(user) = self.accounts.user(name).cloned() {
            log.persist(&Item::User(user));
        }
        Ok(())
    }

    /// Deletes a user with its permissions and access keys.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`].
    pub(crate) fn delete_user(&mut self, log: &mut Log, name: &str) -> Result<(), AdminError> {
        let Some(removed) = self.accounts.delete_user(name) else {
            return Err(AdminError::NoSuchUser { user: name.to_owned() });
        };
        unpersist_permissions(log, removed.permissions, removed.topic_permissions);
        self.keys.remove(log, |key| &*key.user == name);
        log.unpersist(&Item::User(removed.user));
        Ok(())
    }

    /// Sets or replaces a user's permissions in a vhost.
    ///
    /// # Errors
    /// [`AccessError`]; nothing has changed then.
    pub(crate) fn set_permission(
        &mut self,
        log: &mut Log,
        permission: Permission,
    ) -> Result<(), AccessError> {
        self.accounts.set_permission(permission.clone())?;
        log.persist(&Item::Permission(permission));
        Ok(())
    }

    /// Takes a user's permissions in a vhost away. Returns whether there were any.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`].
    pub(crate) fn clear_permission(
        &mut self,
        log: &mut Log,
        user: &str,
        vhost: &str,
    ) -> Result<bool, AdminError> {
        self.user_exists(user)?;
        let Some(permission) = self.accounts.permission(user, vhost).cloned() else {
            return Ok(false);
        };
        self.accounts.clear_permission(user, vhost);
        log.unpersist(&Item::Permission(permission));
        Ok(true)
    }

    /// Sets or replaces a user's permissions on the routing keys of a topic exchange.
    ///
    /// # Errors
    /// [`AccessError`]; nothing has changed then.
    pub(crate) fn set_topic_permission(
        &mut self,
        log: &mut Log,
        permission: TopicPermission,
    ) -> Result<(), AccessError> {
        self.accounts.set_topic_permission(permission.clone())?;
        log.persist(&Item::TopicPermission(permission));
        Ok(())
    }

    /// Takes a user's topic permissions in a vhost away: all, or those of one exchange. Returns
    /// whether there were any.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`].
    pub(crate) fn clear_topic_permissions(
        &mut self,
        log: &mut Log,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<bool, AdminError> {
        self.user_exists(user)?;
        let removed = self.accounts.clear_topic_permissions(user, vhost, exchange);
        let any = !removed.is_empty();
        unpersist_permissions(log, Vec::new(), removed);
        Ok(any)
    }

    /// A vhost is gone, and so are its permissions and access keys.
    pub(crate) fn remove_vhost(&mut self, log: &mut Log, vhost: &VhostName) {
        let (permissions, topic_permissions) = self.accounts.remove_vhost(vhost.as_str());
        unpersist_permissions(log, permissions, topic_permissions);
        self.keys.remove(log, |key| key.vhost == *vhost);
    }

    fn user_exists(&self, user: &str) -> Result<(), AdminError> {
        match self.accounts.user(user) {
            Some(_) => Ok(()),
            None => Err(AdminError::NoSuchUser { user: user.to_owned() }),
        }
    }
}

fn unpersist_permissions(
    log: &mut Log,
    permissions: Vec<Permission>,
    topic_permissions: Vec<TopicPermission>,
) {
    permissions.into_iter().for_each(|p| log.unpersist(&Item::Permission(p)));
    topic_permissions.into_iter().for_each(|p| log.unpersist(&Item::TopicPermission(p)));
}

fn refused(
    user: &str,
    vhost: &VhostName,
    operation: Operation,
    kind: ResourceKind,
    name: &str,
) -> AccessRefused {
    let operation = match operation {
        Operation::Configure => "configure",
        Operation::Write => "write",
        Operation::Read => "read",
    };
    let (vhost, user) = (vhost.clone(), user.to_owned());
    AccessRefused { operation, kind, name: name.to_owned(), vhost, user }
}
