//! `/api/access-keys` of a front-end.

use axum::Json;
use axum::http::StatusCode;
use quelea_model::limits::ACCESS_KEYS_PER_USER_MAX;
use quelea_sqs_protocol::{AccessKeyRecord, IdentityDirectory};

use super::FrontEnd;
use crate::api::access_keys::{new_id, new_secret};
use crate::api::account_shapes::{AccessKeyState, MadeAccessKey, NewAccessKey, ShownAccessKey};
use crate::api::{StatusAnswer, owner};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::time::now_ms;

/// `GET /api/access-keys`: without secrets, those that the user may see: an administrator all, others their own.
pub(super) async fn list<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> Result<Json<Vec<ShownAccessKey>>, ApiError> {
    let (api, user, []) = call.parts();
    let keys = api.directory.access_keys().await?;
    let seen = keys.iter().filter(|key| user.has_keys_of(&key.user));
    Ok(Json(seen.map(shown).collect()))
}

/// `GET /api/access-keys/{id}`: without its secret.
pub(super) async fn one<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> Result<Json<ShownAccessKey>, ApiError> {
    let (api, user, [id]) = call.parts();
    Ok(Json(shown(&of_user(&api, &user, &id).await?)))
}

/// A key that the user may see and change; to others it is not there.
async fn of_user<D: IdentityDirectory>(
    api: &FrontEnd<D>,
    user: &ApiUser,
    id: &str,
) -> Result<AccessKeyRecord, ApiError> {
    let keys = api.directory.access_keys().await?;
    let mut keys = keys.into_iter().filter(|key| user.has_keys_of(&key.user));
    keys.find(|key| key.id == *id).ok_or(ApiError::NotFound)
}

/// `POST /api/access-keys` with `user` and `account`. 201 with the key and its secret, which is shown this once.
pub(super) async fn create<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> Result<(StatusCode, Json<MadeAccessKey>), ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    let NewAccessKey { user: owner, account } =
        quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let account = account.unwrap_or_else(|| api.account_id.to_string());
    owner::may_make_key(&api, &user, &owner, &account)?;
    let keys = api.directory.access_keys().await?;
    if keys.iter().filter(|key| *key.user == *owner).count() >= ACCESS_KEYS_PER_USER_MAX {
        // In the broker's words.
        let reason =
            format!("access keys of a user: the limit of {ACCESS_KEYS_PER_USER_MAX} is reached");
        return Err(ApiError::BadRequest(reason));
    }
    let (id, secret) = (new_id()?, new_secret()?);
    let key = AccessKeyRecord {
        id: id.clone(),
        user: owner.as_str().into(),
        account: account.as_str().into(),
        enabled: true,
        created_at_ms: now_ms(),
    };
    api.directory.create_access_key(key, &secret).await?;
    let answer = MadeAccessKey {
        access_key_id: id,
        secret_access_key: secret,
        user: owner,
        account,
        enabled: true,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// `PUT /api/access-keys/{id}` with `enabled`.
pub(super) async fn enable<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [id], body) = call.parts_and_body().await?;
    let AccessKeyState { enabled } = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    of_user(&api, &user, &id).await?;
    existed(api.directory.enable_access_key(&id, enabled).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/access-keys/{id}`.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [id]) = call.parts();
    of_user(&api, &user, &id).await?;
    existed(api.directory.delete_access_key(&id).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(key: &AccessKeyRecord) -> ShownAccessKey {
    ShownAccessKey {
        access_key_id: key.id.clone(),
        user: key.user.to_string(),
        account: key.account.to_string(),
        enabled: key.enabled,
        created_at: key.created_at_ms,
    }
}
