//! Access keys: what clients of the SQS interface sign their requests with.
//!
//! A key belongs to a user and to an account, which is a virtual host; what it may do there is what
//! the user's permissions say. A user has several keys, so that one can be replaced while the other
//! is in use. The secret has to be known here, since a signature is an HMAC: it is stored as it is,
//! and is shown to nobody but whoever makes the key.

use std::fmt;
use std::sync::Arc;

use quelea_model::{Timestamp, VhostName};

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
