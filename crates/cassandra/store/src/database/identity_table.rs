//! The rows of accounts, users, permissions and access keys. All of a kind are in one partition: there are few, each is
//! read by its key, and they are listed in order. Where rows have accounts, records have virtual hosts.
//!
//! They change by lightweight transactions only: a plain write has the time of the node that it came to, so that of two
//! changes one after the other the earlier would hold where that node's clock is ahead.

use std::sync::Arc;

use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, AccountNames, Fault, PermissionRecord, User, UserRecord,
};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::PrepareError;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, Turns, undecided};
use crate::database::{Database, driver};
use crate::limits::IDENTITY_PAGE_ROWS;

/// Attempts to write a row that others make and delete meanwhile.
const PUT_ATTEMPTS: usize = 5;

/// The partitions, each of a table.
const ACCOUNTS: &str = "account";
const USERS: &str = "user";
const PERMISSIONS: &str = "permission";
const KEYS: &str = "access_key";

/// How a row is written: made if it is not there, changed if it is. Both take the same values.
struct Put {
    insert: PreparedStatement,
    update: PreparedStatement,
}

/// The statements of users, of permissions, or of keys.
struct Statements {
    put: Put,
    read: PreparedStatement,
    delete: PreparedStatement,
    list: PreparedStatement,
}

/// In the order in which they are prepared: to insert, update, read, delete, list.
type Cql = [&'static str; 5];

const OF_USERS: Cql = [
    "INSERT INTO @user (slot, password_hash, tags, name) VALUES (0, ?, ?, ?) IF NOT EXISTS",
    "UPDATE @user SET password_hash = ?, tags = ? WHERE slot = 0 AND name = ? IF EXISTS",
    "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name = ?",
    "DELETE FROM @user WHERE slot = 0 AND name = ? IF EXISTS",
    "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name > ? LIMIT ?",
];

const OF_PERMISSIONS: Cql = [
    "INSERT INTO @permission (slot, configure, write, read, account, user)
     VALUES (0, ?, ?, ?, ?, ?) IF NOT EXISTS",
    "UPDATE @permission SET configure = ?, write = ?, read = ?
     WHERE slot = 0 AND account = ? AND user = ? IF EXISTS",
    "SELECT configure, write, read FROM @permission WHERE slot = 0 AND account = ? AND user = ?",
    "DELETE FROM @permission WHERE slot = 0 AND account = ? AND user = ? IF EXISTS",
    "SELECT account, user, configure, write, read FROM @permission
     WHERE slot = 0 AND (account, user) > (?, ?) LIMIT ?",
];

const OF_KEYS: Cql = [
    "INSERT INTO @access_key (slot, account, user, secret, is_enabled, created_at, id)
     VALUES (0, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
    "UPDATE @access_key SET account = ?, user = ?, secret = ?, is_enabled = ?, created_at = ?
     WHERE slot = 0 AND id = ? IF EXISTS",
    "SELECT account, user, secret, is_enabled FROM @access_key WHERE slot = 0 AND id = ?",
    "DELETE FROM @access_key WHERE slot = 0 AND id = ? IF EXISTS",
    "SELECT id, account, user, secret, is_enabled, created_at FROM @access_key
     WHERE slot = 0 AND id > ? LIMIT ?",
];

impl Statements {
    async fn prepare(
        preparing: &Preparing<'_>,
        [insert, update, read, delete, list]: Cql,
    ) -> Result<Self, PrepareError> {
        let put = Put {
            insert: preparing.prepare(insert).await?,
            update: preparing.prepare(update).await?,
        };
        Ok(Self {
            put,
            read: prepare_read(preparing, read).await?,
            delete: preparing.prepare(delete).await?,
            list: prepare_read(preparing, list).await?,
        })
    }
}

/// To read changes nothing, so that a second node may be asked as well.
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
    insert_account: PreparedStatement,
    read_account: PreparedStatement,
    delete_account: PreparedStatement,
    list_accounts: PreparedStatement,
    users: Statements,
    permissions: Statements,
    keys: Statements,
    enable_key: PreparedStatement,
    turns: Turns,
}

type Texts = (Option<String>, Option<String>, Option<String>);
type UserRow = (String, Option<String>, Option<Vec<String>>);
type PermissionRow = (String, String, Option<String>, Option<String>, Option<String>);
type KeyRow = (String, Option<String>, Option<String>, Option<String>, Option<bool>, Option<i64>);

impl IdentityTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let change = |cql: &'static str| async move { preparing.prepare(cql).await };
        let read = |cql: &'static str| prepare_read(preparing, cql);
        Ok(Self {
            insert_account: change(
                "INSERT INTO @account (slot, account, created_at) VALUES (0, ?, ?) IF NOT EXISTS",
            )
            .await?,
            read_account: read("SELECT account FROM @account WHERE slot = 0 AND account = ?")
                .await?,
            delete_account: change("DELETE FROM @account WHERE slot = 0 AND account = ? IF EXISTS")
                .await?,
            list_accounts: read(
                "SELECT account FROM @account WHERE slot = 0 AND account > ? LIMIT ?",
            )
            .await?,
            users: Statements::prepare(preparing, OF_USERS).await?,
            permissions: Statements::prepare(preparing, OF_PERMISSIONS).await?,
            keys: Statements::prepare(preparing, OF_KEYS).await?,
            // A key that was deleted meanwhile does not come back.
            enable_key: change(
                "UPDATE @access_key SET is_enabled = ? WHERE slot = 0 AND id = ? IF EXISTS",
            )
            .await?,
            turns: Turns::default(),
        })
    }

    // -- accounts -----------------------------------------------------------------------------

    /// `false`: it is there.
    pub(crate) async fn put_account(
        &self,
        database: &Database,
        account: &str,
        now_ms: u64,
    ) -> Result<bool, Fault> {
        let values = (account, now_ms as i64);
        match self.turns.change(database, ACCOUNTS, &self.insert_account, &values).await? {
            Change::Done => Ok(true),
            Change::Refused => Ok(false),
            Change::Unknown => {
                decided(is_there(&database.session, &self.read_account, &(account,)).await?)
                    .map(|()| true)
            }
        }
    }

    pub(crate) async fn has_account(
        &self,
        session: &Session,
        account: &str,
    ) -> Result<bool, Fault> {
        Ok(!rows::<(String,)>(session, &self.read_account, (account,)).await?.is_empty())
    }

    /// `false`: it was not there.
    pub(crate) async fn delete_account(
        &self,
        database: &Database,
        account: &str,
    ) -> Result<bool, Fault> {
        let (delete, read) = (&self.delete_account, &self.read_account);
        self.delete(database, ACCOUNTS, delete, read, &(account,)).await
    }

    pub(crate) async fn accounts(&self, session: &Session) -> Result<Vec<Arc<str>>, Fault> {
        let after = |last: Option<&(String,)>| {
            (last.map(|(account,)| account.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let found = all(session, &self.list_accounts, after).await?;
        Ok(found.into_iter().map(|(account,)| account.into()).collect())
    }

    // -- users --------------------------------------------------------------------------------

    pub(crate) async fn put_user(
        &self,
        database: &Database,
        wanted: &UserRecord,
    ) -> Result<(), Fault> {
        let UserRecord { name, password_hash, tags } = wanted;
        let values = (password_hash.as_ref(), tags, name.as_ref());
        if self.put(database, USERS, &self.users.put, &values).await? {
            return Ok(());
        }
        let read = serial(&self.users.read);
        let mut found = rows::<UserRow>(&database.session, &read, (name.as_ref(),)).await?;
        decided(found.pop().map(user).as_ref() == Some(wanted))
    }

    pub(crate) async fn user(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<UserRecord>, Fault> {
        let mut found = rows::<UserRow>(session, &self.users.read, (name,)).await?;
        Ok(found.pop().map(user))
    }

    /// `false`: it was not there.
    pub(crate) async fn delete_user(&self, database: &Database, name: &str) -> Result<bool, Fault> {
        self.delete(database, USERS, &self.users.delete, &self.users.read, &(name,)).await
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
    ) -> Result<(), Fault> {
        let PermissionRecord { user, vhost: _, configure, write: sends, read } = permission;
        let values = (configure, sends, read, account, user.as_ref());
        if self.put(database, PERMISSIONS, &self.permissions.put, &values).await? {
            return Ok(());
        }
        let (statement, key) = (serial(&self.permissions.read), (account, user.as_ref()));
        let mut found = rows::<Texts>(&database.session, &statement, key).await?;
        let wanted = [configure, sends, read];
        decided(found.pop().map(patterns).is_some_and(|found| found.each_ref() == wanted))
    }

    /// The patterns of configure, write and read.
    pub(crate) async fn permission(
        &self,
        session: &Session,
        user: &str,
        account: &str,
    ) -> Result<Option<[String; 3]>, Fault> {
        let mut found = rows::<Texts>(session, &self.permissions.read, (account, user)).await?;
        Ok(found.pop().map(patterns))
    }

    /// `false`: it was not there.
    pub(crate) async fn delete_permission(
        &self,
        database: &Database,
        user: &str,
        account: &str,
    ) -> Result<bool, Fault> {
        let (delete, read) = (&self.permissions.delete, &self.permissions.read);
        self.delete(database, PERMISSIONS, delete, read, &(account, user)).await
    }

    /// All permissions, by user and virtual host.
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
        let created_at = *created_at_ms as i64;
        let values = (account, user.as_ref(), secret, enabled, created_at, id);
        if self.put(database, KEYS, &self.keys.put, &values).await? {
            return Ok(());
        }
        let found = read_key(&database.session, &serial(&self.keys.read), id).await?;
        decided(found.is_some_and(|found| *found.secret == *secret && found.enabled == *enabled))
    }

    /// `false`: it is not there.
    pub(crate) async fn enable_key(
        &self,
        database: &Database,
        id: &str,
        enabled: bool,
    ) -> Result<bool, Fault> {
        match self.turns.change(database, KEYS, &self.enable_key, &(enabled, id)).await? {
            Change::Done => Ok(true),
            Change::Refused => Ok(false),
            Change::Unknown => {
                match read_key(&database.session, &serial(&self.keys.read), id).await? {
                    Some(found) => decided(found.enabled == enabled).map(|()| true),
                    None => Ok(false),
                }
            }
        }
    }

    pub(crate) async fn key(
        &self,
        session: &Session,
        id: &str,
    ) -> Result<Option<AccessKey>, Fault> {
        read_key(session, &self.keys.read, id).await
    }

    /// `false`: it was not there.
    pub(crate) async fn delete_key(&self, database: &Database, id: &str) -> Result<bool, Fault> {
        self.delete(database, KEYS, &self.keys.delete, &self.keys.read, &(id,)).await
    }

    /// All keys, by id, each with its secret.
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

    // -- changing -----------------------------------------------------------------------------

    /// Makes a row or changes it. `false`: Cassandra does not say whether it was done, and the row does.
    async fn put(
        &self,
        database: &Database,
        table: &str,
        put: &Put,
        values: driver::Values<'_>,
    ) -> Result<bool, Fault> {
        for _ in 0..PUT_ATTEMPTS {
            for statement in [&put.insert, &put.update] {
                match self.turns.change(database, table, statement, values).await? {
                    Change::Done => return Ok(true),
                    Change::Refused => {}
                    Change::Unknown => return Ok(false),
                }
            }
        }
        Err(undecided())
    }

    /// Deletes the row of a key, by which it is read, too. `false`: it was not there.
    async fn delete(
        &self,
        database: &Database,
        table: &str,
        delete: &PreparedStatement,
        read: &PreparedStatement,
        key: driver::Values<'_>,
    ) -> Result<bool, Fault> {
        match self.turns.change(database, table, delete, key).await? {
            Change::Done => Ok(true),
            Change::Refused => Ok(false),
            Change::Unknown => {
                decided(!is_there(&database.session, read, key).await?).map(|()| true)
            }
        }
    }
}

/// What a read says of a change whose outcome was unknown. The read ends one that had begun; one that a coordinator had not
/// begun when it stopped, that one may carry out when it goes on (docs/cassandra/running.md).
fn decided(is_done: bool) -> Result<(), Fault> {
    if is_done { Ok(()) } else { Err(undecided()) }
}

/// The same read, which sees all transactions that were carried out.
fn serial(read: &PreparedStatement) -> PreparedStatement {
    let mut read = read.clone();
    read.set_consistency(Consistency::LocalSerial);
    read
}

/// Whether there is a row, after all transactions that were carried out.
async fn is_there(
    session: &Session,
    read: &PreparedStatement,
    key: driver::Values<'_>,
) -> Result<bool, Fault> {
    Ok(driver::select(session, &serial(read), key).await?.rows_num() > 0)
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

/// All rows, page by page: `after` says where a page begins that follows this row.
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
