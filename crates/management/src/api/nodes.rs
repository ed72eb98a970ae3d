//! `/api/nodes`, `/api/cluster-name` and what else tools ask of a node: there is one.

use axum::Json;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::overview::{self, contexts, sockets};
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::required_field;
use crate::list_query::Columns;
use crate::listed::array;
use crate::operation::{existed, vhost_exists};
use crate::process::{Process, disk_free_bytes};
use crate::state::ApiState;

/// `GET /api/nodes`.
pub(super) async fn list(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_monitoring()?;
    Ok(array(std::iter::once(columns.shown(node(&api).await?))))
}

/// What more of a node is asked for.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NodeQuery {
    /// Also what its memory holds.
    #[serde(default)]
    memory: bool,
}

/// `GET /api/nodes/{name}`, with `?memory=true` also what its memory holds.
pub(super) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let query: NodeQuery = call.query()?;
    let (api, user, [name]) = call.parts();
    user.require_monitoring()?;
    existed(*api.node == *name)?;
    let mut shown = node(&api).await?;
    if query.memory {
        shown["memory"] = memory_of(&api).await?;
    }
    Ok(Json(columns.shown(shown)))
}

/// `GET /api/nodes/{name}/memory`: what the process takes, and how much of it are messages and their index.
pub(super) async fn memory(call: Call) -> JsonAnswer {
    let (api, user, [name]) = call.parts();
    user.require_monitoring()?;
    existed(*api.node == *name)?;
    Ok(Json(json!({ "memory": memory_of(&api).await? })))
}

async fn memory_of(api: &ApiState) -> Result<Value, ApiError> {
    let overview = overview::fetch(api).await?;
    let known = (overview.resident_bytes + overview.index_bytes) as u64;
    let total = Process::read().resident_bytes.unwrap_or(known);
    Ok(json!({
        "strategy": "rss",
        "total": { "rss": total },
        "binary": overview.resident_bytes,
        "msg_index": overview.index_bytes,
        "other_system": total.saturating_sub(known),
    }))
}

/// `POST /api/vhosts/{vhost}/start/{node}`: it runs wherever it is.
pub(super) async fn start_vhost(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    existed(*api.node == *name && vhost_exists(&api, &vhost).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/cluster-name`.
pub(super) async fn cluster_name(call: Call) -> Json<Value> {
    Json(json!({ "name": &*call.api().node }))
}

/// `GET /api/extensions`: none of the console's parts comes from a plugin.
pub(super) async fn extensions(call: Call) -> Json<Value> {
    drop(call);
    array(std::iter::empty())
}

/// `GET /api/auth`: how the console signs in.
pub(super) async fn auth() -> Json<Value> {
    Json(json!({ "oauth_enabled": false }))
}

/// `GET /api/auth/attempts/{node}`: sign-ins since the start.
pub(super) async fn auth_attempts(call: Call) -> JsonAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(*api.node == *name)?;
    let failures = api.authenticator.failures();
    let fronts = quelea_net::Front::ALL.into_iter().map(
        |front| json!({ "protocol": front.name(), "auth_attempts_failed": failures.count(front) }),
    );
    Ok(array(fronts))
}

/// `POST /api/queues/{vhost}/{name}/actions` with `action`: `sync` and `cancel_sync` are done at once, since a queue has
/// no mirrors.
pub(super) async fn queue_action(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_vhost(&vhost)?;
    existed(api.on_core(move |core| core.broker.queue(&vhost, &name).is_some()).await?)?;
    match required_field(&body, "action")? {
        "sync" | "cancel_sync" => Ok(StatusCode::NO_CONTENT),
        other => Err(ApiError::BadRequest(format!(
            "action must be sync or cancel_sync, it is {other:?}"
        ))),
    }
}

async fn node(api: &ApiState) -> Result<Value, ApiError> {
    let overview = overview::fetch(api).await?;
    let counters = api.on_core(|core| core.counters()).await?;
    let process = Process::read();
    Ok(json!({
        "name": &*api.node,
        "type": "disc",
        "running": true,
        "os_pid": std::process::id().to_string(),
        "uptime": api.started.elapsed().as_millis() as u64,
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "mem_used": process.resident_bytes,
        "mem_alarm": overview.blocked_by_memory,
        "disk_free": disk_free_bytes(&api.data_dir),
        "disk_free_alarm": overview.publishers_blocked.is_some() && !overview.blocked_by_memory,
        "fd_used": process.files,
        "fd_total": process.files_max,
        "sockets_used": counters.connections,
        "sockets_total": counters.connections_max,
        "resident_bytes": overview.resident_bytes,
        "index_bytes": overview.index_bytes,
        "rates_mode": "basic",
        "partitions": [],
        "applications": [],
        "enabled_plugins": [],
        "contexts": contexts(api),
        "listeners": sockets(api),
    }))
}
