//! Users, permissions and access keys that another store keeps: they are in memory here as the log's are, and are not
//! written to the log, which goes on having its own.

use quelea_model::{Timestamp, VhostName};
use quelea_store::{Durability, Ticket};

use super::Broker;
use crate::access::AccessError;
use crate::access::{Access, AccessRecords, TopicPermission};
use crate::effect::CloseReason;
use crate::error::AdminError;

impl Broker {
    /// Returns what the log has of users, permissions and access keys, and which virtual hosts
    /// there are.
    #[must_use]
    pub fn access_records(&self) -> AccessRecords {
        let own = self.own_access.as_deref().unwrap_or(&self.access);
        let vhosts = self.routing.vhosts().map(|(_, vhost)| vhost.name.clone()).collect();
        AccessRecords { vhosts, ..own.records() }
    }

    /// Takes over these records: from now on they hold, and what [`Broker::put_user`] and its like
    /// would change is kept elsewhere. Virtual hosts that are missing are made; connections of
    /// users who are gone are closed. Topic permissions stay those of this node. Returns what could
    /// not be taken over.
    pub fn adopt_access(&mut self, now: Timestamp, records: &AccessRecords) -> Vec<AccessError> {
        for vhost in &records.vhosts {
            // One that is being deleted is made when these come again.
            let _ = self.put_vhost(now, vhost.as_str());
        }
        let before = std::mem::take(&mut self.access);
        let own = self.own_access.as_deref().unwrap_or(&before);
        let topics = own.accounts.topic_permissions();
        let (access, refused) = Access::of_records(records, topics, &before);
        self.access = access;
        let gone = before.gone_from(records);
        if self.own_access.is_none() {
            self.own_access = Some(Box::new(before));
        }
        for user in gone {
            let reason = CloseReason::UserDeleted { user: user.to_string() };
            self.close_connections(|connection| *connection.user == *user, &reason);
        }
        refused
    }

    /// Refuses a change of what another store keeps.
    pub(super) const fn keeps_access(&self) -> Result<(), AdminError> {
        if self.own_access.is_none() { Ok(()) } else { Err(AdminError::KeptElsewhere) }
    }

    /// Sets a topic permission of a user that another store keeps. The log knows the user by name only.
    pub(super) fn set_adopted_topic_permission(
        &mut self,
        permission: TopicPermission,
    ) -> Result<Ticket, AdminError> {
        self.access.accounts.set_topic_permission(permission.clone())?;
        let log = &mut self.messaging.log;
        if let Some(own) = &mut self.own_access {
            if own.accounts.user(&permission.user).is_none() {
                own.put_user(log, &permission.user, "", &[""; 0])?;
            }
            own.set_topic_permission(log, permission)?;
        }
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Takes topic permissions away of a user that another store keeps. Returns whether there were any.
    pub(super) fn clear_adopted_topic_permissions(
        &mut self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<bool, AdminError> {
        let any = !self.access.accounts.clear_topic_permissions(user, vhost, exchange).is_empty();
        let log = &mut self.messaging.log;
        if any && let Some(own) = &mut self.own_access {
            own.clear_topic_permissions(log, user, vhost, exchange)?;
        }
        Ok(any)
    }

    /// A virtual host is gone, and what is kept of it here.
    pub(super) fn remove_access_of(&mut self, vhost: &VhostName) {
        let log = &mut self.messaging.log;
        match &mut self.own_access {
            Some(own) => {
                own.remove_vhost(log, vhost);
                self.access.accounts.remove_vhost(vhost.as_str());
            }
            None => self.access.remove_vhost(log, vhost),
        }
    }
}
