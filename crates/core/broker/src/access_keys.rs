//! Access keys: what clients of the SQS interface sign their requests with.
//!
//! A key belongs to a user and to an account, which is a virtual host; what it may do there is what
//! the user's permissions say. A user has several keys, so that one can be replaced while the other
//! is in use. The secret has to be known here, since a signature is an HMAC: it is stored as it is,
//! and is shown to nobody but whoever makes the key.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use quelea_model::limits::{ACCESS_KEYS_MAX, ACCESS_KEYS_PER_USER_MAX};
use quelea_model::{Timestamp, VhostName};
use quelea_store::{Durability, Ticket};

use crate::Broker;
use crate::access::AccessError;
use crate::error::AdminError;
use crate::topology::Item;

/// An access key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// What requests name it by: 16 to 128 letters and digits.
    pub id: Arc<str>,
    /// What signatures are made with: 16 to 128 printable characters.
    pub secret: Arc<str>,
    /// Whose it is.
    pub user: Arc<str>,
    /// The account that it is for.
    pub vhost: VhostName,
    /// A disabled key signs nothing.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKey")
            .field("id", &self.id)
            .field("user", &self.user)
            .field("vhost", &self.vhost)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

/// A key to make. Its id and secret come from the shell, because the broker's generator is seeded
/// and not meant for secrets.
#[derive(Clone, Copy)]
pub struct NewAccessKey<'a> {
    /// The id.
    pub id: &'a str,
    /// The secret.
    pub secret: &'a str,
    /// Whose it is.
    pub user: &'a str,
    /// The account that it is for.
    pub vhost: &'a str,
}

/// The shortest and the longest id and secret. AWS's ids have 16 to 128 characters too.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// All keys, by id.
#[derive(Debug, Default)]
pub(crate) struct AccessKeys {
    keys: BTreeMap<Arc<str>, AccessKey>,
}

impl AccessKeys {
    pub(crate) fn get(&self, id: &str) -> Option<&AccessKey> {
        self.keys.get(id)
    }

    /// Takes one in, in place of the one of that id.
    pub(crate) fn put(&mut self, key: AccessKey) {
        self.keys.insert(Arc::clone(&key.id), key);
    }

    fn of_user(&self, user: &str) -> usize {
        self.keys.values().filter(|key| &*key.user == user).count()
    }
}

impl Broker {
    /// The key of that id, enabled or not.
    #[must_use]
    pub fn access_key(&self, id: &str) -> Option<&AccessKey> {
        self.access_keys.get(id)
    }

    /// All keys, by id.
    pub fn access_keys(&self) -> impl Iterator<Item = &AccessKey> {
        self.access_keys.keys.values()
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
        check("id", new.id, |byte| byte.is_ascii_alphanumeric())?;
        check("secret", new.secret, |byte| byte.is_ascii_graphic())?;
        let Some(user) = self.access.user(new.user).map(|user| Arc::clone(&user.name)) else {
            return Err(AdminError::NoSuchUser { user: new.user.to_owned() });
        };
        let Some((vhost, _)) = self.vhost_ids.get_key_value(new.vhost) else {
            return Err(AdminError::NoSuchVhost { vhost: new.vhost.to_owned() });
        };
        if self.access_keys.get(new.id).is_some() {
            return Err(AdminError::AccessKeyExists { id: new.id.to_owned() });
        }
        let counts = [
            ("access keys", self.access_keys.keys.len(), ACCESS_KEYS_MAX),
            ("access keys of a user", self.access_keys.of_user(new.user), ACCESS_KEYS_PER_USER_MAX),
        ];
        for (what, count, max) in counts {
            if count >= max {
                return Err(AccessError::TooMany { what, max }.into());
            }
        }
        let (id, secret) = (new.id.into(), new.secret.into());
        let vhost = vhost.clone();
        self.put_access_key(AccessKey { id, secret, user, vhost, enabled: true, created_at: now });
        Ok(self.ticket(Durability::Fsync))
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
        let Some(key) = self.access_keys.get(id).cloned() else {
            return Err(AdminError::NoSuchAccessKey { id: id.to_owned() });
        };
        if key.enabled == enabled {
            return Ok(Ticket::NONE);
        }
        self.put_access_key(AccessKey { enabled, ..key });
        Ok(self.ticket(Durability::Fsync))
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccessKey`].
    pub fn delete_access_key(&mut self, _now: Timestamp, id: &str) -> Result<Ticket, AdminError> {
        if self.access_keys.get(id).is_none() {
            return Err(AdminError::NoSuchAccessKey { id: id.to_owned() });
        }
        self.remove_access_keys(|key| &*key.id == id);
        Ok(self.ticket(Durability::Fsync))
    }

    /// A user or a virtual host is gone, and so are its keys.
    pub(crate) fn remove_access_keys(&mut self, which: impl Fn(&AccessKey) -> bool) {
        let keys = std::mem::take(&mut self.access_keys.keys);
        let (gone, kept) = keys.into_iter().partition(|(_, key)| which(key));
        self.access_keys.keys = kept;
        let gone: BTreeMap<_, _> = gone;
        // Whoever remembers a key that was looked up forgets it with the queues that were.
        self.queues_epoch += u64::from(!gone.is_empty());
        gone.into_values().for_each(|key| self.unpersist(&Item::AccessKey(key)));
    }

    fn put_access_key(&mut self, key: AccessKey) {
        self.queues_epoch += 1;
        self.persist(&Item::AccessKey(key.clone()));
        self.access_keys.put(key);
    }
}

/// The reason names the field and never its text: it may be a secret.
fn check(field: &'static str, text: &str, fits: impl Fn(u8) -> bool) -> Result<(), AdminError> {
    if LENGTHS.contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    Err(AdminError::AccessKeyText { field, min: *LENGTHS.start(), max: *LENGTHS.end() })
}
