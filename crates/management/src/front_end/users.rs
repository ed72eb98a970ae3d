//! `/api/users` and `/api/whoami` of a front-end.

use std::collections::HashSet;

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{IdentityDirectory, UserRecord};
use serde_json::{Value, json};

use super::FrontEnd;
use crate::api::users::{names, password_hash, shown_hash, tags};
use crate::api::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;

/// `GET /api/whoami`.
pub(super) async fn whoami<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> Json<Value> {
    let (_, user, []) = call.parts();
    Json(json!({ "name": user.name, "tags": user.tags }))
}

/// `GET /api/users`.
pub(super) async fn list<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let users = api.directory.users().await?;
    Ok(Json(Value::Array(users.iter().map(to_json).collect())))
}

/// `GET /api/users/{user}`.
pub(super) async fn one<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    let found = api.directory.user(&name).await?;
    found.as_ref().map(to_json).map(Json).ok_or(ApiError::NotFound)
}

/// `PUT /api/users/{user}` with `password` or `password_hash`, and `tags`. 201 if the user is new, 204 if it was
/// changed.
pub(super) async fn put<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let tags = tags(&body)?;
    let password_hash = password_hash(&api, &body).await?.into();
    let new = UserRecord { name: name.into(), password_hash, tags };
    let is_new = api.directory.put_user(new).await?;
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/users/{user}`, with permissions and access keys.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory.delete_user(&name).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/users/without-permissions`.
pub(super) async fn without_permissions<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let (users, permissions) = (api.directory.users().await?, api.directory.permissions().await?);
    let permitted: HashSet<_> = permissions.iter().map(|p| &*p.user).collect();
    let without = users.iter().filter(|user| !permitted.contains(&*user.name));
    Ok(Json(Value::Array(without.map(to_json).collect())))
}

/// `POST /api/users/bulk-delete` with `users`, a list of names. Those that are not there are no error.
pub(super) async fn bulk_delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    for name in names(&body)? {
        api.directory.delete_user(&name).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn to_json(user: &UserRecord) -> Value {
    let (hash, algorithm) = shown_hash(&user.password_hash);
    json!({
        "name": &*user.name,
        "password_hash": hash,
        "hashing_algorithm": algorithm,
        "tags": user.tags,
        "limits": {},
    })
}
