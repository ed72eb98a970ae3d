//! `/api/users` and `/api/whoami`.

use std::collections::HashSet;

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::access::User;
use quelea_node::RABBITMQ_DEFAULT_ALGORITHM;
use serde_json::{Value, json};

use super::listing::array;
use super::{JsonAnswer, StatusAnswer, text_field};
use crate::authentication::Users;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::{done, existed};
use crate::state::ApiState;

/// `GET /api/whoami`.
pub(crate) async fn whoami(call: Call) -> Json<Value> {
    let (_, user, []) = call.parts();
    Json(json!({ "name": user.name, "tags": user.tags }))
}

/// `GET /api/users`.
pub(crate) async fn list(call: Call) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let users = api
        .ask(|core| core.broker.access().accounts().users().cloned().collect::<Vec<_>>())
        .await?;
    Ok(array(users.iter().map(to_json)))
}

/// `GET /api/users/{user}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    fetch(&api, name).await?.as_ref().map(to_json).map(Json).ok_or(ApiError::NotFound)
}

/// `PUT /api/users/{user}` with `password`, or with `password_hash` (that this API gave,
/// or RabbitMQ with its `hashing_algorithm`) and `tags`, comma-separated text or a list. 201 if the user is new, 204 if it was changed.
pub(crate) async fn put(call: Call) -> StatusAnswer {
    let (api, user, [name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let tags = tags(&body)?;
    let hash = password_hash(&api, &body).await?;
    let known = fetch(&api, name.clone()).await?.is_some();
    done(&api, move |core| {
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        core.broker.put_user(core.now(), &name, &hash, &tags)
    })
    .await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// `DELETE /api/users/{user}`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(fetch(&api, name.clone()).await?.is_some())?;
    done(&api, move |core| core.broker.delete_user(core.now(), &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/users/without-permissions`.
pub(crate) async fn without_permissions(call: Call) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    let users = api.ask(|core| {
        let accounts = core.broker.access().accounts();
        let permitted: HashSet<_> = accounts.permissions().map(|p| &*p.user).collect();
        let without = accounts.users().filter(|user| !permitted.contains(&*user.name));
        without.cloned().collect::<Vec<_>>()
    });
    Ok(array(users.await?.iter().map(to_json)))
}

/// `POST /api/users/bulk-delete` with `users`, a list of names. Those that are not there are no error.
pub(crate) async fn bulk_delete(call: Call) -> StatusAnswer {
    let (api, user, [], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    for name in names(&body)? {
        if fetch(&api, name.clone()).await?.is_some() {
            done(&api, move |core| core.broker.delete_user(core.now(), &name)).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The `users` of a request.
pub(crate) fn names(body: &Value) -> Result<Vec<String>, ApiError> {
    let users = body["users"].as_array().ok_or_else(|| ApiError::bad("users must be a list"))?;
    let names = users.iter().map(|name| {
        let name = name.as_str().map(str::to_owned);
        name.ok_or_else(|| ApiError::bad("users must be a list of names"))
    });
    names.collect()
}

async fn fetch(api: &ApiState, name: String) -> Result<Option<User>, ApiError> {
    api.ask(move |core| core.broker.access().accounts().user(&name).cloned()).await
}

/// The hash of the password that a request sets.
pub(crate) async fn password_hash(api: &impl Users, body: &Value) -> Result<String, ApiError> {
    let algorithm = text_field(body, "hashing_algorithm")?;
    match (text_field(body, "password")?, text_field(body, "password_hash")?) {
        (Some(password), _) => hash(api, password).await,
        (None, Some(hash)) => stored_hash(algorithm, hash),
        (None, None) => Err(ApiError::bad("password or password_hash is missing")),
    }
}

/// What is stored of a hash that somebody else made: argon2's PHC string, or what RabbitMQ exports.
fn stored_hash(algorithm: Option<&str>, hash: &str) -> Result<String, ApiError> {
    if hash.is_empty() || hash.starts_with("$argon2") {
        return Ok(hash.to_owned());
    }
    let algorithm = algorithm.unwrap_or(RABBITMQ_DEFAULT_ALGORITHM);
    quelea_node::from_rabbitmq(algorithm, hash).map_err(ApiError::bad)
}

/// The hash of a password.
pub(crate) async fn hash(api: &impl Users, password: &str) -> Result<String, ApiError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let password = password.as_bytes().to_vec().into();
    api.authenticator().hash(password, move |hash| {
        // The client may have gone: then nobody waits for the answer.
        let _ = sender.send(hash);
    });
    receiver.await.map_err(|_| ApiError::Stopping)?.map_err(ApiError::bad)
}

/// The tags that a request sets.
pub(crate) fn tags(body: &Value) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::bad("tags must be comma-separated text or a list of texts");
    let tags: Vec<&str> = match &body["tags"] {
        Value::String(text) => text.split(',').collect(),
        Value::Array(list) => {
            let texts: Option<_> = list.iter().map(Value::as_str).collect();
            texts.ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    Ok(tags.iter().map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect())
}

/// A stored hash as the API gives it, with its algorithm.
pub(crate) fn shown_hash(stored: &str) -> (&str, &str) {
    quelea_node::to_rabbitmq(stored).map_or((stored, "argon2id"), |(name, hash)| (hash, name))
}

fn to_json(user: &User) -> Value {
    let (hash, algorithm) = shown_hash(&user.password_hash);
    json!({
        "name": &*user.name,
        "password_hash": hash,
        "hashing_algorithm": algorithm,
        "tags": user.tags.iter().map(|tag| &**tag).collect::<Vec<_>>(),
        "limits": {},
    })
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
