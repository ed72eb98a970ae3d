//! `/api/overview`, `/api/health/checks/…` and `/metrics` of a front-end.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use prometheus_client::registry::Registry;
use quelea_sqs_protocol::IdentityDirectory;
use serde_json::{Value, json};

use super::FrontEnd;
use crate::answer::JsonAnswer;
use crate::api::overview::RABBITMQ_LEVEL;
use crate::call::Call;
use crate::error::ApiError;
use crate::metrics::{self, Format, Fronts};

/// `GET /api/overview`.
pub(super) async fn overview<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let api = call.api();
    Ok(Json(json!({
        "product_name": "Quelea",
        "product_version": env!("CARGO_PKG_VERSION"),
        "management_version": env!("CARGO_PKG_VERSION"),
        "rabbitmq_version": RABBITMQ_LEVEL,
        "cluster_name": &*api.node,
        "node": &*api.node,
        "rates_mode": "none",
        "store": "cassandra",
        "queue_classes": ["replicated"],
    })))
}

/// `GET /api/health/checks/…`: Cassandra answers.
pub(super) async fn health<D: IdentityDirectory>(
    call: Call<FrontEnd<D>>,
) -> (StatusCode, Json<Value>) {
    match call.api().directory.check().await {
        Ok(()) => (StatusCode::OK, Json(json!({ "status": "ok" }))),
        Err(fault) => {
            let reason = fault.to_string();
            let body = json!({ "status": "failed", "reason": reason, "alarms": [reason] });
            (StatusCode::SERVICE_UNAVAILABLE, Json(body))
        }
    }
}

/// `GET /metrics`.
pub(super) async fn metrics<D: IdentityDirectory>(
    State(api): State<FrontEnd<D>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let fronts = Fronts {
        authenticator: &api.authenticator,
        counters: &api.counters,
        sqs: api.sqs.as_ref(),
        collectors: &api.collectors,
    };
    metrics::page(Registry::with_prefix("quelea"), &[], fronts, Format::wanted(&headers))
}
