//! `/api/health/checks/…`: 200 with `{"status": "ok"}`, or 503 with the reason.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::ApiState;

/// Fails while publishers are blocked: the disk is full, or has failed.
pub(crate) async fn alarms(State(api): State<ApiState>, _user: ApiUser) -> Answer {
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
pub(crate) async fn alive(State(api): State<ApiState>, _user: ApiUser) -> Answer {
    api.ask(|_| ()).await?;
    Ok(ok())
}

type Answer = Result<(StatusCode, Json<Value>), ApiError>;

fn ok() -> (StatusCode, Json<Value>) {
    (StatusCode::OK, Json(json!({ "status": "ok" })))
}
