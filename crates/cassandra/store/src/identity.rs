//! Accounts, users, permissions and access keys that all front-ends share. What requests ask of them is remembered for
//! a moment.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, Fault, Identity, IdentityDirectory, PermissionRecord, Permits,
    QueueRef, User, UserRecord,
};

use crate::limits::{IDENTITY_AGE_MS_MAX, REMEMBERED_IDENTITIES_MAX};
use crate::name_pattern::NamePattern;
use crate::remembered::Remembered;
use crate::store::CassandraQueues;

/// Who may call, as Cassandra has it. Cheap to clone.
#[derive(Clone)]
pub struct CassandraIdentity {
    store: CassandraQueues,
    known: Arc<Known>,
}

/// What was read a moment ago, what is not there included.
struct Known {
    keys: Remembered<String, Option<AccessKey>>,
    patterns: Remembered<User, Option<Arc<Patterns>>>,
    default_account: OnceLock<Arc<str>>,
}

/// What a user may do in an account, by queues' names.
struct Patterns {
    configure: NamePattern,
    write: NamePattern,
    read: NamePattern,
}

impl Patterns {
    /// Those that cannot be read allow nothing.
    fn read([configure, write, read]: [String; 3]) -> Option<Self> {
        Some(Self {
            configure: NamePattern::parse(&configure).ok()?,
            write: NamePattern::parse(&write).ok()?,
            read: NamePattern::parse(&read).ok()?,
        })
    }

    fn permits(&self, queue: &str) -> Permits {
        Permits {
            configure: self.configure.fits(queue),
            write: self.write.fits(queue),
            read: self.read.fits(queue),
        }
    }
}

impl CassandraIdentity {
    /// Who may call those queues.
    #[must_use]
    pub fn new(queues: &CassandraQueues) -> Self {
        let age_max = Duration::from_millis(IDENTITY_AGE_MS_MAX);
        let known = Known {
            keys: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
            patterns: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
            default_account: OnceLock::new(),
        };
        Self { store: queues.clone(), known: Arc::new(known) }
    }

    /// Whether there is no user at all yet.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn is_new(&self) -> Result<bool, Fault> {
        Ok(self.users().await?.is_empty())
    }

    /// Whether users and all that belongs to them are being taken over from a log, or that was broken off.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn is_being_taken_over(&self) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        shared.take_over.is_under_way(&shared.database.session).await
    }

    /// Notes that they are, or are not any more.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn set_being_taken_over(&self, is: bool) -> Result<(), Fault> {
        let shared = &self.store.shared;
        shared.take_over.set_under_way(&shared.database.session, is).await
    }

    /// All access keys, by id, each with its secret.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn keys_with_secrets(&self) -> Result<Vec<(AccessKeyRecord, Arc<str>)>, Fault> {
        let shared = &self.store.shared;
        shared.identity.keys(&shared.database.session).await
    }

    /// Which account is the default one from now on: it cannot be deleted here.
    pub fn keep_account(&self, default_account: &str) {
        // There is one for as long as the server runs.
        let _ = self.known.default_account.set(default_account.into());
    }

    /// Makes the first account, and the first user with all permissions in it. Front-ends that do so at once make the
    /// same.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn bootstrap(&self, default_account: &str, user: UserRecord) -> Result<(), Fault> {
        let all = || ".*".to_owned();
        let permission = PermissionRecord {
            user: Arc::clone(&user.name),
            account: default_account.into(),
            configure: all(),
            write: all(),
            read: all(),
        };
        let (table, session) = (&self.store.shared.identity, &self.store.shared.database.session);
        self.put_account(default_account).await?;
        table.put_permission(session, &permission).await?;
        // The last of it, so that what was interrupted is done again.
        table.put_user(session, &user).await
    }

    async fn patterns(&self, user: &User) -> Result<Option<Arc<Patterns>>, Fault> {
        let Some(name) = &user.name else { return Ok(None) };
        let now = Instant::now();
        if let Some(known) = self.known.patterns.recall(user, now) {
            return Ok(known);
        }
        let shared = &self.store.shared;
        let session = &shared.database.session;
        let texts = shared.identity.permission(session, name, &user.account).await?;
        let patterns = texts.and_then(Patterns::read).map(Arc::new);
        self.known.patterns.remember(user.clone(), patterns.clone(), now);
        Ok(patterns)
    }

    fn changed(&self) {
        self.known.keys.forget_all();
        self.known.patterns.forget_all();
    }
}

impl Identity for CassandraIdentity {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        let (id, now) = (id.to_owned(), Instant::now());
        if let Some(known) = self.known.keys.recall(&id, now) {
            return Ok(known);
        }
        let shared = &self.store.shared;
        let key = shared.identity.key(&shared.database.session, &id).await?;
        self.known.keys.remember(id, key.clone(), now);
        Ok(key)
    }

    async fn permits(&self, user: &User, queue: &QueueRef) -> Result<Permits, Fault> {
        if user.name.is_none() {
            return Ok(Permits::ALL);
        }
        // A key of one account may be used in another, as far as its user has permissions there.
        let there = User { name: user.name.clone(), account: Arc::clone(&queue.account) };
        let patterns = self.patterns(&there).await?;
        Ok(patterns.map_or_else(Permits::default, |patterns| patterns.permits(&queue.name)))
    }

    async fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        mut names: Vec<String>,
    ) -> Result<Vec<String>, Fault> {
        if user.name.is_none() {
            return Ok(names);
        }
        let there = User { name: user.name.clone(), account: Arc::clone(account) };
        let patterns = self.patterns(&there).await?;
        names.retain(|name| patterns.as_ref().is_some_and(|patterns| patterns.permits(name).any()));
        Ok(names)
    }
}

impl IdentityDirectory for CassandraIdentity {
    async fn accounts(&self) -> Result<Vec<Arc<str>>, Fault> {
        let shared = &self.store.shared;
        shared.identity.accounts(&shared.database.session).await
    }

    async fn put_account(&self, account: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        if self.accounts().await?.iter().any(|there| **there == *account) {
            return Ok(false);
        }
        let now_ms = shared.database.clock.now_ms();
        shared.identity.put_account(&shared.database.session, account, now_ms).await?;
        Ok(true)
    }

    async fn delete_account(&self, account: &str) -> Result<bool, Fault> {
        if self.known.default_account.get().is_some_and(|default| **default == *account) {
            return Err(Fault::Invalid(format!(
                "the account {account} is sqs.account_id, which cannot be deleted"
            )));
        }
        if !self.accounts().await?.iter().any(|there| **there == *account) {
            return Ok(false);
        }
        let shared = &self.store.shared;
        if !shared.queues.list(&shared.database, account, "", None, 1).await?.is_empty() {
            return Err(Fault::Invalid(format!("the account {account} still has queues")));
        }
        for permission in self.permissions().await? {
            if *permission.account == *account {
                self.delete_permission(&permission.user, account).await?;
            }
        }
        for key in self.access_keys().await? {
            if *key.account == *account {
                self.delete_access_key(&key.id).await?;
            }
        }
        shared.identity.delete_account(&shared.database.session, account).await?;
        Ok(true)
    }

    async fn users(&self) -> Result<Vec<UserRecord>, Fault> {
        let shared = &self.store.shared;
        shared.identity.users(&shared.database.session).await
    }

    async fn user(&self, name: &str) -> Result<Option<UserRecord>, Fault> {
        let shared = &self.store.shared;
        shared.identity.user(&shared.database.session, name).await
    }

    async fn put_user(&self, user: UserRecord) -> Result<bool, Fault> {
        if user.name.is_empty() || user.name.chars().any(char::is_control) {
            return Err(Fault::Invalid(
                "a user's name is a text without control characters".to_owned(),
            ));
        }
        let is_new = self.user(&user.name).await?.is_none();
        let shared = &self.store.shared;
        shared.identity.put_user(&shared.database.session, &user).await?;
        Ok(is_new)
    }

    async fn delete_user(&self, name: &str) -> Result<bool, Fault> {
        if self.user(name).await?.is_none() {
            return Ok(false);
        }
        for key in self.access_keys().await? {
            if *key.user == *name {
                self.delete_access_key(&key.id).await?;
            }
        }
        for permission in self.permissions().await? {
            if *permission.user == *name {
                self.delete_permission(name, &permission.account).await?;
            }
        }
        let shared = &self.store.shared;
        shared.identity.delete_user(&shared.database.session, name).await?;
        Ok(true)
    }

    async fn permissions(&self) -> Result<Vec<PermissionRecord>, Fault> {
        let shared = &self.store.shared;
        shared.identity.permissions(&shared.database.session).await
    }

    async fn put_permission(&self, permission: PermissionRecord) -> Result<(), Fault> {
        for pattern in [&permission.configure, &permission.write, &permission.read] {
            NamePattern::parse(pattern)?;
        }
        self.expect_user_and_account(&permission.user, &permission.account).await?;
        let shared = &self.store.shared;
        shared.identity.put_permission(&shared.database.session, &permission).await?;
        self.changed();
        Ok(())
    }

    async fn delete_permission(&self, user: &str, account: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let session = &shared.database.session;
        if shared.identity.permission(session, user, account).await?.is_none() {
            return Ok(false);
        }
        shared.identity.delete_permission(session, user, account).await?;
        self.changed();
        Ok(true)
    }

    async fn access_keys(&self) -> Result<Vec<AccessKeyRecord>, Fault> {
        Ok(self.keys_with_secrets().await?.into_iter().map(|(key, _)| key).collect())
    }

    async fn create_access_key(&self, key: AccessKeyRecord, secret: &str) -> Result<(), Fault> {
        self.expect_user_and_account(&key.user, &key.account).await?;
        let shared = &self.store.shared;
        shared.identity.put_key(&shared.database.session, &key, secret).await?;
        self.changed();
        Ok(())
    }

    async fn enable_access_key(&self, id: &str, enabled: bool) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let session = &shared.database.session;
        if shared.identity.key(session, id).await?.is_none() {
            return Ok(false);
        }
        shared.identity.enable_key(session, id, enabled).await?;
        self.changed();
        Ok(true)
    }

    async fn delete_access_key(&self, id: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let session = &shared.database.session;
        if shared.identity.key(session, id).await?.is_none() {
            return Ok(false);
        }
        shared.identity.delete_key(session, id).await?;
        self.changed();
        Ok(true)
    }

    async fn check(&self) -> Result<(), Fault> {
        // As all that is served: more than half of the replicas have to answer.
        self.accounts().await.map(drop)
    }
}

impl CassandraIdentity {
    async fn expect_user_and_account(&self, user: &str, account: &str) -> Result<(), Fault> {
        if self.user(user).await?.is_none() {
            return Err(Fault::Invalid(format!("there is no user {user:?}")));
        }
        if !self.accounts().await?.iter().any(|there| **there == *account) {
            return Err(Fault::Invalid(format!("there is no account {account:?}")));
        }
        Ok(())
    }
}
