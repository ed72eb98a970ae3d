//! Users and what they may do: RabbitMQ's permissions, per vhost, by regular expressions on the
//! names of queues and exchanges, and on the routing keys of topic exchanges.
//!
//! Expressions are those of the `regex` crate: RabbitMQ's, but for look-around and back-references,
//! which are refused when a permission is set.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_model::VhostName;
use quelea_model::limits::{PERMISSIONS_MAX, SHORT_STRING_BYTES_MAX, USERS_MAX};

use super::decisions::{AccessQuery, DecisionCache};
use super::error::AccessError;
use super::pattern::NamePattern;
use super::permission::{Operation, Permission, TopicPermission, User};

/// The name by which permissions know the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// What stands for a value in the pattern of a topic permission, in braces.
const VARIABLES: [&str; 3] = ["username", "vhost", "client_id"];

/// A deleted user's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemovedUser {
    pub(crate) user: User,
    pub(crate) permissions: Vec<Permission>,
    pub(crate) topic_permissions: Vec<TopicPermission>,
}

/// Users, tags, permissions. Whether a vhost exists is the caller's matter.
#[derive(Debug, Default)]
pub struct Accounts {
    users: BTreeMap<Arc<str>, Account>,
    permissions: usize,
    topic_permissions: usize,
    epoch: u64,
    decisions: DecisionCache,
}

#[derive(Debug)]
struct Account {
    user: User,
    permissions: BTreeMap<VhostName, (Permission, Patterns)>,
    topics: BTreeMap<VhostName, BTreeMap<Box<str>, (TopicPermission, TopicPatterns)>>,
}

#[derive(Debug)]
struct Patterns {
    configure: NamePattern,
    write: NamePattern,
    read: NamePattern,
}

#[derive(Debug)]
struct TopicPatterns {
    write: NamePattern,
    read: NamePattern,
}

impl Accounts {
    /// Returns a number that moves with every change, so that others may keep what they derive from
    /// permissions.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Creates an empty one in the place of `before`: who remembers anything of that one sees that
    /// all has changed.
    pub(super) fn after(before: &Self) -> Self {
        Self { epoch: before.epoch + 1, ..Self::default() }
    }

    /// Returns the user of that name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name).map(|account| &account.user)
    }

    /// Returns all users, by name.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values().map(|account| &account.user)
    }

    /// Creates or replaces a user, who keeps its permissions. Returns whether it is new.
    ///
    /// `password_hash` is a PHC string, or empty for a user that nobody can log in as.
    ///
    /// # Errors
    /// [`AccessError::UserName`] or [`AccessError::TooMany`].
    pub(crate) fn put_user<T: AsRef<str>>(
        &mut self,
        name: &str,
        password_hash: &str,
        tags: &[T],
    ) -> Result<bool, AccessError> {
        check_user_name(name)?;
        let user = User {
            name: Arc::from(name),
            password_hash: Box::from(password_hash),
            tags: tags.iter().map(|tag| Box::from(tag.as_ref())).collect(),
        };
        self.epoch += 1;
        if let Some(account) = self.users.get_mut(name) {
            account.user = User { name: account.user.name.clone(), ..user };
            return Ok(false);
        }
        check_count("users", self.users.len(), USERS_MAX)?;
        let name = user.name.clone();
        let account = Account { user, permissions: BTreeMap::new(), topics: BTreeMap::new() };
        self.users.insert(name, account);
        Ok(true)
    }

    /// Deletes a user and its permissions, and returns them for the log. `None`: there was none.
    pub(crate) fn delete_user(&mut self, name: &str) -> Option<RemovedUser> {
        let account = self.users.remove(name)?;
        self.epoch += 1;
        let permissions: Vec<Permission> =
            account.permissions.into_values().map(|(permission, _)| permission).collect();
        let topics = account.topics.into_values().flat_map(BTreeMap::into_values);
        let topic_permissions: Vec<TopicPermission> =
            topics.map(|(permission, _)| permission).collect();
        self.permissions -= permissions.len();
        self.topic_permissions -= topic_permissions.len();
        Some(RemovedUser { user: account.user, permissions, topic_permissions })
    }

    /// Returns all permissions, by user and vhost.
    pub fn permissions(&self) -> impl Iterator<Item = &Permission> {
        let accounts = self.users.values();
        accounts.flat_map(|account| account.permissions.values().map(|(permission, _)| permission))
    }

    /// Returns a user's permissions in a vhost.
    pub(crate) fn permission(&self, user: &str, vhost: &str) -> Option<&Permission> {
        let (permission, _) = self.users.get(user)?.permissions.get(vhost)?;
        Some(permission)
    }

    /// Sets or replaces a user's permissions in a vhost.
    ///
    /// # Errors
    /// [`AccessError`]; nothing has changed then.
    pub(crate) fn set_permission(&mut self, permission: Permission) -> Result<(), AccessError> {
        let patterns = Patterns {
            configure: NamePattern::parse("configure", &permission.configure)?,
            write: NamePattern::parse("write", &permission.write)?,
            read: NamePattern::parse("read", &permission.read)?,
        };
        let count = self.permissions;
        let account = self.account_mut(&permission.user)?;
        let vhost = permission.vhost.clone();
        if !account.permissions.contains_key(&vhost) {
            check_count("permissions", count, PERMISSIONS_MAX)?;
        }
        if account.permissions.insert(vhost, (permission, patterns)).is_none() {
            self.permissions += 1;
        }
        self.epoch += 1;
        Ok(())
    }

    /// Takes a user's permissions in a vhost away. Returns whether there were any.
    pub(crate) fn clear_permission(&mut self, user: &str, vhost: &str) -> bool {
        let account = self.users.get_mut(user);
        let removed = account.is_some_and(|account| account.permissions.remove(vhost).is_some());
        self.permissions -= usize::from(removed);
        self.epoch += u64::from(removed);
        removed
    }

    /// Returns all topic permissions, by user, vhost and exchange.
    pub fn topic_permissions(&self) -> impl Iterator<Item = &TopicPermission> {
        let vhosts = self.users.values().flat_map(|account| account.topics.values());
        vhosts.flat_map(|exchanges| exchanges.values().map(|(permission, _)| permission))
    }

    /// Sets or replaces a user's permissions on the routing keys of a topic exchange. Patterns may
    /// hold `{username}`, `{vhost}` and `{client_id}`.
    ///
    /// # Errors
    /// [`AccessError`]; nothing has changed then.
    pub(crate) fn set_topic_permission(
        &mut self,
        permission: TopicPermission,
    ) -> Result<(), AccessError> {
        let patterns = TopicPatterns {
            write: NamePattern::parse_template("write", &permission.write, &VARIABLES)?,
            read: NamePattern::parse_template("read", &permission.read, &VARIABLES)?,
        };
        let count = self.topic_permissions;
        let account = self.account_mut(&permission.user)?;
        let exchange = permission.exchange.clone();
        let exchanges = account.topics.get(&permission.vhost);
        if !exchanges.is_some_and(|exchanges| exchanges.contains_key(&exchange)) {
            check_count("topic permissions", count, PERMISSIONS_MAX)?;
        }
        let exchanges = account.topics.entry(permission.vhost.clone()).or_default();
        if exchanges.insert(exchange, (permission, patterns)).is_none() {
            self.topic_permissions += 1;
        }
        self.epoch += 1;
        Ok(())
    }

    /// Takes a user's topic permissions in a vhost away, all of them or those of one exchange.
    /// Returns what was removed.
    pub(crate) fn clear_topic_permissions(
        &mut self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Vec<TopicPermission> {
        let Some(account) = self.users.get_mut(user) else { return Vec::new() };
        let removed = match exchange {
            None => account.topics.remove(vhost).into_iter().flatten().collect(),
            Some(exchange) => {
                let exchanges = account.topics.get_mut(vhost);
                let removed: Vec<_> =
                    exchanges.and_then(|all| all.remove_entry(exchange)).into_iter().collect();
                account.topics.retain(|_, exchanges| !exchanges.is_empty());
                removed
            }
        };
        self.topic_permissions -= removed.len();
        self.epoch += 1;
        removed.into_iter().map(|(_, (permission, _))| permission).collect()
    }

    /// Removes the permissions in a vhost that is gone, and returns them for the log.
    pub(crate) fn remove_vhost(&mut self, vhost: &str) -> (Vec<Permission>, Vec<TopicPermission>) {
        let mut permissions = Vec::new();
        let mut topic_permissions = Vec::new();
        for account in self.users.values_mut() {
            permissions.extend(account.permissions.remove(vhost).map(|(permission, _)| permission));
            let exchanges = account.topics.remove(vhost).into_iter().flatten();
            topic_permissions.extend(exchanges.map(|(_, (permission, _))| permission));
        }
        self.permissions -= permissions.len();
        self.topic_permissions -= topic_permissions.len();
        self.epoch += 1;
        (permissions, topic_permissions)
    }

    /// Returns whether a user may open a vhost at all: it has permissions there, be they empty.
    pub(crate) fn may_open(&self, user: &str, vhost: &str) -> bool {
        user == ADMINISTRATION || self.permission(user, vhost).is_some()
    }

    /// Returns whether a user may do something with a queue or exchange of that name; the empty
    /// name is the default exchange. Allocates nothing if it was asked before.
    pub(crate) fn check(
        &mut self,
        user: &str,
        vhost: &str,
        operation: Operation,
        resource: &str,
    ) -> bool {
        if user == ADMINISTRATION {
            return true;
        }
        let query = AccessQuery { user, vhost, operation, resource, topic: None };
        if let Some(answer) = self.decisions.get(self.epoch, query) {
            return answer;
        }
        let account = self.users.get(user);
        let answer = account.and_then(|account| account.permissions.get(vhost)).is_some_and(
            |(_, patterns)| {
                let pattern = match operation {
                    Operation::Configure => &patterns.configure,
                    Operation::Write => &patterns.write,
                    Operation::Read => &patterns.read,
                };
                let name = if resource.is_empty() { DEFAULT_EXCHANGE } else { resource };
                pattern.fits(name, &[])
            },
        );
        self.decisions.put(self.epoch, query, answer);
        answer
    }

    /// Returns whether a user may publish ([`Operation::Write`]) or bind ([`Operation::Read`]) with
    /// a routing key on a topic exchange. Without a topic permission for that exchange everything
    /// is allowed; a pattern that names `{client_id}` fits nothing for a connection without one.
    pub(crate) fn check_topic(
        &mut self,
        user: &str,
        vhost: &str,
        operation: Operation,
        exchange: &str,
        routing_key: &str,
        client_id: Option<&str>,
    ) -> bool {
        // Nearly nobody has topic permissions: no hashing for the others.
        if self.topic_permissions == 0 || user == ADMINISTRATION {
            return true;
        }
        let topic = Some((routing_key, client_id));
        let query = AccessQuery { user, vhost, operation, resource: exchange, topic };
        if let Some(answer) = self.decisions.get(self.epoch, query) {
            return answer;
        }
        let exchanges = self.users.get(user).and_then(|account| account.topics.get(vhost));
        let answer = match exchanges.and_then(|exchanges| exchanges.get(exchange)) {
            None => true,
            Some((_, patterns)) => {
                let pattern = match operation {
                    Operation::Write => &patterns.write,
                    Operation::Read | Operation::Configure => &patterns.read,
                };
                let values = [Some(user), Some(vhost), client_id];
                let variables: Vec<(&str, &str)> = VARIABLES
                    .into_iter()
                    .zip(values)
                    .filter_map(|(name, value)| Some((name, value?)))
                    .collect();
                pattern.fits(routing_key, &variables)
            }
        };
        self.decisions.put(self.epoch, query, answer);
        answer
    }

    fn account_mut(&mut self, user: &str) -> Result<&mut Account, AccessError> {
        self.users.get_mut(user).ok_or_else(|| AccessError::NoSuchUser { user: Box::from(user) })
    }
}

/// Whom connections are of that the broker opens for its administration, such as an import of definitions: all is
/// permitted to it. No user can have the name, and nobody signs in with it.
pub const ADMINISTRATION: &str = "\0administration";

/// Checks whether a user can have the name.
///
/// # Errors
/// [`AccessError::UserName`] with the reason.
pub fn check_user_name(name: &str) -> Result<(), AccessError> {
    let reason = match name {
        "" => "it is empty".to_owned(),
        name if name.len() > SHORT_STRING_BYTES_MAX => {
            format!("it is {} bytes long, the limit is {SHORT_STRING_BYTES_MAX}", name.len())
        }
        name => match name.char_indices().find(|(_, c)| c.is_control()) {
            Some((at, _)) => format!("it holds a control character at byte {at}"),
            None => return Ok(()),
        },
    };
    Err(AccessError::UserName { reason })
}

const fn check_count(what: &'static str, count: usize, max: usize) -> Result<(), AccessError> {
    if count < max { Ok(()) } else { Err(AccessError::TooMany { what, max }) }
}
