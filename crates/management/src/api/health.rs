//! `/api/health/checks/…`: 200 with `{"status": "ok"}`, or 503 with the reason.

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;

/// Fails while publishers are blocked: the disk is full, or has failed.
pub(crate) async fn alarms(call: Call) -> Answer {
    let (api, _, []) = call.parts();
    let blocked = api.ask(|core| core.broker.publishers_blocked().map(str::to_owned)).await?;
    Ok(match blocked {
        None => ok(),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "status": "failed", "reason": reason, "alarms": [reason] })),
        ),
    })
}

/// The core thread answers. All virtual hosts are served by the one node: they are up when it does.
pub(crate) async fn alive(call: Call) -> Answer {
    let (api, _, []) = call.parts();
    api.ask(|_| ()).await?;
    Ok(ok())
}

type Answer = Result<(StatusCode, Json<Value>), ApiError>;

fn ok() -> (StatusCode, Json<Value>) {
    (StatusCode::OK, Json(json!({ "status": "ok" })))
}
