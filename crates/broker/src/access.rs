//! Users and what they may do.

use std::sync::Arc;

use quelea_model::VhostName;

/// What somebody wants to do with an exchange or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Declare, delete.
    Configure,
    /// Publish to, bind a queue.
    Write,
    /// Consume from, bind to a source.
    Read,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// PHC string of the password; empty: no password is right.
    pub password_hash: Box<str>,
    /// `administrator`, `monitoring`, …
    pub tags: Vec<Box<str>>,
}

/// A user's permissions in a vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The user.
    pub user: Arc<str>,
    /// The vhost.
    pub vhost: VhostName,
    /// Pattern of names for [`Operation::Configure`].
    pub configure: Box<str>,
    /// Pattern of names for [`Operation::Write`].
    pub write: Box<str>,
    /// Pattern of names for [`Operation::Read`].
    pub read: Box<str>,
}

/// A user's permissions on the routing keys of one topic exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPermission {
    /// The user.
    pub user: Arc<str>,
    /// The vhost.
    pub vhost: VhostName,
    /// The exchange.
    pub exchange: Box<str>,
    /// Pattern of routing keys for publishing.
    pub write: Box<str>,
    /// Pattern of routing keys for binding.
    pub read: Box<str>,
}

/// Why something about users was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No such user.
    #[error("no user '{user}'")]
    NoSuchUser {
        /// The name.
        user: Box<str>,
    },
    /// A pattern is no regular expression, or too large a one.
    #[error("{field} pattern '{pattern}' is not a regular expression: {reason}")]
    Pattern {
        /// `configure`, `write` or `read`.
        field: &'static str,
        /// The text.
        pattern: Box<str>,
        /// Why.
        reason: String,
    },
    /// A user's name is empty or too long.
    #[error("user name: {reason}")]
    UserName {
        /// Why.
        reason: String,
    },
    /// More of something than its limit.
    #[error("{what}: the limit of {max} is reached")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// Users, tags, permissions. Existence of vhosts is the caller's matter.
#[derive(Debug, Default)]
pub struct Access {}

#[expect(unused_variables, clippy::needless_pass_by_value, clippy::unused_self, missing_docs, clippy::missing_errors_doc, clippy::unimplemented, reason = "signatures first")]
impl Access {
    #[must_use]
    pub fn new() -> Self { Self {} }
    pub fn user(&self, name: &str) -> Option<&User> { unimplemented!() }
    pub fn users(&self) -> impl Iterator<Item = &User> { std::iter::empty() }
    /// Creates or replaces; gives whether it is new.
    pub fn put_user(&mut self, name: &str, password_hash: &str, tags: &[&str]) -> Result<bool, AccessError> { unimplemented!() }
    /// Deletes a user and its permissions; gives them for the log. `None`: there was none.
    pub fn delete_user(&mut self, name: &str) -> Option<RemovedUser> { unimplemented!() }
    pub fn permissions(&self) -> impl Iterator<Item = &Permission> { std::iter::empty() }
    pub fn permission(&self, user: &str, vhost: &str) -> Option<&Permission> { unimplemented!() }
    pub fn set_permission(&mut self, permission: Permission) -> Result<(), AccessError> { unimplemented!() }
    /// Gives whether there was one.
    pub fn clear_permission(&mut self, user: &str, vhost: &str) -> bool { unimplemented!() }
    pub fn topic_permissions(&self) -> impl Iterator<Item = &TopicPermission> { std::iter::empty() }
    pub fn set_topic_permission(&mut self, permission: TopicPermission) -> Result<(), AccessError> { unimplemented!() }
    /// `exchange: None` clears all of that user in that vhost. Gives what was removed.
    pub fn clear_topic_permissions(&mut self, user: &str, vhost: &str, exchange: Option<&str>) -> Vec<TopicPermission> { unimplemented!() }
    /// A vhost is gone: so are its permissions. Gives them for the log.
    pub fn remove_vhost(&mut self, vhost: &str) -> (Vec<Permission>, Vec<TopicPermission>) { unimplemented!() }
    /// Whether the user may open that vhost at all: has any permission entry.
    pub fn may_open(&self, user: &str, vhost: &str) -> bool { unimplemented!() }
    /// `resource`: the name of a queue or an exchange, "" for the default exchange.
    pub fn check(&mut self, user: &str, vhost: &str, operation: Operation, resource: &str) -> bool { unimplemented!() }
    /// True without a topic permission on that exchange. `client_id`: for `{client_id}`.
    pub fn check_topic(&mut self, user: &str, vhost: &str, operation: Operation, exchange: &str, routing_key: &str, client_id: Option<&str>) -> bool { unimplemented!() }
    pub fn epoch(&self) -> u64 { unimplemented!() }
}

/// A deleted user's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedUser {
    /// The user.
    pub user: User,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// Its topic permissions.
    pub topic_permissions: Vec<TopicPermission>,
}
