//! `/api/connections`, `/api/channels` and `/api/consumers`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use quelea_broker::CloseReason;
use quelea_broker::report::{ChannelReport, ConnectionReport, ConsumerReport};
use serde_json::{Value, json};

use super::overview::message_stats;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::json::from_table;
use crate::operation::existed;
use crate::state::ApiState;

/// `GET /api/connections`.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let connections = fetch(&api).await?;
    let seen = connections.iter().filter(|c| user.sees(c.vhost.as_str()));
    Ok(Json(Value::Array(seen.map(|c| to_json(c, &api)).collect())))
}

/// `GET /api/vhosts/{vhost}/connections`.
pub(crate) async fn list_in(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let connections = fetch(&api).await?;
    let wanted = connections.iter().filter(|c| c.vhost.as_str() == vhost);
    Ok(Json(Value::Array(wanted.map(|c| to_json(c, &api)).collect())))
}

/// `GET /api/connections/{name}`.
pub(crate) async fn one(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let connections = fetch(&api).await?;
    let found = connections.iter().find(|c| c.name == name).ok_or(ApiError::NotFound)?;
    user.require_vhost(found.vhost.as_str())?;
    Ok(Json(to_json(found, &api)))
}

/// `DELETE /api/connections/{name}`: closes it with 320 `CONNECTION_FORCED` and the text of the
/// header `X-Reason`.
pub(crate) async fn close(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let connections = fetch(&api).await?;
    let found = connections.iter().find(|c| c.name == name).ok_or(ApiError::NotFound)?;
    if found.user != user.name {
        user.require_administrator()?;
    }
    let reason = headers.get("x-reason").and_then(|value| value.to_str().ok());
    let reason = reason.unwrap_or("Closed via management plugin").to_owned();
    let id = found.id;
    let closed = api
        .core
        .call(move |core| core.broker.request_close(id, CloseReason::Administrator { reason }))
        .await
        .map_err(|_| ApiError::Stopping)?;
    existed(closed)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/connections/{name}/channels`.
pub(crate) async fn channels_of(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let mut channels = fetch_channels(&api).await?;
    channels.retain(|channel| channel.connection_name == name && user.sees(channel.vhost.as_str()));
    Ok(Json(Value::Array(channels.iter().map(channel_to_json).collect())))
}

/// `GET /api/channels`.
pub(crate) async fn channels(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let mut channels = fetch_channels(&api).await?;
    channels.retain(|channel| user.sees(channel.vhost.as_str()));
    Ok(Json(Value::Array(channels.iter().map(channel_to_json).collect())))
}

/// `GET /api/consumers`.
pub(crate) async fn consumers(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let mut consumers = fetch_consumers(&api, None).await?;
    consumers.retain(|consumer| user.sees(consumer.vhost.as_str()));
    Ok(Json(Value::Array(consumers.iter().map(consumer_to_json).collect())))
}

/// `GET /api/consumers/{vhost}`.
pub(crate) async fn consumers_in(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let consumers = fetch_consumers(&api, Some(vhost)).await?;
    Ok(Json(Value::Array(consumers.iter().map(consumer_to_json).collect())))
}

async fn fetch(api: &ApiState) -> Result<Vec<ConnectionReport>, ApiError> {
    let connections = api.core.call(|core| core.broker.connections()).await;
    connections.map_err(|_| ApiError::Stopping)
}

async fn fetch_channels(api: &ApiState) -> Result<Vec<ChannelReport>, ApiError> {
    api.core.call(|core| core.broker.channels()).await.map_err(|_| ApiError::Stopping)
}

async fn fetch_consumers(
    api: &ApiState,
    vhost: Option<String>,
) -> Result<Vec<ConsumerReport>, ApiError> {
    let consumers = api.core.call(move |core| core.broker.consumers(vhost.as_deref())).await;
    consumers.map_err(|_| ApiError::Stopping)
}

/// `10.0.0.1:5672` as host and port; an address that is none is shown as it is.
fn host_and_port(address: &str) -> (&str, Option<u16>) {
    match address.rsplit_once(':') {
        Some((host, port)) => (host.trim_matches(['[', ']']), port.parse().ok()),
        None => (address, None),
    }
}

fn to_json(connection: &ConnectionReport, api: &ApiState) -> Value {
    let (peer_host, peer_port) = host_and_port(&connection.peer);
    let (host, port) = host_and_port(&connection.local);
    json!({
        "name": connection.name,
        "node": &*api.node,
        "user": connection.user,
        "vhost": connection.vhost.as_str(),
        "peer_host": peer_host,
        "peer_port": peer_port,
        "host": host,
        "port": port,
        "ssl": false,
        "protocol": connection.protocol,
        "auth_mechanism": connection.mechanism,
        "client_properties": from_table(&connection.client_properties),
        "user_provided_name": connection.client_properties.get("connection_name")
            .and_then(quelea_model::Value::as_text),
        "connected_at": connection.connected_at.as_millis(),
        "channels": connection.channels,
        "channel_max": connection.channel_max,
        "frame_max": connection.frame_max,
        "timeout": connection.heartbeat_s,
        "send_pend": connection.output_waiting_bytes,
        "state": "running",
        "type": "network",
    })
}

fn channel_to_json(channel: &ChannelReport) -> Value {
    json!({
        "name": format!("{} ({})", channel.connection_name, channel.number),
        "number": channel.number,
        "connection_details": { "name": channel.connection_name },
        "user": channel.user,
        "vhost": channel.vhost.as_str(),
        "consumer_count": channel.consumers,
        "messages_unacknowledged": channel.messages_unacknowledged,
        "prefetch_count": channel.prefetch_count,
        "global_prefetch_count": channel.global_prefetch_count,
        "state": if channel.flow_stopped { "flow" } else { "running" },
        "message_stats": message_stats(&channel.counters),
    })
}

fn consumer_to_json(consumer: &ConsumerReport) -> Value {
    json!({
        "consumer_tag": &*consumer.tag,
        "queue": { "name": consumer.queue.as_str(), "vhost": consumer.vhost.as_str() },
        "channel_details": {
            "name": format!("{} ({})", consumer.connection_name, consumer.channel_number),
            "number": consumer.channel_number,
            "connection_name": consumer.connection_name,
        },
        "ack_required": consumer.ack_required,
        "exclusive": consumer.exclusive,
        "active": consumer.active,
        "activity_status": if consumer.active { "up" } else { "waiting" },
        "prefetch_count": consumer.prefetch_count,
        "priority": consumer.priority,
        "arguments": from_table(&consumer.arguments),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_split_at_its_last_colon() {
        assert_eq!(host_and_port("127.0.0.1:80"), ("127.0.0.1", Some(80)));
        assert_eq!(host_and_port("[::1]:80"), ("::1", Some(80)));
        assert_eq!(host_and_port("socket"), ("socket", None));
    }
}
