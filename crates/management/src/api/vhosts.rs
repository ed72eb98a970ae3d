//! `/api/vhosts`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quelea_broker::report::VhostReport;
use serde_json::{Value, json};

use super::overview::message_stats;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::operation::{done, existed};
use crate::state::ApiState;

/// `GET /api/vhosts`: those that the user may see.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let vhosts = fetch(&api).await?;
    let seen = vhosts.iter().filter(|v| user.sees(v.name.as_str())).map(to_json);
    Ok(Json(Value::Array(seen.collect())))
}

/// `GET /api/vhosts/{vhost}`.
pub(crate) async fn one(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let vhosts = fetch(&api).await?;
    let found = vhosts.iter().find(|v| v.name.as_str() == vhost);
    found.map(to_json).map(Json).ok_or(ApiError::NotFound)
}

/// `PUT /api/vhosts/{vhost}`: 201 if it is new, 204 if it was there. Its maker gets all permissions.
pub(crate) async fn put(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let name = vhost.clone();

    let known = fetch(&api).await?.iter().any(|v| v.name.as_str() == vhost);
    if known {
        return Ok(StatusCode::NO_CONTENT);
    }
    done(&api, move |core| core.broker.put_vhost(core.now(), &name)).await?;
    done(&api, move |core| {
        core.broker.set_permissions(core.now(), &user.name, &vhost, ".*", ".*", ".*")
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/vhosts/{vhost}`.
pub(crate) async fn delete(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    existed(fetch(&api).await?.iter().any(|v| v.name.as_str() == vhost))?;
    done(&api, move |core| core.broker.delete_vhost(core.now(), &vhost)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(api: &ApiState) -> Result<Vec<VhostReport>, ApiError> {
    api.core.call(|core| core.broker.vhosts()).await.map_err(|_| ApiError::Stopping)
}

fn to_json(vhost: &VhostReport) -> Value {
    json!({
        "name": vhost.name.as_str(),
        "queues": vhost.queues,
        "messages": vhost.messages_ready + vhost.messages_unacknowledged,
        "messages_ready": vhost.messages_ready,
        "messages_unacknowledged": vhost.messages_unacknowledged,
        "message_stats": message_stats(&vhost.counters),
        "tracing": false,
    })
}
