//! The rows of accounts, users, permissions and access keys. All of a kind are in one partition: there are few, each is
//! read by its key, and they are listed in order. Where rows have accounts, records have virtual hosts.
//!
//! They change by lightweight transactions only: a plain write has the time of the node that it came to, so that of two
//! changes one after the other the earlier would hold where that node's clock is ahead. Each names the revision of its
//! partition ([`Revised`]), and each row says by which change it came.

use std::sync::Arc;

use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, AccountNames, Fault, PermissionRecord, User, UserRecord,
};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::PrepareError;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use uuid::Uuid;

use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::revised::{Attempts, Kind, Revised, RowChange};
use crate::database::transaction::{Change, Write, fresh_id, undecided};
use crate::database::{Database, driver};
use crate::limits::{BATCH_ROWS_MAX, IDENTITY_PAGE_ROWS};

/// The statements of accounts, of users, of permissions, or of keys.
struct Statements {
    partition: Revised,
    put: PreparedStatement,
    read_plain: PreparedStatement,
    read: PreparedStatement,
    delete: PreparedStatement,
    list: PreparedStatement,
}

/// In the order in which they are prepared: to put, to see whether it is there, to read, delete, list.
type Cql = [&'static str; 5];

const OF_ACCOUNTS: Cql = [
    "INSERT INTO @account (slot, created_at, maker, account, change) VALUES (0, ?, ?, ?, ?)",
    "SELECT change FROM @account WHERE slot = 0 AND account = ?",
    "SELECT account, maker FROM @account WHERE slot = 0 AND account = ?",
    "DELETE FROM @account WHERE slot = 0 AND account = ?",
    "SELECT account FROM @account WHERE slot = 0 AND account > ? LIMIT ?",
];

const OF_USERS: Cql = [
    "INSERT INTO @user (slot, password_hash, tags, name, change) VALUES (0, ?, ?, ?, ?)",
    "SELECT change FROM @user WHERE slot = 0 AND name = ?",
    "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name = ?",
    "DELETE FROM @user WHERE slot = 0 AND name = ?",
    "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name > ? LIMIT ?",
];

const OF_PERMISSIONS: Cql = [
    "INSERT INTO @permission (slot, configure, write, read, account, user, change)
     VALUES (0, ?, ?, ?, ?, ?, ?)",
    "SELECT change FROM @permission WHERE slot = 0 AND account = ? AND user = ?",
    "SELECT configure, write, read FROM @permission WHERE slot = 0 AND account = ? AND user = ?",
    "DELETE FROM @permission WHERE slot = 0 AND account = ? AND user = ?",
    "SELECT account, user, configure, write, read FROM @permission
     WHERE slot = 0 AND (account, user) > (?, ?) LIMIT ?",
];

const OF_KEYS: Cql = [
    "INSERT INTO @access_key (slot, account, user, secret, is_enabled, created_at, id, change)
     VALUES (0, ?, ?, ?, ?, ?, ?, ?)",
    "SELECT change FROM @access_key WHERE slot = 0 AND id = ?",
    "SELECT account, user, secret, is_enabled FROM @access_key WHERE slot = 0 AND id = ?",
    "DELETE FROM @access_key WHERE slot = 0 AND id = ?",
    "SELECT id, account, user, secret, is_enabled, created_at FROM @access_key
     WHERE slot = 0 AND id > ? LIMIT ?",
];

impl Statements {
    async fn prepare(
        preparing: &Preparing<'_>,
        table: &str,
        [put, read_plain, read, delete, list]: Cql,
    ) -> Result<Self, PrepareError> {
        Ok(Self {
            partition: Revised::prepare(preparing, table).await?,
            put: preparing.prepare(put).await?,
            read_plain: prepare_read(preparing, read_plain).await?,
            read: prepare_read(preparing, read).await?,
            delete: preparing.prepare(delete).await?,
            list: prepare_read(preparing, list).await?,
        })
    }

    /// Carries out a change of the row of a key. Returns whether the row was there.
    async fn change(
        &self,
        database: &Database,
        (kind, revision): (Kind, Uuid),
        key: driver::Values<'_>,
        write: Write<'_>,
    ) -> Result<bool, Fault> {
        let change = RowChange { kind, revision, read_plain: &self.read_plain, key, write };
        self.partition.change(database, &change).await
    }

    /// Deletes the row of a key. `false`: it was not there.
    async fn delete(&self, database: &Database, key: driver::Values<'_>) -> Result<bool, Fault> {
        let change = (Kind::Delete, fresh_id());
        self.change(database, change, key, (&self.delete, key)).await
    }
}

/// Prepares a statement that reads. To read changes nothing, so that a second node may be asked as
/// well.
async fn prepare_read(
    preparing: &Preparing<'_>,
    cql: &str,
) -> Result<PreparedStatement, PrepareError> {
    let mut prepared = preparing.prepare(cql).await?;
    prepared.set_is_idempotent(true);
    prepared.set_page_size(IDENTITY_PAGE_ROWS);
    Ok(prepared)
}

/// The tables' statements.
pub(crate) struct IdentityTable {
    accounts: Statements,
    users: Statements,
    permissions: Statements,
    keys: Statements,
    forget_maker: PreparedStatement,
    set_hash: PreparedStatement,
    enable_key: PreparedStatement,
    list_permitted: PreparedStatement,
}

/// An account that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// Who made it and has no permissions in it yet.
    pub(crate) maker: Option<String>,
}

type Texts = (Option<String>, Option<String>, Option<String>);
type UserRow = (String, Option<String>, Option<Vec<String>>);
type PermissionRow = (String, String, Option<String>, Option<String>, Option<String>);
type KeyRow = (String, Option<String>, Option<String>, Option<String>, Option<bool>, Option<i64>);

impl IdentityTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let change = |cql: &'static str| async move { preparing.prepare(cql).await };
        Ok(Self {
            accounts: Statements::prepare(preparing, "account", OF_ACCOUNTS).await?,
            users: Statements::prepare(preparing, "user", OF_USERS).await?,
            permissions: Statements::prepare(preparing, "permission", OF_PERMISSIONS).await?,
            keys: Statements::prepare(preparing, "access_key", OF_KEYS).await?,
            forget_maker: change(
                "UPDATE @account SET maker = null, change = ? WHERE slot = 0 AND account = ? IF EXISTS",
            )
            .await?,
            set_hash: change(
                "UPDATE @user SET password_hash = ?, change = ? WHERE slot = 0 AND name = ? IF EXISTS",
            )
            .await?,
            enable_key: change(
                "UPDATE @access_key SET is_enabled = ?, change = ? WHERE slot = 0 AND id = ? IF EXISTS",
            )
            .await?,
            list_permitted: prepare_read(
                preparing,
                "SELECT user FROM @permission WHERE slot = 0 AND account = ? LIMIT ?",
            )
            .await?,
        })
    }

    /// Returns the revisions of accounts, users, permissions and keys.
    pub(crate) async fn revisions(&self, database: &Database) -> Result<[Option<Uuid>; 4], Fault> {
        let all = [&self.accounts, &self.users, &self.permissions, &self.keys];
        let [accounts, users, permissions, keys] =
            all.map(|statements| statements.partition.read_plain(database));
        let (accounts, users, permissions, keys) =
            tokio::try_join!(accounts, users, permissions, keys)?;
        Ok([accounts, users, permissions, keys])
    }

    // -- accounts -----------------------------------------------------------------------------

    /// Makes an account, whose maker is to have permissions in it. `false`: it is there.
    pub(crate) async fn put_account(
        &self,
        database: &Database,
        account: &str,
        maker: Option<&str>,
    ) -> Result<bool, Fault> {
        let (change, now_ms) = (fresh_id(), database.clock.now_ms());
        let values = (now_ms as i64, maker, account, change);
        Ok(!self
            .accounts
            .change(database, (Kind::Make, change), &(account,), (&self.accounts.put, &values))
            .await?)
    }

    pub(crate) async fn account(
        &self,
        session: &Session,
        account: &str,
    ) -> Result<Option<Account>, Fault> {
        type Row = (String, Option<String>);
        let mut found = rows::<Row>(session, &self.accounts.read, (account,)).await?;
        Ok(found.pop().map(|(_, maker)| Account { maker }))
    }

    /// Forgets an account's maker, who has permissions in it now.
    pub(crate) async fn forget_maker(
        &self,
        database: &Database,
        account: &str,
    ) -> Result<(), Fault> {
        let change = fresh_id();
        let values = (change, account);
        self.accounts
            .change(database, (Kind::Alter, change), &(account,), (&self.forget_maker, &values))
            .await
            .map(drop)
    }

    /// Deletes an account. `false`: it was not there.
    pub(crate) async fn delete_account(
        &self,
        database: &Database,
        account: &str,
    ) -> Result<bool, Fault> {
        self.accounts.delete(database, &(account,)).await
    }

    pub(crate) async fn accounts(&self, session: &Session) -> Result<Vec<Arc<str>>, Fault> {
        let after = |last: Option<&(String,)>| {
            (last.map(|(account,)| account.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let found = all(session, &self.accounts.list, after).await?;
        Ok(found.into_iter().map(|(account,)| account.into()).collect())
    }

    // -- users --------------------------------------------------------------------------------

    /// Makes or changes a user. `false`: one was there.
    pub(crate) async fn put_user(
        &self,
        database: &Database,
        wanted: &UserRecord,
    ) -> Result<bool, Fault> {
        let (UserRecord { name, password_hash, tags }, change) = (wanted, fresh_id());
        let values = (password_hash.as_ref(), tags, name.as_ref(), change);
        Ok(!self
            .users
            .change(database, (Kind::Put, change), &(name.as_ref(),), (&self.users.put, &values))
            .await?)
    }

    /// Sets the hash of a user's password. `false`: there is no such user.
    pub(crate) async fn set_password_hash(
        &self,
        database: &Database,
        name: &str,
        hash: &str,
    ) -> Result<bool, Fault> {
        let change = fresh_id();
        let values = (hash, change, name);
        self.users
            .change(database, (Kind::Alter, change), &(name,), (&self.set_hash, &values))
            .await
    }

    pub(crate) async fn user(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<UserRecord>, Fault> {
        let mut found = rows::<UserRow>(session, &self.users.read, (name,)).await?;
        Ok(found.pop().map(user))
    }

    /// Deletes a user. `false`: it was not there.
    pub(crate) async fn delete_user(&self, database: &Database, name: &str) -> Result<bool, Fault> {
        self.users.delete(database, &(name,)).await
    }

    pub(crate) async fn users(&self, session: &Session) -> Result<Vec<UserRecord>, Fault> {
        let after = |last: Option<&UserRow>| {
            (last.map(|(name, ..)| name.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let found = all(session, &self.users.list, after).await?;
        Ok(found.into_iter().map(user).collect())
    }

    // -- permissions --------------------------------------------------------------------------

    pub(crate) async fn put_permission(
        &self,
        database: &Database,
        account: &str,
        permission: &PermissionRecord,
    ) -> Result<bool, Fault> {
        let PermissionRecord { user, vhost: _, configure, write: sends, read } = permission;
        let change = fresh_id();
        let values = (configure, sends, read, account, user.as_ref(), change);
        let key = (account, user.as_ref());
        let write = (&self.permissions.put, &values as driver::Values<'_>);
        let was_there = self.permissions.change(database, (Kind::Put, change), &key, write).await?;
        Ok(!was_there)
    }

    /// Returns the patterns of configure, write and read.
    pub(crate) async fn permission(
        &self,
        session: &Session,
        user: &str,
        account: &str,
    ) -> Result<Option<[String; 3]>, Fault> {
        let mut found = rows::<Texts>(session, &self.permissions.read, (account, user)).await?;
        Ok(found.pop().map(patterns))
    }

    /// Deletes a user's permission in an account. `false`: it was not there.
    pub(crate) async fn delete_permission(
        &self,
        database: &Database,
        user: &str,
        account: &str,
    ) -> Result<bool, Fault> {
        self.permissions.delete(database, &(account, user)).await
    }

    /// Makes all changes of permissions and of keys fail that were asked for before, and are late.
    pub(crate) async fn outdate_changes(&self, database: &Database) -> Result<(), Fault> {
        self.permissions.partition.outdate(database).await?;
        self.keys.partition.outdate(database).await
    }

    /// Deletes what permissions there are in an account that is not there. Those of one that is made meanwhile stay.
    pub(crate) async fn delete_left_permissions(
        &self,
        database: &Database,
        account: &str,
    ) -> Result<(), Fault> {
        let (partition, session) = (&self.permissions.partition, &database.session);
        let _lock = partition.lock().await?;
        let mut attempts = Attempts::begin();
        while attempts.next().await {
            // Permissions in an account come after it, so that they are no part of this revision if it is not there.
            let seen = partition.revision(database).await?;
            if self.account(session, account).await?.is_some() {
                return Ok(());
            }
            let some = (account, BATCH_ROWS_MAX as i32);
            let users = rows::<(String,)>(session, &self.list_permitted, some).await?;
            if users.is_empty() {
                return Ok(());
            }
            let keys: Vec<_> = users.iter().map(|(user,)| (account, user.as_str())).collect();
            let delete = &self.permissions.delete;
            let writes: Vec<Write<'_>> =
                keys.iter().map(|key| (delete, key as driver::Values<'_>)).collect();
            if partition.attempt(database, seen, fresh_id(), &writes).await? == Change::Done {
                attempts = Attempts::begin();
            }
        }
        Err(undecided())
    }

    /// Returns all permissions, by user and virtual host.
    pub(crate) async fn permissions(
        &self,
        session: &Session,
        names: &AccountNames,
    ) -> Result<Vec<PermissionRecord>, Fault> {
        let after = |last: Option<&PermissionRow>| {
            let last = last.map(|(account, user, ..)| (account.clone(), user.clone()));
            let (account, user) = last.unwrap_or_default();
            (account, user, IDENTITY_PAGE_ROWS)
        };
        let record = |(account, user, configure, write, read): PermissionRow| {
            Some(PermissionRecord {
                user: user.into(),
                vhost: names.vhost_of(&account)?.into(),
                configure: configure.unwrap_or_default(),
                write: write.unwrap_or_default(),
                read: read.unwrap_or_default(),
            })
        };
        let found = all(session, &self.permissions.list, after).await?;
        let mut found: Vec<_> = found.into_iter().filter_map(record).collect();
        found.sort_by(|a, b| (&a.user, &a.vhost).cmp(&(&b.user, &b.vhost)));
        Ok(found)
    }

    // -- access keys --------------------------------------------------------------------------

    pub(crate) async fn put_key(
        &self,
        database: &Database,
        account: &str,
        key: &AccessKeyRecord,
        secret: &str,
    ) -> Result<(), Fault> {
        let AccessKeyRecord { id, user, vhost: _, enabled, created_at_ms } = key;
        let (created_at, change) = (*created_at_ms as i64, fresh_id());
        let values = (account, user.as_ref(), secret, enabled, created_at, id, change);
        self.keys
            .change(database, (Kind::Put, change), &(id,), (&self.keys.put, &values))
            .await
            .map(drop)
    }

    /// Enables a key, or disables it. `false`: it is not there.
    pub(crate) async fn enable_key(
        &self,
        database: &Database,
        id: &str,
        enabled: bool,
    ) -> Result<bool, Fault> {
        let change = fresh_id();
        let values = (enabled, change, id);
        self.keys.change(database, (Kind::Alter, change), &(id,), (&self.enable_key, &values)).await
    }

    pub(crate) async fn key(
        &self,
        session: &Session,
        id: &str,
    ) -> Result<Option<AccessKey>, Fault> {
        read_key(session, &self.keys.read, id).await
    }

    /// Deletes a key. `false`: it was not there.
    pub(crate) async fn delete_key(&self, database: &Database, id: &str) -> Result<bool, Fault> {
        self.keys.delete(database, &(id,)).await
    }

    /// Returns all keys, by id, each with its secret.
    pub(crate) async fn keys(
        &self,
        session: &Session,
        names: &AccountNames,
    ) -> Result<Vec<(AccessKeyRecord, Arc<str>)>, Fault> {
        let after = |last: Option<&KeyRow>| {
            (last.map(|(id, ..)| id.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let record = |(id, account, user, secret, enabled, created_at): KeyRow| {
            let record = AccessKeyRecord {
                id,
                user: user?.into(),
                vhost: names.vhost_of(&account?)?.into(),
                enabled: enabled?,
                created_at_ms: created_at.unwrap_or_default().max(0).unsigned_abs(),
            };
            Some((record, secret?.into()))
        };
        let found = all(session, &self.keys.list, after).await?;
        Ok(found.into_iter().filter_map(record).collect())
    }
}

async fn read_key(
    session: &Session,
    statement: &PreparedStatement,
    id: &str,
) -> Result<Option<AccessKey>, Fault> {
    type Row = (Option<String>, Option<String>, Option<String>, Option<bool>);
    let mut found = rows::<Row>(session, statement, (id,)).await?;
    let Some((Some(account), Some(user), Some(secret), enabled)) = found.pop() else {
        return Ok(None);
    };
    let user = User { name: Some(user.into()), account: account.into() };
    Ok(Some(AccessKey { user, secret: secret.into(), enabled: enabled == Some(true) }))
}

fn patterns((configure, write, read): Texts) -> [String; 3] {
    [configure, write, read].map(Option::unwrap_or_default)
}

fn user((name, password_hash, tags): UserRow) -> UserRecord {
    UserRecord {
        name: name.into(),
        password_hash: password_hash.unwrap_or_default().into(),
        tags: tags.unwrap_or_default(),
    }
}

/// Returns all rows, page by page: `after` says where a page begins that follows this row.
async fn all<R: for<'f, 'm> DeserializeRow<'f, 'm>, V: SerializeRow + Sync>(
    session: &Session,
    statement: &PreparedStatement,
    after: impl Fn(Option<&R>) -> V,
) -> Result<Vec<R>, Fault> {
    let mut all = Vec::new();
    loop {
        let found = rows(session, statement, after(all.last())).await?;
        let is_last = found.len() < IDENTITY_PAGE_ROWS as usize;
        all.extend(found);
        if is_last {
            return Ok(all);
        }
    }
}

pub(crate) async fn rows<R: for<'f, 'm> DeserializeRow<'f, 'm>>(
    session: &Session,
    statement: &PreparedStatement,
    values: impl SerializeRow + Sync,
) -> Result<Vec<R>, Fault> {
    let rows = driver::select(session, statement, &values).await?;
    rows.rows::<R>().map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)
}
