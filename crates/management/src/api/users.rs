//! `/api/users` and `/api/whoami`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::access::User;
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

/// `PUT /api/users/{user}` with `password`, or with `password_hash` (a PHC string that this API gave),
/// and `tags`, comma-separated text or a list. 201 if the user is new, 204 if it was changed.
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

async fn fetch(api: &ApiState, name: String) -> Result<Option<User>, ApiError> {
    api.ask(move |core| core.broker.access().accounts().user(&name).cloned()).await
}

/// The hash of the password that a request sets.
pub(crate) async fn password_hash(api: &impl Users, body: &Value) -> Result<String, ApiError> {
    match (text_field(body, "password")?, text_field(body, "password_hash")?) {
        (Some(password), _) => hash(api, password).await,
        (None, Some(hash)) if hash.is_empty() || hash.starts_with("$argon2") => Ok(hash.to_owned()),
        (None, Some(_)) => Err(ApiError::bad("password_hash must be an argon2 PHC string")),
        (None, None) => Err(ApiError::bad("password or password_hash is missing")),
    }
}

async fn hash(api: &impl Users, password: &str) -> Result<String, ApiError> {
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
    let tags: Vec<&str> = match &body["tags"] {
        Value::String(text) => text.split(',').collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => return Err(ApiError::bad("tags must be comma-separated text or a list of texts")),
    };
    Ok(tags.iter().map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect())
}

fn to_json(user: &User) -> Value {
    json!({
        "name": &*user.name,
        "password_hash": &*user.password_hash,
        "hashing_algorithm": "argon2id",
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
    }
}
