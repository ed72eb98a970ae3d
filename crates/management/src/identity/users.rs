//! `/api/users` and `/api/whoami`.

use std::collections::HashSet;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use quelea_broker::access::check_user_name;
use quelea_node::RABBITMQ_DEFAULT_ALGORITHM;
use quelea_sqs_protocol::{IdentityDirectory as _, UserRecord};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{AuditedAnswer, JsonAnswer, StatusAnswer};
use crate::audit::Details;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::text_field;
use crate::list_query::{Columns, ListQuery};
use crate::listed::Row;
use crate::operation::existed;
use crate::state::SharedState;

/// `GET /api/whoami`.
pub(crate) async fn whoami<S: SharedState>(call: Call<S>) -> Json<Value> {
    let (_, user, []) = call.parts();
    Json(json!({ "name": user.name, "tags": user.tags }))
}

/// `GET /api/users`.
pub(super) async fn list<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    query.answer(&(), api.directory().users().await?)
}

/// `GET /api/users/{user}`.
pub(super) async fn one<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    let found = api.directory().user(&name).await?;
    let found = found.ok_or(ApiError::NotFound)?;
    Ok(Json(columns.shown(to_json(&found))))
}

/// `PUT /api/users/{user}` with `password`, or with `password_hash` (that this API gave,
/// or RabbitMQ with its `hashing_algorithm`) and `tags`, comma-separated text or a list. 201 if the user is new, 204 if it was changed.
pub(super) async fn put<S: SharedState>(call: Call<S>) -> AuditedAnswer {
    let (api, user, [name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    check_user_name(&name).map_err(ApiError::bad)?;
    let tags = tags(&body)?;
    let password_hash = password_hash(&api, &body).await?.into();
    let details = Details(format!("tags {}", tags.join(",")));
    let new = UserRecord { name: name.into(), password_hash, tags };
    let is_new = api.directory().put_user(new).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    Ok((status, Extension(details)))
}

/// `GET /api/auth/hash_password/{password}`: the password's hash as RabbitMQ has it. What only looks is in no trail, and no
/// line of the log names paths.
pub(super) async fn hash_given<S: SharedState>(
    call: Call<S>,
) -> Result<Json<PasswordHash>, ApiError> {
    let (_, user, [password]) = call.parts();
    user.require_administrator()?;
    quelea_node::hash_as_rabbitmq(password.as_bytes())
        .map(|ok| Json(PasswordHash { ok }))
        .map_err(|error| ApiError::System(error.to_string()))
}

/// A hash by RabbitMQ's default algorithm, which users may be given as `password_hash`.
#[derive(Serialize, JsonSchema)]
pub(super) struct PasswordHash {
    ok: String,
}

/// `DELETE /api/users/{user}`, with permissions and access keys.
pub(super) async fn delete<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().delete_user(&name).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/users/without-permissions`.
pub(super) async fn without_permissions<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let mut users = api.directory().users().await?;
    let permissions = api.directory().permissions().await?;
    let permitted: HashSet<_> = permissions.iter().map(|permission| &permission.user).collect();
    users.retain(|user| !permitted.contains(&user.name));
    query.answer(&(), users)
}

/// `POST /api/users/bulk-delete` with `users`, a list of names. Those that are not there are no error.
/// A failure half-way says in the audit trail who is gone already, and whose deletion was under way.
pub(super) async fn bulk_delete<S: SharedState>(call: Call<S>) -> Response {
    let mut deleted = Vec::new();
    let answer = delete_each(call, &mut deleted).await;
    let answer = answer.map(|()| StatusCode::NO_CONTENT).into_response();
    if deleted.is_empty() {
        return answer;
    }
    (Extension(Details(deleted.join(", "))), answer).into_response()
}

async fn delete_each<S: SharedState>(
    call: Call<S>,
    deleted: &mut Vec<String>,
) -> Result<(), ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    for name in names(&body)? {
        match api.directory().delete_user(&name).await {
            Ok(true) => deleted.push(name),
            Ok(false) => {}
            Err(error) => {
                deleted.push(format!("{name} (outcome unknown)"));
                return Err(error.into());
            }
        }
    }
    Ok(())
}

/// Returns the `users` of a request.
fn names(body: &Value) -> Result<Vec<String>, ApiError> {
    let users = body["users"].as_array().ok_or_else(|| ApiError::bad("users must be a list"))?;
    let names = users.iter().map(|name| {
        let name = name.as_str().map(str::to_owned);
        name.ok_or_else(|| ApiError::bad("users must be a list of names"))
    });
    names.collect()
}

/// Returns the hash of the password that a request sets.
pub(crate) async fn password_hash(
    api: &impl SharedState,
    body: &Value,
) -> Result<String, ApiError> {
    let algorithm = text_field(body, "hashing_algorithm")?;
    match (text_field(body, "password")?, text_field(body, "password_hash")?) {
        (Some(password), _) => hash(api, password).await,
        (None, Some(hash)) => stored_hash(algorithm, hash),
        (None, None) => Err(ApiError::bad("password or password_hash is missing")),
    }
}

/// Returns what is stored of a hash that somebody else made: argon2's PHC string, or what RabbitMQ
/// exports.
fn stored_hash(algorithm: Option<&str>, hash: &str) -> Result<String, ApiError> {
    if hash.is_empty() || hash.starts_with("$argon2") {
        return Ok(hash.to_owned());
    }
    let algorithm = algorithm.unwrap_or(RABBITMQ_DEFAULT_ALGORITHM);
    quelea_node::from_rabbitmq(algorithm, hash).map_err(ApiError::bad)
}

/// Returns the hash of a password.
pub(crate) async fn hash(api: &impl SharedState, password: &str) -> Result<String, ApiError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let password = password.as_bytes().to_vec().into();
    api.authenticator().hash(password, move |hash| {
        // The client may have gone: then nobody waits for the answer.
        let _ = sender.send(hash);
    });
    receiver.await.map_err(|_| ApiError::Stopping)?.map_err(ApiError::bad)
}

/// Returns the tags that a request sets.
pub(crate) fn tags(body: &Value) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::bad("tags must be comma-separated text or a list of texts");
    let tags: Vec<&str> = match &body["tags"] {
        Value::String(text) => text.split(',').collect(),
        Value::Array(list) => {
            let texts: Option<_> = list.iter().map(Value::as_str).collect();
            texts.ok_or_else(wrong)?
        }
        Value::Null => return Err(ApiError::bad("tags is missing")),
        _ => return Err(wrong()),
    };
    Ok(tags.iter().map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect())
}

fn to_json(user: &UserRecord) -> Value {
    let stored = &*user.password_hash;
    let (algorithm, hash) = quelea_node::to_rabbitmq(stored).unwrap_or(("argon2id", stored));
    json!({
        "name": &*user.name,
        "password_hash": hash,
        "hashing_algorithm": algorithm,
        "tags": user.tags,
        "limits": {},
    })
}

impl Row<()> for UserRecord {
    fn name(&self) -> &str {
        &self.name
    }

    fn to_json(&self, (): &()) -> Value {
        to_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_as_text_or_as_a_list() {
        assert_eq!(tags(&json!({"tags": "a, b"})).unwrap(), ["a", "b"]);
        assert_eq!(tags(&json!({"tags": ["a"]})).unwrap(), ["a"]);
        assert!(tags(&json!({"tags": ""})).unwrap().is_empty());
        assert!(tags(&json!({})).is_err());
        assert!(tags(&json!({"tags": ["a", 1]})).is_err());
    }
}
