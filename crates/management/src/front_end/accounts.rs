//! `/api/accounts` of a front-end.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{IdentityDirectory, PermissionRecord};
use serde_json::{Value, json};

use super::FrontEnd;
use crate::api::accounts::check;
use crate::api::{JsonAnswer, StatusAnswer};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::operation::existed;
use crate::state::SharedState as _;

/// `GET /api/accounts`: those that the user may see.
pub(super) async fn list<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, []) = call.parts();
    let mut keys: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for key in api.directory.access_keys().await? {
        *keys.entry(key.account).or_default() += 1;
    }
    let accounts = api.directory.accounts().await?;
    let seen = accounts.iter().filter(|account| user.sees(api.vhost_of(account)));
    let seen = seen.map(|account| {
        json!({
            "account": &**account,
            "vhost": api.vhost_of(account),
            "access_keys": keys.get(account).copied().unwrap_or(0),
        })
    });
    Ok(Json(Value::Array(seen.collect())))
}

/// `PUT /api/accounts/{account}`: 201 if it is new, 204 if it was there. Its maker gets all permissions.
pub(super) async fn put<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [account]) = call.parts();
    user.require_administrator()?;
    check(&account)?;
    make(&api, &user, &account).await
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
    let all = || ".*".to_owned();
    let permission = PermissionRecord {
        user: user.name.as_str().into(),
        account: account.into(),
        configure: all(),
        write: all(),
        read: all(),
    };
    api.directory.put_permission(permission).await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/accounts/{account}`, with its access keys. One that has queues is refused.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [account]) = call.parts();
    user.require_administrator()?;
    existed(api.directory.delete_account(&account).await?)?;
    Ok(StatusCode::NO_CONTENT)
}
