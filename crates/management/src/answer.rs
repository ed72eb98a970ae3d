//! What handlers answer.

use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::Value;

use crate::audit::Details;
use crate::error::ApiError;

/// What is answered with JSON.
pub(crate) type JsonAnswer = Result<Json<Value>, ApiError>;

/// What is answered with a status alone.
pub(crate) type StatusAnswer = Result<StatusCode, ApiError>;

/// The same, with what [the audit trail](crate::audit) says of it beyond the path.
pub(crate) type AuditedAnswer = Result<(StatusCode, Extension<Details>), ApiError>;
