//! Virtual hosts, users and permissions, for the management API.

use std::sync::Arc;

use quelea_model::{Timestamp, VhostName};
use quelea_store::{Durability, Ticket};

use crate::Broker;
use crate::access::{Permission, TopicPermission, User};
use crate::effect::CloseReason;
use crate::error::AdminError;
use crate::ids::ConnectionId;
use crate::topology::{Item, StoredVhost};
use crate::vhost::{Vhost, VhostId};

/// The virtual host that exists from the start, and the user.
const DEFAULT_VHOST: &str = "/";
const DEFAULT_USER: &str = "guest";

impl Broker {
    /// Creates vhost `/` and user `guest`, administrator with all permissions, if there is neither
    /// a vhost nor a user yet; gives whether it did.
    ///
    /// `guest_password_hash` is a PHC string.
    pub fn bootstrap(&mut self, guest_password_hash: &str) -> bool {
        if self.vhosts.len() > 0 || self.access.users().next().is_some() {
            return false;
        }
        let now = Timestamp::ZERO;
        let tags = [String::from("administrator")];
        let done = self.put_vhost(now, DEFAULT_VHOST).is_ok()
            && self.put_user(now, DEFAULT_USER, guest_password_hash, &tags).is_ok()
            && self.set_permissions(now, DEFAULT_USER, DEFAULT_VHOST, ".*", ".*", ".*").is_ok();
        debug_assert!(done, "the defaults are well-formed");
        done
    }

    /// The user of that name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.access.user(name)
    }

    /// All users, by name.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.access.users()
    }

    /// Creates or replaces a user, who keeps its permissions.
    ///
    /// `password_hash` is a PHC string, or empty for a user that nobody can log in as.
    ///
    /// # Errors
    /// [`AdminError::Access`].
    pub fn put_user<T: AsRef<str>>(
        &mut self,
        _now: Timestamp,
        name: &str,
        password_hash: &str,
        tags: &[T],
    ) -> Result<Ticket, AdminError> {
        self.access.put_user(name, password_hash, tags)?;
        if let Some(user) = self.access.user(name).cloned() {
            self.persist(&Item::User(user));
        }
        Ok(self.ticket(Durability::Fsync))
    }

    /// Deletes a user with its permissions and access keys; its connections are closed.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`].
    pub fn delete_user(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        let Some(removed) = self.access.delete_user(name) else {
            return Err(AdminError::NoSuchUser { user: name.to_owned() });
        };
        for permission in removed.permissions {
            self.unpersist(&Item::Permission(permission));
        }
        for permission in removed.topic_permissions {
            self.unpersist(&Item::TopicPermission(permission));
        }
        self.remove_access_keys(|key| &*key.user == name);
        self.unpersist(&Item::User(removed.user));
        let reason = CloseReason::UserDeleted { user: name.to_owned() };
        let of_user = |c: &crate::connection::Connection| &*c.user == name;
        self.close_connections(of_user, &reason);
        Ok(self.ticket(Durability::Fsync))
    }

    /// Creates a virtual host. One that exists is no error.
    ///
    /// # Errors
    /// [`AdminError::InvalidName`].
    pub fn put_vhost(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        let name = VhostName::parse(name)?;
        if self.vhost_ids.contains_key(name.as_str()) {
            return Ok(Ticket::NONE);
        }
        let stored = StoredVhost { name, description: Box::from(""), tags: Vec::new() };
        self.add_vhost(stored.clone());
        self.persist(&Item::Vhost(stored));
        Ok(self.ticket(Durability::Fsync))
    }

    /// Deletes a virtual host with all that is in it; its connections are closed.
    ///
    /// # Errors
    /// [`AdminError::NoSuchVhost`].
    pub fn delete_vhost(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        let id = self.vhost_id(name)?;
        let reason = CloseReason::VhostDeleted { vhost: name.to_owned() };
        self.close_connections(|connection| connection.vhost == id, &reason);
        let queues: Vec<_> = match self.vhosts.get(id.0) {
            Some(vhost) => vhost.queues.values().copied().collect(),
            None => Vec::new(),
        };
        queues.into_iter().for_each(|queue| self.remove_queue(queue));
        let Some(vhost) = self.vhosts.remove(id.0) else {
            return Err(AdminError::NoSuchVhost { vhost: name.to_owned() });
        };
        self.vhost_ids.remove(name);
        for binding in vhost.router.bindings().filter(|binding| binding.durable) {
            self.unpersist(&Item::Binding(crate::exchanges::stored(&vhost.name, &binding)));
        }
        for exchange in vhost.router.exchanges().filter(|exchange| exchange.durable) {
            self.unpersist(&Item::Exchange(vhost.name.clone(), exchange.clone()));
        }
        let (permissions, topic_permissions) = self.access.remove_vhost(name);
        permissions.into_iter().for_each(|p| self.unpersist(&Item::Permission(p)));
        topic_permissions.into_iter().for_each(|p| self.unpersist(&Item::TopicPermission(p)));
        let Vhost { name, description, tags, .. } = vhost;
        self.remove_access_keys(|key| key.vhost == name);
        self.unpersist(&Item::Vhost(StoredVhost { name, description, tags }));
        Ok(self.ticket(Durability::Fsync))
    }

    /// All permissions, by user and vhost.
    pub fn permissions(&self) -> impl Iterator<Item = &Permission> {
        self.access.permissions()
    }

    /// Sets or replaces a user's permissions in a vhost. Each is a regular expression that the
    /// whole name must fit; the empty one fits nothing.
    ///
    /// # Errors
    /// [`AdminError`].
    pub fn set_permissions(
        &mut self,
        _now: Timestamp,
        user: &str,
        vhost: &str,
        configure: &str,
        write: &str,
        read: &str,
    ) -> Result<Ticket, AdminError> {
        self.vhost_id(vhost)?;
        let permission = Permission {
            user: Arc::from(user),
            vhost: VhostName::parse(vhost)?,
            configure: Box::from(configure),
            write: Box::from(write),
            read: Box::from(read),
        };
        self.access.set_permission(permission.clone())?;
        self.persist(&Item::Permission(permission));
        Ok(self.ticket(Durability::Fsync))
    }

    /// Takes a user's permissions in a vhost away.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`] or [`AdminError::NoSuchVhost`]; not if there were none.
    pub fn clear_permissions(
        &mut self,
        _now: Timestamp,
        user: &str,
        vhost: &str,
    ) -> Result<Ticket, AdminError> {
        self.vhost_id(vhost)?;
        self.user_exists(user)?;
        let Some(permission) = self.access.permission(user, vhost).cloned() else {
            return Ok(Ticket::NONE);
        };
        self.access.clear_permission(user, vhost);
        self.unpersist(&Item::Permission(permission));
        Ok(self.ticket(Durability::Fsync))
    }

    /// All topic permissions, by user, vhost and exchange.
    pub fn topic_permissions(&self) -> impl Iterator<Item = &TopicPermission> {
        self.access.topic_permissions()
    }

    /// Sets or replaces a user's permissions on the routing keys of a topic exchange.
    ///
    /// # Errors
    /// [`AdminError`].
    pub fn set_topic_permissions(
        &mut self,
        _now: Timestamp,
        user: &str,
        vhost: &str,
        exchange: &str,
        write: &str,
        read: &str,
    ) -> Result<Ticket, AdminError> {
        self.vhost_id(vhost)?;
        let permission = TopicPermission {
            user: Arc::from(user),
            vhost: VhostName::parse(vhost)?,
            exchange: Box::from(exchange),
            write: Box::from(write),
            read: Box::from(read),
        };
        self.access.set_topic_permission(permission.clone())?;
        self.persist(&Item::TopicPermission(permission));
        Ok(self.ticket(Durability::Fsync))
    }

    /// Takes a user's topic permissions in a vhost away: all, or those of one exchange.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`] or [`AdminError::NoSuchVhost`]; not if there were none.
    pub fn clear_topic_permissions(
        &mut self,
        _now: Timestamp,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<Ticket, AdminError> {
        self.vhost_id(vhost)?;
        self.user_exists(user)?;
        let removed = self.access.clear_topic_permissions(user, vhost, exchange);
        if removed.is_empty() {
            return Ok(Ticket::NONE);
        }
        removed.into_iter().for_each(|p| self.unpersist(&Item::TopicPermission(p)));
        Ok(self.ticket(Durability::Fsync))
    }

    pub(crate) fn add_vhost(&mut self, stored: StoredVhost) -> VhostId {
        let name = stored.name.clone();
        let id = VhostId(self.vhosts.insert(Vhost::new(stored)));
        self.vhost_ids.insert(name, id);
        id
    }

    fn vhost_id(&self, vhost: &str) -> Result<VhostId, AdminError> {
        let id = self.vhost_ids.get(vhost).copied();
        id.ok_or_else(|| AdminError::NoSuchVhost { vhost: vhost.to_owned() })
    }

    fn user_exists(&self, user: &str) -> Result<(), AdminError> {
        match self.access.user(user) {
            Some(_) => Ok(()),
            None => Err(AdminError::NoSuchUser { user: user.to_owned() }),
        }
    }

    fn close_connections(
        &mut self,
        which: impl Fn(&crate::connection::Connection) -> bool,
        reason: &CloseReason,
    ) {
        let doomed: Vec<_> = self
            .clients
            .connections
            .iter()
            .filter(|(_, connection)| which(connection))
            .map(|(key, _)| ConnectionId(key))
            .collect();
        for connection in doomed {
            self.request_close(connection, reason.clone());
        }
    }
}
