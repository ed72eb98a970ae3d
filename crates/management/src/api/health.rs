//! `/api/health/checks/…`: 200 with `{"status": "ok"}`, or 503 with the reason.

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{messages, overview};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::state::Listener;

/// Fails while publishers are blocked: the disk is full, or has failed.
pub(crate) async fn alarms(call: Call) -> Answer {
    let api = call.api();
    let blocked = api.on_core(|core| core.broker.publishers_blocked().map(str::to_owned)).await?;
    Ok(match blocked {
        None => ok(),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "status": "failed", "reason": reason, "alarms": [reason] })),
        ),
    })
}

/// `GET /api/healthchecks/node/{node}`, as RabbitMQ had it before.
pub(crate) async fn alarms_of(call: Call) -> Answer {
    let [node] = call.path() else { return Err(ApiError::NotFound) };
    existed(call.state().node.as_ref() == node)?;
    alarms(call).await
}

/// Checks that somebody listens at this port.
pub(crate) async fn port_listener(call: Call) -> Answer {
    let (api, _, [port]) = call.parts();
    let wanted: u16 = port.parse().map_err(|_| {
        ApiError::BadRequest(format!("port must be from 0 to 65535, it is {port:?}"))
    })?;
    let ports: Vec<_> = api.listeners.iter().map(|listener| listener.address.port()).collect();
    Ok(match ports.contains(&wanted) {
        true => (StatusCode::OK, Json(json!({ "status": "ok", "port": wanted }))),
        false => no_listener(json!({ "missing": wanted, "ports": ports })),
    })
}

/// Checks that clients are listened for, and that the core answers. There is no maintenance mode.
pub(crate) async fn ready_to_serve(call: Call) -> Answer {
    let api = call.api();
    api.on_core(|_| ()).await?;
    let is_for_clients = |listener: &Listener| listener.protocol != "http";
    Ok(match api.listeners.iter().any(is_for_clients) {
        true => ok(),
        false => no_listener(json!({})),
    })
}

/// Checks that one more AMQP connection is let in.
pub(crate) async fn below_connection_limit(call: Call) -> Answer {
    let counters = call.api().on_core(|core| core.counters()).await?;
    let (connections, limit) = (counters.connections, counters.connections_max);
    let mut body = json!({ "status": "ok", "connections": connections, "limit": limit });
    if connections < limit {
        return Ok((StatusCode::OK, Json(body)));
    }
    body["status"] = json!("failed");
    body["reason"] = json!("the node's limit of connections is reached");
    Ok((StatusCode::SERVICE_UNAVAILABLE, Json(body)))
}

/// Checks that somebody listens for each of these protocols, with commas between them.
pub(crate) async fn protocol_listener(call: Call) -> Answer {
    let (api, _, [wanted]) = call.parts();
    let protocols: Vec<_> = api.listeners.iter().map(|listener| listener.protocol).collect();
    let is_missing = |name: &&str| !protocols.contains(&&*listened_as(name));
    let missing: Vec<_> = wanted.split(',').map(str::trim).filter(is_missing).collect();
    if missing.is_empty() {
        return Ok((StatusCode::OK, Json(json!({ "status": "ok", "protocol": wanted }))));
    }
    Ok(no_listener(json!({ "missing": missing.join(","), "protocols": protocols })))
}

/// Returns a protocol's name among the listeners', whichever of RabbitMQ's spellings it has.
fn listened_as(protocol: &str) -> String {
    let protocol = protocol.to_ascii_lowercase();
    match protocol.as_str() {
        "amqp091" | "amqp0.9.1" | "amqp0-9-1" => "amqp".to_owned(),
        "management" => "http".to_owned(),
        _ => protocol,
    }
}

fn no_listener(mut body: Value) -> (StatusCode, Json<Value>) {
    body["status"] = json!("failed");
    body["reason"] = json!("No active listener");
    (StatusCode::SERVICE_UNAVAILABLE, Json(body))
}

/// Checks that a message goes through a queue of this virtual host.
pub(crate) async fn aliveness(call: Call) -> Answer {
    let (api, user, [vhost]) = call.parts();
    user.require_vhost(&vhost)?;
    messages::go_through(&api, &user, vhost).await?;
    Ok(ok())
}

/// Fails while messages are set aside since the log does not give them back.
pub(crate) async fn unreadable_messages(call: Call) -> Answer {
    let api = call.api();
    let overview = overview::fetch(&api).await?;
    let messages = overview.messages_unreadable;
    if messages == 0 {
        return Ok(ok());
    }
    let last = overview.unreadable_last.unwrap_or_default();
    let reason = format!("{messages} messages cannot be read; the last: {last}");
    let body = json!({ "status": "failed", "reason": reason, "messages_unreadable": messages });
    Ok((StatusCode::SERVICE_UNAVAILABLE, Json(body)))
}

/// `GET …/certificate-expiration/{within}/{unit}`: no certificate runs out, since there is none.
pub(crate) async fn certificate_expiration(call: Call) -> Answer {
    let [within, unit] = call.path() else { return Err(ApiError::NotFound) };
    if within.parse::<u32>().is_err() {
        let reason = format!("within must be from 0 to {}, it is {within:?}", u32::MAX);
        return Err(ApiError::BadRequest(reason));
    }
    let units = ["days", "weeks", "months", "years"];
    if !units.contains(&&*unit.to_ascii_lowercase()) {
        let reason = format!("unit must be days, weeks, months or years, it is {unit:?}");
        return Err(ApiError::BadRequest(reason));
    }
    alive(call).await
}

/// Checks that the core thread answers. All virtual hosts are served by the one node: they are up
/// when it does.
pub(crate) async fn alive(call: Call) -> Answer {
    call.api().on_core(|_| ()).await?;
    Ok(ok())
}

type Answer = Result<(StatusCode, Json<Value>), ApiError>;

fn ok() -> (StatusCode, Json<Value>) {
    (StatusCode::OK, Json(json!({ "status": "ok" })))
}
