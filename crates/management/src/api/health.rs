//! `/api/health/checks/…`: 200 with `{"status": "ok"}`, or 503 with the reason.

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::overview;
use crate::call::Call;
use crate::error::ApiError;

/// Fails while publishers are blocked: the disk is full, or has failed.
pub(crate) async fn alarms(call: Call) -> Answer {
    let api = call.api();
    let blocked = api.ask(|core| core.broker.publishers_blocked().map(str::to_owned)).await?;
    Ok(match blocked {
        None => ok(),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "status": "failed", "reason": reason, "alarms": [reason] })),
        ),
    })
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

/// The core thread answers. All virtual hosts are served by the one node: they are up when it does.
pub(crate) async fn alive(call: Call) -> Answer {
    call.api().ask(|_| ()).await?;
    Ok(ok())
}

type Answer = Result<(StatusCode, Json<Value>), ApiError>;

fn ok() -> (StatusCode, Json<Value>) {
    (StatusCode::OK, Json(json!({ "status": "ok" })))
}
