//! `/api/permissions` and `/api/topic-permissions`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quelea_broker::access::{Permission, TopicPermission};
use serde_json::{Value, json};

use super::{required_field, text_field};
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::operation::{done, existed};
use crate::state::ApiState;

/// `GET /api/permissions`.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    Ok(array(&fetch(&api).await?, to_json))
}

/// `GET /api/users/{user}/permissions`.
pub(crate) async fn of_user(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    let mut permissions = fetch(&api).await?;
    permissions.retain(|p| *p.user == *name);
    Ok(array(&permissions, to_json))
}

/// `GET /api/vhosts/{vhost}/permissions`.
pub(crate) async fn of_vhost(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    let mut permissions = fetch(&api).await?;
    permissions.retain(|p| p.vhost.as_str() == vhost);
    Ok(array(&permissions, to_json))
}

/// `GET /api/permissions/{vhost}/{user}`.
pub(crate) async fn one(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    let permissions = fetch(&api).await?;
    let found = permissions.iter().find(|p| p.vhost.as_str() == vhost && *p.user == *name);
    found.map(to_json).map(Json).ok_or(ApiError::NotFound)
}

/// `PUT /api/permissions/{vhost}/{user}` with `configure`, `write` and `read`.
pub(crate) async fn put(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let patterns = ["configure", "write", "read"].map(|field| required_field(&body, field));
    let [configure, write, read] = patterns;
    let (configure, write, read) = (configure?.to_owned(), write?.to_owned(), read?.to_owned());
    done(&api, move |core| {
        core.broker.set_permissions(core.now(), &name, &vhost, &configure, &write, &read)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/permissions/{vhost}/{user}`.
pub(crate) async fn delete(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let permissions = fetch(&api).await?;
    existed(permissions.iter().any(|p| p.vhost.as_str() == vhost && *p.user == *name))?;
    done(&api, move |core| core.broker.clear_permissions(core.now(), &name, &vhost)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/topic-permissions`.
pub(crate) async fn list_topic(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    Ok(array(&fetch_topic(&api).await?, topic_to_json))
}

/// `GET /api/topic-permissions/{vhost}/{user}`: a list, one entry an exchange.
pub(crate) async fn one_topic(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    user.require_administrator()?;
    let mut permissions = fetch_topic(&api).await?;
    permissions.retain(|p| p.vhost.as_str() == vhost && *p.user == *name);
    existed(!permissions.is_empty())?;
    Ok(array(&permissions, topic_to_json))
}

/// `PUT /api/topic-permissions/{vhost}/{user}` with `exchange`, `write` and `read`.
pub(crate) async fn put_topic(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let [exchange, write, read] =
        ["exchange", "write", "read"].map(|field| required_field(&body, field));
    let (exchange, write, read) = (exchange?.to_owned(), write?.to_owned(), read?.to_owned());
    done(&api, move |core| {
        core.broker.set_topic_permissions(core.now(), &name, &vhost, &exchange, &write, &read)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/topic-permissions/{vhost}/{user}`: of one `exchange` if the body names it, or all.
pub(crate) async fn delete_topic(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    body: Option<Json<Value>>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let body = body.map_or(Value::Null, |Json(body)| body);
    let exchange = text_field(&body, "exchange")?.map(str::to_owned);
    let permissions = fetch_topic(&api).await?;
    existed(permissions.iter().any(|p| p.vhost.as_str() == vhost && *p.user == *name))?;
    done(&api, move |core| {
        core.broker.clear_topic_permissions(core.now(), &name, &vhost, exchange.as_deref())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(api: &ApiState) -> Result<Vec<Permission>, ApiError> {
    let all = api.core.call(|core| core.broker.permissions().cloned().collect()).await;
    all.map_err(|_| ApiError::Stopping)
}

async fn fetch_topic(api: &ApiState) -> Result<Vec<TopicPermission>, ApiError> {
    let all = api.core.call(|core| core.broker.topic_permissions().cloned().collect()).await;
    all.map_err(|_| ApiError::Stopping)
}

fn array<T>(items: &[T], to_json: fn(&T) -> Value) -> Json<Value> {
    Json(Value::Array(items.iter().map(to_json).collect()))
}

fn to_json(permission: &Permission) -> Value {
    json!({
        "user": &*permission.user,
        "vhost": permission.vhost.as_str(),
        "configure": &*permission.configure,
        "write": &*permission.write,
        "read": &*permission.read,
    })
}

fn topic_to_json(permission: &TopicPermission) -> Value {
    json!({
        "user": &*permission.user,
        "vhost": permission.vhost.as_str(),
        "exchange": &*permission.exchange,
        "write": &*permission.write,
        "read": &*permission.read,
    })
}
