//! `/api/access-keys` of a front-end.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{AccessKeyRecord, IdentityDirectory};
use serde_json::{Value, json};

use super::FrontEnd;
use crate::api::access_keys::{new_id, new_secret};
use crate::api::{JsonAnswer, StatusAnswer, required_field, text_field};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;

/// `GET /api/access-keys`: without secrets.
pub(super) async fn list<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let keys = api.directory.access_keys().await?;
    Ok(Json(Value::Array(keys.iter().map(to_json).collect())))
}

/// `GET /api/access-keys/{id}`: without its secret.
pub(super) async fn one<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, [id]) = call.parts();
    user.require_administrator()?;
    let keys = api.directory.access_keys().await?;
    let key = keys.iter().find(|key| key.id == id).ok_or(ApiError::NotFound)?;
    Ok(Json(to_json(key)))
}

/// `POST /api/access-keys` with `user` and `account`. 201 with the key and its secret, which is shown this once.
pub(super) async fn create<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let owner = required_field(&body, "user")?;
    let account = text_field(&body, "account")?.unwrap_or(&api.account_id);
    let (id, secret) = (new_id()?, new_secret()?);
    let key = AccessKeyRecord {
        id: id.clone(),
        user: owner.into(),
        account: account.into(),
        enabled: true,
        created_at_ms: now_ms(),
    };
    api.directory.create_access_key(key, &secret).await?;
    let answer = json!({
        "access_key_id": id, "secret_access_key": secret,
        "user": owner, "account": account, "enabled": true,
    });
    Ok((StatusCode::CREATED, Json(answer)))
}

/// `PUT /api/access-keys/{id}` with `enabled`.
pub(super) async fn enable<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [id], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let Value::Bool(enabled) = body["enabled"] else {
        return Err(ApiError::bad("enabled must be true or false"));
    };
    existed(api.directory.enable_access_key(&id, enabled).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/access-keys/{id}`.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [id]) = call.parts();
    user.require_administrator()?;
    existed(api.directory.delete_access_key(&id).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

fn to_json(key: &AccessKeyRecord) -> Value {
    json!({
        "access_key_id": key.id,
        "user": &*key.user,
        "account": &*key.account,
        "enabled": key.enabled,
        "created_at": key.created_at_ms,
    })
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}
