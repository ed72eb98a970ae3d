//! `/api/bindings`, and the bindings of a queue or an exchange.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quelea_broker::report::BindingReport;
use quelea_broker::{ExchangeBinding, QueueBinding};
use quelea_model::Table;
use serde_json::{Value, json};

use super::text_field;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::json::{from_table, to_table};
use crate::operation::done_as;
use crate::state::ApiState;

/// `GET /api/bindings`.
pub(crate) async fn list(
    State(api): State<ApiState>,
    user: ApiUser,
) -> Result<Json<Value>, ApiError> {
    let mut bindings = fetch(&api, None).await?;
    bindings.retain(|binding| user.sees(binding.vhost.as_str()));
    Ok(array(&bindings))
}

/// `GET /api/bindings/{vhost}`.
pub(crate) async fn list_in(
    State(api): State<ApiState>,
    user: ApiUser,
    Path(vhost): Path<String>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |_| true).await
}

/// `GET /api/queues/{vhost}/{name}/bindings`.
pub(crate) async fn of_queue(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |b| b.to_queue && b.destination == name).await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/source`.
pub(crate) async fn from_exchange(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |b| b.source == name).await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/destination`.
pub(crate) async fn to_exchange(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |b| !b.to_queue && b.destination == name).await
}

/// `GET /api/bindings/{vhost}/e/{source}/q/{destination}`.
pub(crate) async fn queue_pair(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, source, destination)): Path<(String, String, String)>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |b| {
        b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `GET /api/bindings/{vhost}/e/{source}/e/{destination}`.
pub(crate) async fn exchange_pair(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, source, destination)): Path<(String, String, String)>,
) -> Result<Json<Value>, ApiError> {
    matching(&api, &user, vhost, |b| {
        !b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `POST /api/bindings/{vhost}/e/{source}/q/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_queue(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, source, destination)): Path<(String, String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    let (routing_key, arguments) = key_and_arguments(&body)?;
    let request = QueueBinding { queue: destination, exchange: source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_queue(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `POST /api/bindings/{vhost}/e/{source}/e/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_exchange(
    State(api): State<ApiState>,
    user: ApiUser,
    Path((vhost, source, destination)): Path<(String, String, String)>,
    Json(body): Json<Value>,
) -> Result<StatusCode, ApiError> {
    let (routing_key, arguments) = key_and_arguments(&body)?;
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_exchange(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

fn key_and_arguments(body: &Value) -> Result<(String, Table), ApiError> {
    let routing_key = text_field(body, "routing_key")?.unwrap_or_default().to_owned();
    let arguments = match &body["arguments"] {
        Value::Null => Table::new(),
        Value::Object(object) => to_table(object).map_err(ApiError::bad)?,
        _ => return Err(ApiError::bad("arguments must be an object")),
    };
    Ok((routing_key, arguments))
}

async fn matching(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
    wanted: impl Fn(&BindingReport) -> bool,
) -> Result<Json<Value>, ApiError> {
    user.require_vhost(&vhost)?;
    let mut bindings = fetch(api, Some(vhost)).await?;
    bindings.retain(wanted);
    Ok(array(&bindings))
}

async fn fetch(api: &ApiState, vhost: Option<String>) -> Result<Vec<BindingReport>, ApiError> {
    let bindings = api.core.call(move |core| core.broker.bindings(vhost.as_deref())).await;
    bindings.map_err(|_| ApiError::Stopping)
}

fn array(bindings: &[BindingReport]) -> Json<Value> {
    Json(Value::Array(bindings.iter().map(to_json).collect()))
}

fn to_json(binding: &BindingReport) -> Value {
    json!({
        "source": binding.source,
        "vhost": binding.vhost.as_str(),
        "destination": binding.destination,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": binding.routing_key,
        "arguments": from_table(&binding.arguments),
        "properties_key": if binding.routing_key.is_empty() { "~" } else { &binding.routing_key },
    })
}
