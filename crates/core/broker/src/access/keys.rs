//! All access keys: making, enabling and deleting them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_model::limits::{ACCESS_KEY_BYTES_MAX, ACCESS_KEYS_MAX, ACCESS_KEYS_PER_USER_MAX};
use quelea_model::{Timestamp, VhostName};

use super::access_key::{AccessKey, NewAccessKey};
use super::error::AccessError;
use crate::error::AdminError;
use crate::log::Log;
use crate::topology::Item;

/// The shortest and the longest id and secret. AWS's ids have 16 to 128 characters too.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=ACCESS_KEY_BYTES_MAX;

/// All keys, by id.
#[derive(Debug, Default)]
pub struct AccessKeys {
    keys: BTreeMap<Arc<str>, AccessKey>,
    epoch: u64,
}

impl AccessKeys {
    /// Creates an empty one in the place of `before`: who remembers any key of that one sees that
    /// all have changed.
    pub(super) fn after(before: &Self) -> Self {
        Self { epoch: before.epoch + 1, ..Self::default() }
    }

    /// Returns the key of that id, enabled or not.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&AccessKey> {
        self.keys.get(id)
    }

    /// Returns all keys, by id.
    pub fn iter(&self) -> impl Iterator<Item = &AccessKey> {
        self.keys.values()
    }

    /// Returns a number that moves with every change, so that others may remember a key that they
    /// looked up.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Makes a key for a user that exists.
    ///
    /// # Errors
    /// [`AdminError`]; nothing has changed then.
    pub(crate) fn create(
        &mut self,
        log: &mut Log,
        now: Timestamp,
        new: NewAccessKey<'_>,
        user: Arc<str>,
        vhost: VhostName,
    ) -> Result<(), AdminError> {
        if self.get(new.id).is_some() {
            return Err(AdminError::AccessKeyExists { id: new.id.to_owned() });
        }
        let of_user = self.iter().filter(|key| key.user == user).count();
        let counts = [
            ("access keys", self.keys.len(), ACCESS_KEYS_MAX),
            ("access keys of a user", of_user, ACCESS_KEYS_PER_USER_MAX),
        ];
        for (what, count, max) in counts {
            if count >= max {
                return Err(AccessError::TooMany { what, max }.into());
            }
        }
        let (id, secret) = (new.id.into(), new.secret.into());
        self.put(log, AccessKey { id, secret, user, vhost, enabled: true, created_at: now });
        Ok(())
    }

    /// Enables or disables a key. Returns whether that changes anything.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccessKey`].
    pub(crate) fn enable(
        &mut self,
        log: &mut Log,
        id: &str,
        enabled: bool,
    ) -> Result<bool, AdminError> {
        let key = self.get(id).ok_or_else(|| no_such_key(id))?;
        if key.enabled == enabled {
            return Ok(false);
        }
        let key = AccessKey { enabled, ..key.clone() };
        self.put(log, key);
        Ok(true)
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccessKey`].
    pub(crate) fn delete(&mut self, log: &mut Log, id: &str) -> Result<(), AdminError> {
        if self.get(id).is_none() {
            return Err(no_such_key(id));
        }
        self.remove(log, |key| &*key.id == id);
        Ok(())
    }

    /// Deletes all that `which` names, as when their user or virtual host is gone.
    pub(super) fn remove(&mut self, log: &mut Log, which: impl Fn(&AccessKey) -> bool) {
        let keys = std::mem::take(&mut self.keys);
        let (gone, kept): (BTreeMap<_, _>, _) = keys.into_iter().partition(|(_, key)| which(key));
        self.keys = kept;
        self.epoch += u64::from(!gone.is_empty());
        gone.into_values().for_each(|key| log.unpersist(&Item::AccessKey(key)));
    }

    /// Takes a key that the log has kept, in place of the one of that id.
    pub(crate) fn restore(&mut self, key: AccessKey) {
        self.keys.insert(Arc::clone(&key.id), key);
    }

    fn put(&mut self, log: &mut Log, key: AccessKey) {
        self.epoch += 1;
        log.persist(&Item::AccessKey(key.clone()));
        self.restore(key);
    }
}

/// Checks the texts of a key that is to be made.
///
/// # Errors
/// [`AdminError::AccessKeyText`].
pub(crate) fn check_texts(new: &NewAccessKey<'_>) -> Result<(), AdminError> {
    check("id", new.id, |byte| byte.is_ascii_alphanumeric())?;
    check("secret", new.secret, |byte| byte.is_ascii_graphic())
}

fn no_such_key(id: &str) -> AdminError {
    AdminError::NoSuchAccessKey { id: id.to_owned() }
}

/// Checks one text of a key. The error names the field and never its text: it may be a secret.
fn check(field: &'static str, text: &str, fits: impl Fn(u8) -> bool) -> Result<(), AdminError> {
    if LENGTHS.contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    Err(AdminError::AccessKeyText { field, min: *LENGTHS.start(), max: *LENGTHS.end() })
}
