//! `/api/queues`.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use quelea_broker::DeclareQueue;
use quelea_broker::report::{QueueReport, QueueState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::flag_field;
use super::overview::message_stats;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::json::{from_table, to_table};
use crate::operation::{done_as, existed};
use crate::state::ApiState;

/// `GET /api/queues`.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let queues = fetch(&api, None).await?;
    let seen = queues.iter().filter(|queue| user.sees(queue.vhost.as_str()));
    Ok(Json(Value::Array(seen.map(|queue| to_json(queue, &api)).collect())))
}

/// `GET /api/queues/{vhost}`.
pub(crate) async fn list_in(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let queues = fetch(&api, Some(vhost)).await?;
    Ok(Json(Value::Array(queues.iter().map(|queue| to_json(queue, &api)).collect())))
}

/// `GET /api/queues/{vhost}/{name}`.
pub(crate) async fn one(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let queue = fetch_one(&api, vhost, name).await?;
    queue.map(|queue| Json(to_json(&queue, &api))).ok_or(ApiError::NotFound)
}

/// `PUT /api/queues/{vhost}/{name}` with `durable` (default true), `auto_delete` and `arguments`.
/// 201 if it is new, 204 if it was there.
pub(crate) async fn declare(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    let known = fetch_one(&api, vhost.clone(), name.clone()).await?.is_some();
    let arguments = match &body["arguments"] {
        Value::Null => quelea_model::Table::new(),
        Value::Object(object) => to_table(object).map_err(ApiError::bad)?,
        _ => return Err(ApiError::bad("arguments must be an object")),
    };
    let request = DeclareQueue {
        name,
        durable: flag_field(&body, "durable", true)?,
        auto_delete: flag_field(&body, "auto_delete", false)?,
        arguments,
        ..DeclareQueue::default()
    };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.declare_queue(now, channel, &request).map(|declared| declared.ticket)
    })
    .await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// The query of a deletion.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct DeleteQuery {
    #[serde(rename = "if-empty", default)]
    if_empty: bool,
    #[serde(rename = "if-unused", default)]
    if_unused: bool,
}

/// `DELETE /api/queues/{vhost}/{name}`, with `?if-empty=true` and `?if-unused=true`.
pub(crate) async fn delete(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, ApiError> {
    existed(fetch_one(&api, vhost.clone(), name.clone()).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker
            .delete_queue(now, channel, &name, query.if_unused, query.if_empty)
            .map(|deleted| deleted.ticket)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/queues/{vhost}/{name}/contents`.
pub(crate) async fn purge(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    existed(fetch_one(&api, vhost.clone(), name.clone()).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.purge_queue(now, channel, &name).map(|purged| purged.ticket)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(api: &ApiState, vhost: Option<String>) -> Result<Vec<QueueReport>, ApiError> {
    let queues = api.core.call(move |core| core.broker.queues(vhost.as_deref())).await;
    queues.map_err(|_| ApiError::Stopping)
}

async fn fetch_one(
    api: &ApiState,
    vhost: String,
    name: String,
) -> Result<Option<QueueReport>, ApiError> {
    let queue = api.core.call(move |core| core.broker.queue(&vhost, &name)).await;
    queue.map_err(|_| ApiError::Stopping)
}

fn to_json(queue: &QueueReport, api: &ApiState) -> Value {
    let waiting = queue.messages_unacknowledged + queue.messages_in_transit;
    json!({
        "name": queue.name.as_str(),
        "vhost": queue.vhost.as_str(),
        "type": queue.kind,
        "node": &*api.node,
        "durable": queue.durable,
        "exclusive": queue.exclusive,
        "auto_delete": queue.auto_delete,
        "arguments": from_table(&queue.arguments),
        "policy": null,
        "state": match queue.state {
            QueueState::Running => "running",
            QueueState::Idle => "idle",
        },
        "messages": queue.messages_ready + waiting + queue.messages_delayed,
        "messages_ready": queue.messages_ready,
        "messages_unacknowledged": waiting,
        "messages_delayed": queue.messages_delayed,
        "message_bytes_ready": queue.message_bytes_ready,
        "consumers": queue.consumers,
        "consumers_with_credit": queue.consumers_with_credit,
        "single_active_consumer_tag": queue.single_active_consumer_tag.as_deref(),
        "memory": queue.memory_bytes,
        "resident_bytes": queue.resident_bytes,
        "message_stats": message_stats(&queue.counters),
    })
}
