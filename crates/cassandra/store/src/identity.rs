//! Accounts, users, permissions and access keys that all front-ends share. What requests ask of them is remembered for
//! a moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_model::limits::{
    ACCESS_KEY_BYTES_MAX, ACCESS_KEYS_MAX, ACCESS_KEYS_PER_USER_MAX, PERMISSIONS_MAX, USERS_MAX,
};
use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, AccountNames, Fault, Identity, IdentityDirectory, PermissionRecord,
    Permits, QueueRef, User, UserRecord, VhostRecord,
};
use uuid::Uuid;

use crate::limits::{IDENTITY_AGE_MS_MAX, REMEMBERED_IDENTITIES_MAX};
use crate::name_pattern::NamePattern;
use crate::remembered::Remembered;
use crate::store::CassandraQueues;

/// Who may call, as Cassandra has it. Cheap to clone.
#[derive(Clone)]
pub struct CassandraIdentity {
    store: CassandraQueues,
    names: AccountNames,
    known: Arc<IdentityCache>,
}

/// How accounts, users, permissions and access keys stand: where these are the same, none of them has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityRevisions(pub [Option<Uuid>; 4]);

/// What was read a moment ago, what is not there included.
struct IdentityCache {
    keys: Remembered<String, AccessKey>,
    /// Ids of which there is no key: whoever asks for many of those takes no room from the others.
    unknown_keys: Remembered<String, ()>,
    patterns: Remembered<User, Option<Arc<Patterns>>>,
    /// How many users there are, and permissions: who makes many does not count all of them for each.
    counts: Remembered<Kind, usize>,
}

/// What there is a limit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Users,
    Permissions,
}

/// What a user may do in an account, by queues' names.
struct Patterns {
    configure: NamePattern,
    write: NamePattern,
    read: NamePattern,
}

impl Patterns {
    /// Parses patterns; those that cannot be read allow nothing.
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
    /// Returns the identity store of those queues, which knows who may call, and which account is
    /// the default one: it cannot be deleted here.
    #[must_use]
    pub fn new(queues: &CassandraQueues, names: AccountNames) -> Self {
        let age_max = Duration::from_millis(IDENTITY_AGE_MS_MAX);
        let known = IdentityCache {
            keys: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
            unknown_keys: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
            patterns: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
            counts: Remembered::new(age_max, REMEMBERED_IDENTITIES_MAX),
        };
        Self { store: queues.clone(), names, known: Arc::new(known) }
    }

    /// Returns whether there is no user at all yet.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn is_new(&self) -> Result<bool, Fault> {
        Ok(self.users().await?.is_empty())
    }

    /// Returns whether users and all that belongs to them are being taken over from a log, or that
    /// was broken off.
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
        shared.take_over.set_under_way(&shared.database, is).await
    }

    /// Returns all access keys, by id, each with its secret.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn keys_with_secrets(&self) -> Result<Vec<(AccessKeyRecord, Arc<str>)>, Fault> {
        let shared = &self.store.shared;
        shared.identity.keys(&shared.database.session, &self.names).await
    }

    /// Returns the revisions, of which each change leaves another one, but for those by front-ends
    /// from before version 4 of the schema.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn revisions(&self) -> Result<IdentityRevisions, Fault> {
        let shared = &self.store.shared;
        shared.identity.revisions(&shared.database).await.map(IdentityRevisions)
    }

    /// Returns which virtual host each account is.
    #[must_use]
    pub const fn names(&self) -> &AccountNames {
        &self.names
    }

    /// Makes the default account.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn put_default_account(&self) -> Result<(), Fault> {
        self.put_account(self.names.default_account()).await.map(drop)
    }

    /// Makes an account, in which nobody has permissions; false if it was there.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn put_account(&self, account: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        shared.identity.put_account(&shared.database, account, None).await
    }

    /// Makes the default account, and the first user with all permissions in it. Front-ends that do so at once make the
    /// same.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn bootstrap(&self, user: UserRecord) -> Result<(), Fault> {
        let account = self.names.default_account();
        let vhost = self.names.vhost_of(account).unwrap_or_default();
        let permission = PermissionRecord::all(&user.name, vhost);
        let (table, database) = (&self.store.shared.identity, &self.store.shared.database);
        self.put_account(account).await?;
        table.put_permission(database, account, &permission).await?;
        // The last of it, so that what was interrupted is done again.
        table.put_user(database, &user).await.map(drop)
    }

    /// Makes or changes a user, however many there are: as those of a log are taken over. False if one was there.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn write_user(&self, user: &UserRecord) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        shared.identity.put_user(&shared.database, user).await
    }

    /// Sets what a user may do, however many permissions there are.
    ///
    /// # Errors
    /// As [`IdentityDirectory::put_permission`]; [`Fault::Invalid`] of a pattern that is none.
    pub async fn write_permission(&self, permission: &PermissionRecord) -> Result<bool, Fault> {
        for pattern in [&permission.configure, &permission.write, &permission.read] {
            NamePattern::parse(pattern)?;
        }
        let account = self.account_that_is_there(&permission.vhost).await?;
        self.expect_user(&permission.user).await?;
        let shared = &self.store.shared;
        let done = shared.identity.put_permission(&shared.database, account, permission).await;
        // Also where its outcome is unknown.
        self.changed();
        done
    }

    /// Makes an access key, however many there are.
    ///
    /// # Errors
    /// As [`IdentityDirectory::create_access_key`].
    pub async fn write_access_key(&self, key: &AccessKeyRecord, secret: &str) -> Result<(), Fault> {
        self.expect_user(&key.user).await?;
        let account = self.account_that_is_there(&key.vhost).await?;
        let shared = &self.store.shared;
        let done = shared.identity.put_key(&shared.database, account, key, secret).await;
        // Also where its outcome is unknown.
        self.changed();
        done
    }

    async fn accounts(&self) -> Result<Vec<Arc<str>>, Fault> {
        let shared = &self.store.shared;
        shared.identity.accounts(&shared.database.session).await
    }

    async fn has_account(&self, account: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        Ok(shared.identity.account(&shared.database.session, account).await?.is_some())
    }

    async fn account_that_is_there<'a>(&'a self, vhost: &'a str) -> Result<&'a str, Fault> {
        if let Some(account) = self.names.account_of(vhost)
            && self.has_account(account).await?
        {
            return Ok(account);
        }
        Err(Fault::NotFound(format!("no vhost '{vhost}'")))
    }

    /// Returns how many of a kind there are, or were a moment ago.
    async fn count(&self, kind: Kind) -> Result<usize, Fault> {
        let now = Instant::now();
        if let Some(known) = self.known.counts.recall(&kind, now) {
            return Ok(known);
        }
        let count = match kind {
            Kind::Users => self.users().await?.len(),
            Kind::Permissions => self.permissions().await?.len(),
        };
        self.known.counts.remember(kind, count, now);
        Ok(count)
    }

    async fn expect_user(&self, user: &str) -> Result<(), Fault> {
        match self.user(user).await? {
            Some(_) => Ok(()),
            // In the broker's words.
            None => Err(Fault::Invalid(format!("no user '{user}'"))),
        }
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

    /// Gives the maker of an account all permissions in it, once. Whoever makes it again ends what was interrupted here.
    async fn permit_maker(&self, account: &str, vhost: &str, maker: &str) -> Result<(), Fault> {
        let (table, database) = (&self.store.shared.identity, &self.store.shared.database);
        if self.user(maker).await?.is_some() {
            let all = PermissionRecord::all(maker, vhost);
            table.put_permission(database, account, &all).await?;
            self.changed();
        }
        table.forget_maker(database, account).await
    }

    fn changed(&self) {
        self.known.keys.forget_all();
        self.known.unknown_keys.forget_all();
        self.known.patterns.forget_all();
    }
}

impl Identity for CassandraIdentity {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        if id.len() > ACCESS_KEY_BYTES_MAX {
            // There is none, and strangers fill no memory with such ids.
            return Ok(None);
        }
        let (id, now) = (id.to_owned(), Instant::now());
        if let Some(known) = self.known.keys.recall(&id, now) {
            return Ok(Some(known));
        }
        if self.known.unknown_keys.recall(&id, now).is_some() {
            return Ok(None);
        }
        let shared = &self.store.shared;
        let key = shared.identity.key(&shared.database.session, &id).await?;
        match &key {
            Some(key) => {
                self.known.unknown_keys.remove(&id);
                self.known.keys.remember(id, key.clone(), now);
            }
            None => {
                self.known.keys.remove(&id);
                self.known.unknown_keys.remember(id, (), now);
            }
        }
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
    async fn vhosts(&self) -> Result<Vec<VhostRecord>, Fault> {
        let accounts = self.accounts().await?;
        let vhost = |account: &Arc<str>| {
            Some(VhostRecord { name: self.names.vhost_of(account)?.into(), queues: None })
        };
        let mut vhosts: Vec<_> = accounts.iter().filter_map(vhost).collect();
        vhosts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(vhosts)
    }

    async fn put_vhost(&self, vhost: &str, maker: Option<&str>) -> Result<bool, Fault> {
        let account = self.names.account_of(vhost).ok_or_else(|| {
            Fault::Invalid(format!("{vhost} is sqs.account_id, the account of virtual host /"))
        })?;
        let shared = &self.store.shared;
        let (table, database) = (&shared.identity, &shared.database);
        if let Some(there) = table.account(&database.session, account).await? {
            if let Some(maker) = &there.maker {
                self.permit_maker(account, vhost, maker).await?;
            }
        } else {
            // Whoever had permissions in one of that name need not have any in this one.
            table.delete_left_permissions(database, account).await?;
        }
        // Also where it is there: so that a deletion from before, of unknown outcome, does nothing any more.
        let is_new = table.put_account(database, account, maker).await?;
        // Of two who make it at once one is its maker.
        if is_new && let Some(maker) = maker {
            self.permit_maker(account, vhost, maker).await?;
        }
        Ok(is_new)
    }

    /// Deletes the account of a virtual host. One that has queues stays.
    async fn delete_vhost(&self, vhost: &str) -> Result<bool, Fault> {
        let Some(account) = self.names.account_of(vhost) else { return Ok(false) };
        if account == self.names.default_account() {
            return Err(Fault::Invalid(format!(
                "the account {account} is sqs.account_id, which cannot be deleted"
            )));
        }
        if !self.has_account(account).await? {
            return Ok(false);
        }
        let shared = &self.store.shared;
        if !shared.queues.list(&shared.database, account, "", None, 1).await?.is_empty() {
            return Err(Fault::Invalid(format!("the account {account} still has queues")));
        }
        for permission in self.permissions().await? {
            if *permission.vhost == *vhost {
                self.delete_permission(&permission.user, vhost).await?;
            }
        }
        for key in self.access_keys().await? {
            if *key.vhost == *vhost {
                self.delete_access_key(&key.id).await?;
            }
        }
        shared.identity.outdate_changes(&shared.database).await?;
        shared.identity.delete_account(&shared.database, account).await
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
        if self.user(&user.name).await?.is_none() {
            below("users", self.count(Kind::Users).await?, USERS_MAX)?;
        }
        self.write_user(&user).await
    }

    async fn set_password_hash(&self, name: &str, hash: Arc<str>) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        shared.identity.set_password_hash(&shared.database, name, &hash).await
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
                self.delete_permission(name, &permission.vhost).await?;
            }
        }
        let shared = &self.store.shared;
        shared.identity.outdate_changes(&shared.database).await?;
        shared.identity.delete_user(&shared.database, name).await
    }

    async fn permissions(&self) -> Result<Vec<PermissionRecord>, Fault> {
        let shared = &self.store.shared;
        shared.identity.permissions(&shared.database.session, &self.names).await
    }

    async fn put_permission(&self, permission: PermissionRecord) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let (session, user) = (&shared.database.session, &permission.user);
        if let Some(account) = self.names.account_of(&permission.vhost)
            && shared.identity.permission(session, user, account).await?.is_none()
        {
            below("permissions", self.count(Kind::Permissions).await?, PERMISSIONS_MAX)?;
        }
        self.write_permission(&permission).await
    }

    async fn delete_permission(&self, user: &str, vhost: &str) -> Result<bool, Fault> {
        let Some(account) = self.names.account_of(vhost) else { return Ok(false) };
        let shared = &self.store.shared;
        let was_there = shared.identity.delete_permission(&shared.database, user, account).await;
        // Also where its outcome is unknown.
        self.changed();
        was_there
    }

    async fn access_keys(&self) -> Result<Vec<AccessKeyRecord>, Fault> {
        Ok(self.keys_with_secrets().await?.into_iter().map(|(key, _)| key).collect())
    }

    async fn create_access_key(&self, key: AccessKeyRecord, secret: &str) -> Result<(), Fault> {
        let there = self.access_keys().await?;
        let of_user = there.iter().filter(|one| one.user == key.user).count();
        below("access keys", there.len(), ACCESS_KEYS_MAX)?;
        below("access keys of a user", of_user, ACCESS_KEYS_PER_USER_MAX)?;
        self.write_access_key(&key, secret).await
    }

    async fn enable_access_key(&self, id: &str, enabled: bool) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let is_there = shared.identity.enable_key(&shared.database, id, enabled).await;
        // Also where its outcome is unknown.
        self.changed();
        is_there
    }

    async fn delete_access_key(&self, id: &str) -> Result<bool, Fault> {
        let shared = &self.store.shared;
        let was_there = shared.identity.delete_key(&shared.database, id).await;
        // Also where its outcome is unknown.
        self.changed();
        was_there
    }

    async fn check(&self) -> Result<(), Fault> {
        // As all that is served: more than half of the replicas have to answer.
        self.accounts().await.map(drop)
    }
}

/// Checks one of the broker's limits, in its words. What is made within a moment, or at two
/// front-ends at once, may pass one by as many.
fn below(what: &str, count: usize, max: usize) -> Result<(), Fault> {
    if count < max {
        return Ok(());
    }
    Err(Fault::Invalid(format!("{what}: the limit of {max} is reached")))
}
