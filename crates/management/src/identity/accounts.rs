//! `/api/accounts`: the accounts of the SQS interface, which are the virtual hosts by other names.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{IdentityDirectory as _, PermissionRecord, UserRecord, is_account_name};

use super::owner;
use super::shapes::Account;
use crate::answer::StatusAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::limits::ACCOUNT_BYTES_MAX;
use crate::operation::existed;
use crate::state::SharedState;

/// `GET /api/accounts`: those that the user may see.
pub(super) async fn list<S: SharedState>(call: Call<S>) -> Result<Json<Vec<Account>>, ApiError> {
    let (api, user, []) = call.parts();
    let mut keys = BTreeMap::<_, u64>::new();
    for key in api.directory().access_keys().await? {
        *keys.entry(key.vhost).or_default() += 1;
    }
    let vhosts = api.directory().vhosts().await?;
    let seen = vhosts.iter().filter(|vhost| user.sees(&vhost.name)).map(|vhost| Account {
        account: api.account_of(&vhost.name).to_owned(),
        vhost: vhost.name.to_string(),
        queues: vhost.queues,
        access_keys: keys.get(&vhost.name).copied().unwrap_or(0),
    });
    Ok(Json(seen.collect()))
}

/// `PUT /api/accounts/{account}`: 201 if it is new, 204 if it was there. Its maker gets all
/// permissions, and its owner, if a password for one is given.
pub(super) async fn put<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [account], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    check(&account)?;
    let wanted = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let owner = owner::asked(&api, &account, wanted).await?;
    let vhost = api.vhost_of(&account);
    let directory = api.directory();
    let is_new = directory.put_vhost(vhost, Some(&user.name)).await?;
    if let Some(hash) = owner {
        let tags = owner::TAGS.map(str::to_owned).into();
        let (name, password_hash) = (account.as_str().into(), hash.into());
        directory.put_user(UserRecord { name, password_hash, tags }).await?;
        directory.put_permission(PermissionRecord::all(&account, vhost)).await?;
    }
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/accounts/{account}`, with its queues, access keys and owner. On Cassandra one that has queues is refused.
pub(super) async fn delete<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [account]) = call.parts();
    user.require_administrator()?;
    let has_owner = owner::is_there(&api, &account).await?;
    existed(api.directory().delete_vhost(api.vhost_of(&account)).await?)?;
    if has_owner {
        api.directory().delete_user(&account).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Checks an account's name: it is a part of its queues' URLs and ARNs.
fn check(account: &str) -> Result<(), ApiError> {
    if is_account_name(account) && account.len() <= ACCOUNT_BYTES_MAX {
        return Ok(());
    }
    Err(ApiError::bad(format!(
        "an account has 1 to {ACCOUNT_BYTES_MAX} letters, digits, hyphens, underscores and dots"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_fits_into_a_url_and_an_arn() {
        for good in ["000000000000", "111122223333", "staging-2.eu_west"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "a/b", "a:b", "a b", "é", &"1".repeat(65)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
