//! Who calls, and what they may do: access keys, users and their permissions. It need not be kept
//! where the queues are.

use std::sync::Arc;

use crate::{Fault, QueueRef};

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The user that the access key belongs to; `None`: anybody on this machine, who may do
    /// everything, in any account.
    pub name: Option<Arc<str>>,
    /// The account whose key it is.
    pub account: Arc<str>,
}

/// An access key, enabled or not.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Whose it is.
    pub user: User,
    /// What signatures are made with.
    pub secret: Arc<str>,
    /// A disabled key signs nothing.
    pub enabled: bool,
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, enabled, .. } = self;
        f.debug_struct("AccessKey")
            .field("user", user)
            .field("enabled", enabled)
            .finish_non_exhaustive()
    }
}

/// What a user's permissions in the queue's virtual host allow with that queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Create, delete, set attributes, tag.
    pub configure: bool,
    /// Send.
    pub write: bool,
    /// Receive, delete messages, change their visibility, purge, look at attributes.
    pub read: bool,
}

impl Permits {
    /// Everything.
    pub const ALL: Self = Self { configure: true, write: true, read: true };

    /// Returns whether the queue may be seen at all.
    #[must_use]
    pub const fn any(self) -> bool {
        self.configure || self.write || self.read
    }
}

/// Access keys, and the permissions of users in accounts. Cheap to clone. Mostly answered from memory:
/// how old an answer may be is the implementation's to say on its page, seconds at most, since a key that
/// was disabled signs for so long.
pub trait Identity: Clone + Send + Sync + 'static {
    /// Looks up an access key.
    ///
    /// # Errors
    ///
    /// [`Fault::Unavailable`] if the store cannot be asked now.
    fn access_key(&self, id: &str)
    -> impl Future<Output = Result<Option<AccessKey>, Fault>> + Send;

    /// Returns what a user may do with a queue, whether or not there is one of that name. Not asked
    /// for users without a name, who may do everything.
    ///
    /// # Errors
    ///
    /// As [`Identity::access_key`].
    fn permits(
        &self,
        user: &User,
        queue: &QueueRef,
    ) -> impl Future<Output = Result<Permits, Fault>> + Send;

    /// Returns those of these names of an account's queues that the user may see, in their order.
    ///
    /// # Errors
    ///
    /// As [`Identity::access_key`].
    fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        names: Vec<String>,
    ) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;
}
