//! The rows of accounts, users, permissions and access keys. All of a kind are in one partition: there are few, each is
//! read by its key, and they are listed in order. Where rows have accounts, records have virtual hosts.

use std::sync::Arc;

use quelea_sqs_protocol::{
    AccessKey, AccessKeyRecord, AccountNames, Fault, PermissionRecord, User, UserRecord,
};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::PrepareError;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;

use crate::database::driver;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::limits::IDENTITY_PAGE_ROWS;

/// The tables' statements.
pub(crate) struct IdentityTable {
    insert_account: PreparedStatement,
    delete_account: PreparedStatement,
    list_accounts: PreparedStatement,
    insert_user: PreparedStatement,
    read_user: PreparedStatement,
    delete_user: PreparedStatement,
    list_users: PreparedStatement,
    insert_permission: PreparedStatement,
    read_permission: PreparedStatement,
    delete_permission: PreparedStatement,
    list_permissions: PreparedStatement,
    insert_key: PreparedStatement,
    enable_key: PreparedStatement,
    read_key: PreparedStatement,
    delete_key: PreparedStatement,
    list_keys: PreparedStatement,
}

type Texts = (Option<String>, Option<String>, Option<String>);
type UserRow = (String, Option<String>, Option<Vec<String>>);
type PermissionRow = (String, String, Option<String>, Option<String>, Option<String>);
type KeyRow = (String, Option<String>, Option<String>, Option<String>, Option<bool>, Option<i64>);

impl IdentityTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: &'static str| async move {
            let mut prepared = preparing.prepare(cql).await?;
            prepared.set_is_idempotent(true);
            prepared.set_page_size(IDENTITY_PAGE_ROWS);
            Ok::<_, PrepareError>(prepared)
        };
        Ok(Self {
            insert_account: prepare(
                "INSERT INTO @account (slot, account, created_at) VALUES (0, ?, ?)",
            )
            .await?,
            delete_account: prepare("DELETE FROM @account WHERE slot = 0 AND account = ?").await?,
            list_accounts: prepare("SELECT account FROM @account WHERE slot = 0 AND account > ? LIMIT ?")
                .await?,
            insert_user: prepare(
                "INSERT INTO @user (slot, name, password_hash, tags) VALUES (0, ?, ?, ?)",
            )
            .await?,
            read_user: prepare(
                "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name = ?",
            )
            .await?,
            delete_user: prepare("DELETE FROM @user WHERE slot = 0 AND name = ?").await?,
            list_users: prepare(
                "SELECT name, password_hash, tags FROM @user WHERE slot = 0 AND name > ? LIMIT ?",
            )
            .await?,
            insert_permission: prepare(
                "INSERT INTO @permission (slot, account, user, configure, write, read)
                 VALUES (0, ?, ?, ?, ?, ?)",
            )
            .await?,
            read_permission: prepare(
                "SELECT configure, write, read FROM @permission
                 WHERE slot = 0 AND account = ? AND user = ?",
            )
            .await?,
            delete_permission: prepare(
                "DELETE FROM @permission WHERE slot = 0 AND account = ? AND user = ?",
            )
            .await?,
            list_permissions: prepare(
                "SELECT account, user, configure, write, read FROM @permission
                 WHERE slot = 0 AND (account, user) > (?, ?) LIMIT ?",
            )
            .await?,
            insert_key: prepare(
                "INSERT INTO @access_key (slot, id, account, user, secret, is_enabled, created_at)
                 VALUES (0, ?, ?, ?, ?, ?, ?)",
            )
            .await?,
            // A key that was deleted meanwhile does not come back: without a secret a row is no key.
            enable_key: prepare(
                "UPDATE @access_key SET is_enabled = ? WHERE slot = 0 AND id = ? IF EXISTS",
            )
            .await?,
            read_key: prepare(
                "SELECT account, user, secret, is_enabled FROM @access_key WHERE slot = 0 AND id = ?",
            )
            .await?,
            delete_key: prepare("DELETE FROM @access_key WHERE slot = 0 AND id = ?").await?,
            list_keys: prepare(
                "SELECT id, account, user, secret, is_enabled, created_at FROM @access_key
                 WHERE slot = 0 AND id > ? LIMIT ?",
            )
            .await?,
        })
    }

    // -- accounts -----------------------------------------------------------------------------

    pub(crate) async fn put_account(
        &self,
        session: &Session,
        account: &str,
        now_ms: u64,
    ) -> Result<(), Fault> {
        driver::write(session, &self.insert_account, &(account, now_ms as i64)).await
    }

    pub(crate) async fn delete_account(
        &self,
        session: &Session,
        account: &str,
    ) -> Result<(), Fault> {
        driver::write(session, &self.delete_account, &(account,)).await
    }

    pub(crate) async fn accounts(&self, session: &Session) -> Result<Vec<Arc<str>>, Fault> {
        let after = |last: Option<&(String,)>| {
            (last.map(|(account,)| account.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let found = all(session, &self.list_accounts, after).await?;
        Ok(found.into_iter().map(|(account,)| account.into()).collect())
    }

    // -- users --------------------------------------------------------------------------------

    pub(crate) async fn put_user(&self, session: &Session, user: &UserRecord) -> Result<(), Fault> {
        let UserRecord { name, password_hash, tags } = user;
        driver::write(session, &self.insert_user, &(name.as_ref(), password_hash.as_ref(), tags))
            .await
    }

    pub(crate) async fn user(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<UserRecord>, Fault> {
        let mut found = rows::<UserRow>(session, &self.read_user, (name,)).await?;
        Ok(found.pop().map(user))
    }

    pub(crate) async fn delete_user(&self, session: &Session, name: &str) -> Result<(), Fault> {
        driver::write(session, &self.delete_user, &(name,)).await
    }

    pub(crate) async fn users(&self, session: &Session) -> Result<Vec<UserRecord>, Fault> {
        let after = |last: Option<&UserRow>| {
            (last.map(|(name, ..)| name.clone()).unwrap_or_default(), IDENTITY_PAGE_ROWS)
        };
        let found = all(session, &self.list_users, after).await?;
        Ok(found.into_iter().map(user).collect())
    }

    // -- permissions --------------------------------------------------------------------------

    pub(crate) async fn put_permission(
        &self,
        session: &Session,
        account: &str,
        permission: &PermissionRecord,
    ) -> Result<(), Fault> {
        let PermissionRecord { user, vhost: _, configure, write: sends, read } = permission;
        let values = (account, user.as_ref(), configure, sends, read);
        driver::write(session, &self.insert_permission, &values).await
    }

    /// The patterns of configure, write and read.
    pub(crate) async fn permission(
        &self,
        session: &Session,
        user: &str,
        account: &str,
    ) -> Result<Option<[String; 3]>, Fault> {
        let mut found = rows::<Texts>(session, &self.read_permission, (account, user)).await?;
        let patterns = |(configure, write, read): Texts| {
            [configure, write, read].map(Option::unwrap_or_default)
        };
        Ok(found.pop().map(patterns))
    }

    pub(crate) async fn delete_permission(
        &self,
        session: &Session,
        user: &str,
        account: &str,
    ) -> Result<(), Fault> {
        driver::write(session, &self.delete_permission, &(account, user)).await
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
        let found = all(session, &self.list_permissions, after).await?;
        let mut found: Vec<_> = found.into_iter().filter_map(record).collect();
        found.sort_by(|a, b| (&a.user, &a.vhost).cmp(&(&b.user, &b.vhost)));
        Ok(found)
    }

    // -- access keys --------------------------------------------------------------------------

    pub(crate) async fn put_key(
        &self,
        session: &Session,
        account: &str,
        key: &AccessKeyRecord,
        secret: &str,
    ) -> Result<(), Fault> {
        let AccessKeyRecord { id, user, vhost: _, enabled, created_at_ms } = key;
        let created_at = *created_at_ms as i64;
        let values = (id, account, user.as_ref(), secret, enabled, created_at);
        driver::write(session, &self.insert_key, &values).await
    }

    pub(crate) async fn enable_key(
        &self,
        session: &Session,
        id: &str,
        enabled: bool,
    ) -> Result<(), Fault> {
        driver::write(session, &self.enable_key, &(enabled, id)).await
    }

    pub(crate) async fn key(
        &self,
        session: &Session,
        id: &str,
    ) -> Result<Option<AccessKey>, Fault> {
        type Row = (Option<String>, Option<String>, Option<String>, Option<bool>);
        let mut found = rows::<Row>(session, &self.read_key, (id,)).await?;
        let Some((Some(account), Some(user), Some(secret), enabled)) = found.pop() else {
            return Ok(None);
        };
        let user = User { name: Some(user.into()), account: account.into() };
        Ok(Some(AccessKey { user, secret: secret.into(), enabled: enabled == Some(true) }))
    }

    pub(crate) async fn delete_key(&self, session: &Session, id: &str) -> Result<(), Fault> {
        driver::write(session, &self.delete_key, &(id,)).await
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
        let found = all(session, &self.list_keys, after).await?;
        Ok(found.into_iter().filter_map(record).collect())
    }
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
