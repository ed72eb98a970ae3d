//! `/api/exchanges`.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use quelea_broker::DeclareExchange;
use quelea_broker::report::ExchangeReport;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{flag_field, required_field};
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::json::{from_table, to_table};
use crate::operation::{done_as, existed};
use crate::state::ApiState;

/// `GET /api/exchanges`.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let exchanges = fetch(&api, None).await?;
    let seen = exchanges.iter().filter(|exchange| user.sees(exchange.vhost.as_str()));
    Ok(Json(Value::Array(seen.map(to_json).collect())))
}

/// `GET /api/exchanges/{vhost}`.
pub(crate) async fn list_in(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let exchanges = fetch(&api, Some(vhost)).await?;
    Ok(Json(Value::Array(exchanges.iter().map(to_json).collect())))
}

/// `GET /api/exchanges/{vhost}/{name}`; the default exchange is called `amq.default` here.
pub(crate) async fn one(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let found = fetch_one(&api, vhost, &name).await?;
    found.as_ref().map(to_json).map(Json).ok_or(ApiError::NotFound)
}

/// `PUT /api/exchanges/{vhost}/{name}` with `type`, `durable` (default true), `auto_delete`,
/// `internal` and `arguments`. 201 if it is new, 204 if it was there.
pub(crate) async fn declare(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    let known = fetch_one(&api, vhost.clone(), &name).await?.is_some();
    let arguments = match &body["arguments"] {
        Value::Null => quelea_model::Table::new(),
        Value::Object(object) => to_table(object).map_err(ApiError::bad)?,
        _ => return Err(ApiError::bad("arguments must be an object")),
    };
    let request = DeclareExchange {
        name,
        kind: required_field(&body, "type")?.to_owned(),
        passive: false,
        durable: flag_field(&body, "durable", true)?,
        auto_delete: flag_field(&body, "auto_delete", false)?,
        internal: flag_field(&body, "internal", false)?,
        arguments,
    };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.declare_exchange(now, channel, &request)
    })
    .await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// The query of a deletion.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct DeleteQuery {
    #[serde(rename = "if-unused", default)]
    if_unused: bool,
}

/// `DELETE /api/exchanges/{vhost}/{name}`, with `?if-unused=true`.
pub(crate) async fn delete(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, ApiError> {
    existed(fetch_one(&api, vhost.clone(), &name).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.delete_exchange(now, channel, &name, query.if_unused)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(api: &ApiState, vhost: Option<String>) -> Result<Vec<ExchangeReport>, ApiError> {
    let exchanges = api.core.call(move |core| core.broker.exchanges(vhost.as_deref())).await;
    exchanges.map_err(|_| ApiError::Stopping)
}

async fn fetch_one(
    api: &ApiState,
    vhost: String,
    name: &str,
) -> Result<Option<ExchangeReport>, ApiError> {
    let name = if name == "amq.default" { "" } else { name };
    let exchanges = fetch(api, Some(vhost)).await?;
    Ok(exchanges.into_iter().find(|exchange| exchange.name.as_str() == name))
}

fn to_json(exchange: &ExchangeReport) -> Value {
    json!({
        "name": exchange.name.as_str(),
        "vhost": exchange.vhost.as_str(),
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": from_table(&exchange.arguments),
        "policy": null,
    })
}
