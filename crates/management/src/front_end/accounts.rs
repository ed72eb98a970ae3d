//! `/api/accounts` of a front-end.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{IdentityDirectory, PermissionRecord, UserRecord};

use super::FrontEnd;
use crate::api::account_shapes::Account;
use crate::api::accounts::check;
use crate::api::{StatusAnswer, owner};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::state::SharedState as _;

/// `GET /api/accounts`: those that the user may see.
pub(super) async fn list<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> Result<Json<Vec<Account>>, ApiError> {
    let (api, user, []) = call.parts();
    let mut keys: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for key in api.directory.access_keys().await? {
        *keys.entry(key.account).or_default() += 1;
    }
    let accounts = api.directory.accounts().await?;
    let seen = accounts.iter().filter(|account| user.sees(api.vhost_of(account)));
    let seen = seen.map(|account| Account {
        account: account.to_string(),
        vhost: api.vhost_of(account).to_owned(),
        queues: None,
        access_keys: keys.get(account).copied().unwrap_or(0),
    });
    Ok(Json(seen.collect()))
}

/// `PUT /api/accounts/{account}`: 201 if it is new, 204 if it was there. Its maker gets all permissions, and its owner, if a
/// password for one is given.
pub(super) async fn put<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [account], body) = call.parts_and_optional_body().await?;
    user.require_administrator()?;
    check(&account)?;
    let wanted = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let owner = owner::asked(&api, &account, wanted).await?;
    let made = make(&api, &user, &account).await?;
    if let Some(hash) = owner {
        let tags = owner::TAGS.map(str::to_owned).into();
        let name: Arc<str> = account.as_str().into();
        let record = UserRecord { name: name.clone(), password_hash: hash.into(), tags };
        api.directory.put_user(record).await?;
        api.directory.put_permission(all_of(name, &account)).await?;
    }
    Ok(made)
}

/// Makes an account that is not there, whose maker gets all permissions.
pub(super) async fn make<D: IdentityDirectory>(
    api: &FrontEnd<D>,
    user: &ApiUser,
    account: &str,
) -> StatusAnswer {
    if !api.directory.put_account(account).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    api.directory.put_permission(all_of(user.name.as_str().into(), account)).await?;
    Ok(StatusCode::CREATED)
}

/// All permissions of a user in an account.
fn all_of(user: Arc<str>, account: &str) -> PermissionRecord {
    let all = || ".*".to_owned();
    PermissionRecord { user, account: account.into(), configure: all(), write: all(), read: all() }
}

/// `DELETE /api/accounts/{account}`, with its access keys and owner. One that has queues is refused.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [account]) = call.parts();
    user.require_administrator()?;
    let has_owner = owner::is_there(&api, &account).await?;
    existed(api.directory.delete_account(&account).await?)?;
    if has_owner {
        api.directory.delete_user(&account).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
