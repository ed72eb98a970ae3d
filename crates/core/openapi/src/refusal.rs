//! Answers that refuse, in the shape of RabbitMQ's management API: a status, and `{"error": …, "reason": …}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// Returns the answer of that status which says why. Its `error` is the API's word for the status.
pub fn refusal(status: StatusCode, reason: impl ToString) -> Response {
    let error = match status {
        StatusCode::NOT_FOUND => "Object Not Found",
        StatusCode::BAD_REQUEST => "bad_request",
        StatusCode::CONFLICT => "conflict",
        StatusCode::SERVICE_UNAVAILABLE => "service_unavailable",
        _ => "internal_error",
    };
    (status, Json(json!({ "error": error, "reason": reason.to_string() }))).into_response()
}
