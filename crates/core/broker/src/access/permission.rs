//! Users and their permissions, as the management API sets them and the log keeps them.

use std::sync::Arc;

use quelea_model::VhostName;

/// What a user wants to do with an exchange or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Declare, delete.
    Configure,
    /// Publish to, bind to (as the destination), purge nothing.
    Write,
    /// Consume from, purge, bind from (as the source).
    Read,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name: 1 to 255 bytes.
    pub name: Arc<str>,
    /// PHC string of the password; empty: no password is right.
    pub password_hash: Box<str>,
    /// `administrator`, `monitoring`, `management`, `policymaker`, `impersonator`, or any text: what
    /// the management API allows. They give no right to any queue.
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
