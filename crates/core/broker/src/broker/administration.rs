//! Virtual hosts, users, permissions and access keys, for the management API.

use std::sync::Arc;

use quelea_model::{Timestamp, VhostName};
use quelea_store::{Durability, Ticket};

use super::Broker;
use crate::access::Access;
use crate::access::access_key::NewAccessKey;
use crate::access::keys::check_texts;
use crate::access::permission::{Permission, TopicPermission};
use crate::clients::connection::Connection;
use crate::effect::CloseReason;
use crate::error::AdminError;
use crate::ids::VhostId;
use crate::topology::{Item, StoredVhost};

/// The virtual host that exists from the start, and the user.
const DEFAULT_VHOST: &str = "/";
const DEFAULT_USER: &str = "guest";

impl Broker {
    /// Creates vhost `/` and user `guest`, administrator with all permissions, if there is neither
    /// a vhost nor a user yet. Returns whether it did.
    ///
    /// `guest_password_hash` is a PHC string.
    pub fn bootstrap(&mut self, guest_password_hash: &str) -> bool {
        if self.routing.vhost_count() > 0 || self.access.accounts.users().next().is_some() {
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

    /// Returns the users, permissions and access keys.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
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
        self.keeps_access()?;
        self.access.put_user(&mut self.messaging.log, name, password_hash, tags)?;
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Deletes a user with its permissions and access keys; its connections are closed.
    ///
    /// # Errors
    /// [`AdminError::NoSuchUser`].
    pub fn delete_user(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        self.keeps_access()?;
        self.access.delete_user(&mut self.messaging.log, name)?;
        let reason = CloseReason::UserDeleted { user: name.to_owned() };
        self.close_connections(|connection| &*connection.user == name, &reason);
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Creates a virtual host. One that exists is no error.
    ///
    /// # Errors
    /// [`AdminError::InvalidName`], [`AdminError::VhostBeingDeleted`].
    pub fn put_vhost(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        let name = VhostName::parse(name)?;
        if self.routing.vhost_id(name.as_str()).is_some() {
            return Ok(Ticket::NONE);
        }
        if self.removals.holds_vhost(&name) {
            return Err(AdminError::VhostBeingDeleted { vhost: name });
        }
        self.make_vhost(name);
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Deletes a virtual host with all that is in it; its connections are closed. It is gone at once, what
    /// was in it goes over several turns if it is much.
    ///
    /// # Errors
    /// [`AdminError::NoSuchVhost`].
    pub fn delete_vhost(&mut self, _now: Timestamp, name: &str) -> Result<Ticket, AdminError> {
        let id = self.vhost_id(name)?;
        let reason = CloseReason::VhostDeleted { vhost: name.to_owned() };
        self.close_connections(|connection| connection.vhost == id, &reason);
        let log = &mut self.messaging.log;
        let Some(stored) = self.routing.begin_vhost_removal(id) else {
            return Err(AdminError::NoSuchVhost { vhost: name.to_owned() });
        };
        log.store.begin_atomic();
        self.remove_access_of(&stored.name);
        let log = &mut self.messaging.log;
        log.unpersist(&Item::Vhost(stored.clone()));
        log.store.end_atomic();
        self.remove_vhost(id, stored.name);
        Ok(self.messaging.ticket(Durability::Fsync))
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
        self.keeps_access()?;
        self.access.set_permission(&mut self.messaging.log, permission)?;
        Ok(self.messaging.ticket(Durability::Fsync))
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
        self.keeps_access()?;
        let written = self.access.clear_permission(&mut self.messaging.log, user, vhost)?;
        Ok(self.messaging.topology_ticket(written))
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
        if self.own_access.is_some() {
            return self.set_adopted_topic_permission(permission);
        }
        self.access.set_topic_permission(&mut self.messaging.log, permission)?;
        Ok(self.messaging.ticket(Durability::Fsync))
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
        let written = if self.own_access.is_some() {
            self.clear_adopted_topic_permissions(user, vhost, exchange)?
        } else {
            let log = &mut self.messaging.log;
            self.access.clear_topic_permissions(log, user, vhost, exchange)?
        };
        Ok(self.messaging.topology_ticket(written))
    }

    /// Makes a key. The user needs no permissions in the virtual host yet.
    ///
    /// # Errors
    /// [`AdminError`]; nothing has changed then.
    pub fn create_access_key(
        &mut self,
        now: Timestamp,
        new: NewAccessKey<'_>,
    ) -> Result<Ticket, AdminError> {
        self.keeps_access()?;
        check_texts(&new)?;
        let Some(user) = self.access.accounts.user(new.user).map(|user| Arc::clone(&user.name))
        else {
            return Err(AdminError::NoSuchUser { user: new.user.to_owned() });
        };
        let vhost = self.vhost_id(new.vhost)?;
        let Some(vhost) = self.routing.vhost(vhost).map(|vhost| vhost.name.clone()) else {
            return Err(AdminError::NoSuchVhost { vhost: new.vhost.to_owned() });
        };
        self.access.keys.create(&mut self.messaging.log, now, new, user, vhost)?;
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Enables or disables a key.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccessKey`].
    pub fn enable_access_key(
        &mut self,
        _now: Timestamp,
        id: &str,
        enabled: bool,
    ) -> Result<Ticket, AdminError> {
        self.keeps_access()?;
        let written = self.access.keys.enable(&mut self.messaging.log, id, enabled)?;
        Ok(self.messaging.topology_ticket(written))
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccessKey`].
    pub fn delete_access_key(&mut self, _now: Timestamp, id: &str) -> Result<Ticket, AdminError> {
        self.keeps_access()?;
        self.access.keys.delete(&mut self.messaging.log, id)?;
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Makes a virtual host that is not there, and keeps it.
    pub(super) fn make_vhost(&mut self, name: VhostName) {
        let stored = StoredVhost { name, description: Box::from(""), tags: Vec::new() };
        self.add_vhost(stored.clone());
        self.messaging.log.persist(&Item::Vhost(stored));
    }

    pub(super) fn add_vhost(&mut self, stored: StoredVhost) {
        let id = self.routing.add_vhost(stored);
        self.messaging.queues.add_vhost(id);
    }

    /// Returns the ids of those of these virtual hosts that there are.
    pub fn vhost_ids<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<VhostId> {
        names.filter_map(|name| self.routing.vhost_id(name)).collect()
    }

    fn vhost_id(&self, vhost: &str) -> Result<VhostId, AdminError> {
        let id = self.routing.vhost_id(vhost);
        id.ok_or_else(|| AdminError::NoSuchVhost { vhost: vhost.to_owned() })
    }

    pub(super) fn close_connections(
        &mut self,
        which: impl Fn(&Connection) -> bool,
        reason: &CloseReason,
    ) {
        let connections = self.messaging.clients.connections.iter();
        let doomed: Vec<_> =
            connections.filter(|(_, connection)| which(connection)).map(|(id, _)| id).collect();
        for connection in doomed {
            self.request_close(connection, reason.clone());
        }
    }
}
