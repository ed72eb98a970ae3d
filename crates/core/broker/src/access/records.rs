//! All of who may do what, as plain records: what a log has of it goes to another store by these, and comes from there.

use std::collections::BTreeSet;
use std::sync::Arc;

use quelea_model::VhostName;

use super::Access;
use super::access_key::AccessKey;
use super::accounts::Accounts;
use super::error::AccessError;
use super::keys::AccessKeys;
use super::permission::{Permission, TopicPermission, User};

/// Virtual hosts, users, their permissions and their access keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRecords {
    /// Virtual hosts, by name.
    pub vhosts: Vec<VhostName>,
    /// Users, by name.
    pub users: Vec<User>,
    /// Permissions, by user and virtual host.
    pub permissions: Vec<Permission>,
    /// Access keys, by id.
    pub keys: Vec<AccessKey>,
}

impl Access {
    /// Returns what is kept here, without its virtual hosts, and without users of whom only the
    /// name is known: those whom another store keeps and who have topic permissions here.
    pub(crate) fn records(&self) -> AccessRecords {
        let permissions = self.accounts.permissions().map(|permission| &*permission.user);
        let in_use: BTreeSet<&str> =
            permissions.chain(self.keys.iter().map(|key| &*key.user)).collect();
        let is_kept = |user: &User| {
            !user.password_hash.is_empty() || !user.tags.is_empty() || in_use.contains(&*user.name)
        };
        AccessRecords {
            vhosts: Vec::new(),
            users: self.accounts.users().filter(|user| is_kept(user)).cloned().collect(),
            permissions: self.accounts.permissions().cloned().collect(),
            keys: self.keys.iter().cloned().collect(),
        }
    }

    /// Takes over the users, permissions and keys of the records, with the topic permissions of
    /// this node. Returns them, and what could not be taken of them: a user beyond the limit, a
    /// pattern that is none. Who has topic permissions and is not among the records stays, so that
    /// these hold when it comes, and can do nothing. `before` was in force until now.
    pub(crate) fn of_records<'a>(
        records: &AccessRecords,
        topic_permissions: impl Iterator<Item = &'a TopicPermission>,
        before: &Self,
    ) -> (Self, Vec<AccessError>) {
        let mut accounts = Accounts::after(&before.accounts);
        let mut keys = AccessKeys::after(&before.keys);
        let mut refused = Vec::new();
        for user in &records.users {
            refused.extend(accounts.put_user(&user.name, &user.password_hash, &user.tags).err());
        }
        for permission in &records.permissions {
            refused.extend(accounts.set_permission(permission.clone()).err());
        }
        for permission in topic_permissions {
            if accounts.user(&permission.user).is_none() {
                refused.extend(accounts.put_user(&permission.user, "", &[""; 0]).err());
            }
            refused.extend(accounts.set_topic_permission(permission.clone()).err());
        }
        for key in &records.keys {
            keys.restore(key.clone());
        }
        (Self { accounts, keys }, refused)
    }

    /// Returns the names of those who are here and not in the records.
    pub(crate) fn gone_from(&self, records: &AccessRecords) -> BTreeSet<Arc<str>> {
        let there: BTreeSet<&str> = records.users.iter().map(|user| &*user.name).collect();
        let gone = self.accounts.users().filter(|user| !there.contains(&*user.name));
        gone.map(|user| Arc::clone(&user.name)).collect()
    }
}
