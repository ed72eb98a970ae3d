//! `/api/accounts`: the accounts of the SQS interface, which are the virtual hosts by other names.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::report::VhostReport;

use super::account_shapes::Account;
use super::{StatusAnswer, listing, owner};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::{done, existed, make_vhost, vhost_exists};
use crate::state::SharedState as _;

/// Longer ones make no URL of a queue; AWS's have twelve digits.
const ACCOUNT_LENGTH_MAX: usize = 64;

/// `GET /api/accounts`: those that the user may see.
pub(crate) async fn list(call: Call) -> Result<Json<Vec<Account>>, ApiError> {
    let (api, user, []) = call.parts();
    let fetch = |core: &mut quelea_node::Core| {
        let mut keys: BTreeMap<String, u64> = BTreeMap::new();
        for key in core.broker.access().keys().iter() {
            *keys.entry(key.vhost.as_str().to_owned()).or_default() += 1;
        }
        keys
    };
    let keys = api.ask(fetch).await?;
    let vhosts = listing::fetch::<VhostReport>(&api, None).await?;
    let seen = vhosts.iter().filter(|vhost| user.sees(vhost.name.as_str())).map(|vhost| {
        let name = vhost.name.as_str();
        Account {
            account: api.account_of(name).to_owned(),
            vhost: name.to_owned(),
            queues: Some(vhost.queues as u64),
            access_keys: keys.get(name).copied().unwrap_or(0),
        }
    });
    Ok(Json(seen.collect()))
}

/// `PUT /api/accounts/{account}`: 201 if it is new, 204 if it was there. Its maker gets all
/// permissions, and its owner, if a password for one is given.
pub(crate) async fn put(call: Call) -> StatusAnswer {
    let (api, user, [account], body) = call.parts_and_optional_body().await?;
    user.require_administrator()?;
    check(&account)?;
    let wanted = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let owner = owner::asked(&api, &account, wanted).await?;
    let vhost = api.vhost_of(&account).to_owned();
    let is_new = !vhost_exists(&api, &vhost).await?;
    if is_new {
        make_vhost(&api, &user, vhost.clone()).await?;
    }
    if let Some(hash) = owner {
        done(&api, move |core| {
            let now = core.now();
            core.broker.put_user(now, &account, &hash, &owner::TAGS)?;
            core.broker.set_permissions(now, &account, &vhost, ".*", ".*", ".*")
        })
        .await?;
    }
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/accounts/{account}`, with its queues, access keys and owner.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [account]) = call.parts();
    user.require_administrator()?;
    let vhost = api.vhost_of(&account).to_owned();
    existed(vhost_exists(&api, &vhost).await?)?;
    let has_owner = owner::is_there(&api, &account).await?;
    done(&api, move |core| core.broker.delete_vhost(core.now(), &vhost)).await?;
    if has_owner {
        done(&api, move |core| core.broker.delete_user(core.now(), &account)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// An account is a part of its queues' URLs and ARNs.
pub(crate) fn check(account: &str) -> Result<(), ApiError> {
    let plain = account.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if plain && (1..=ACCOUNT_LENGTH_MAX).contains(&account.len()) {
        return Ok(());
    }
    Err(ApiError::bad(format!(
        "an account has 1 to {ACCOUNT_LENGTH_MAX} letters, digits, hyphens, underscores and dots"
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
