//! Errors in the shape of RabbitMQ's management API: a status, and
//! `{"error": …, "reason": …}`.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use quelea_sqs_protocol::Fault;
use serde_json::json;

use crate::web_pages::Refusal;

/// What a request is answered with when it fails.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// No or wrong credentials.
    Unauthorized,
    /// The user's tags or permissions do not allow this.
    Forbidden(String),
    /// No such object.
    NotFound,
    /// Nothing is ever there: the path.
    UnknownPath(String),
    /// Nobody does that there.
    MethodNotAllowed { method: Method, allowed: String },
    /// What RabbitMQ has and Quelea will have later; says what and why.
    NotSupportedYet(&'static str),
    /// The request makes no sense; says which field and why.
    BadRequest(String),
    /// The object's state does not allow it; says why.
    Conflict(String),
    /// A list is shorter; says how long it is.
    PageOutOfRange(String),
    /// The broker is stopping.
    Stopping,
    /// The address has sent more requests a second than this.
    TooMany(u32),
    /// A name was asked for that is not ours.
    Misdirected(String),
    /// To try again may help; says why.
    Busy(&'static str),
    /// Another store is being asked whether it has a queue of that name.
    NameBeingChecked,
    /// Not HTTP as the API takes it, such as a body that is not JSON: the status and what is wrong.
    Malformed(StatusCode, String),
    /// There is no SQS interface.
    NoSqs,
    /// There is no such queue in Cassandra, or no Cassandra.
    NoReplicatedQueue { account: String, name: String },
    /// SQS has no operation of that name.
    NoSqsOperation(String),
    /// The SQS service refuses; its status, code and reason.
    Sqs { status: StatusCode, code: &'static str, reason: String },
    /// What holds the users and the queues does not answer; says why.
    Unavailable(String),
    /// The operating system refused; says what.
    System(String),
}

/// Bytes of an unknown path that its error repeats.
const PATH_SHOWN_BYTES_MAX: usize = 200;

/// Refuses what is asked of no route.
pub(crate) async fn unknown_path(uri: Uri) -> ApiError {
    // A path is ASCII: others are no URI.
    let path = uri.path();
    ApiError::UnknownPath(path.get(..PATH_SHOWN_BYTES_MAX).unwrap_or(path).to_owned())
}

impl ApiError {
    /// Returns a bad request with its reason.
    pub(crate) fn bad(reason: impl ToString) -> Self {
        Self::BadRequest(reason.to_string())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(refused: JsonRejection) -> Self {
        Self::Malformed(refused.status(), refused.body_text())
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoSuchQueue | Fault::NotFound(_) => Self::NotFound,
            Fault::Invalid(reason) | Fault::Unsupported(reason) => Self::BadRequest(reason),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal.is_misdirected {
            true => Self::Misdirected(refusal.reason),
            false => Self::Forbidden(refusal.reason),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error, reason) = self.parts();
        let mut response =
            (status, Json(json!({ "error": error, "reason": reason }))).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"Quelea Management\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl ApiError {
    /// Returns what went wrong, for people.
    pub(crate) fn reason(self) -> String {
        self.parts().2
    }

    fn parts(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::Unauthorized => {
                (StatusCode::UNAUTHORIZED, "not_authorized", "Login failed".to_owned())
            }
            Self::Forbidden(reason) => (StatusCode::FORBIDDEN, "access_refused", reason),
            Self::NotFound => (StatusCode::NOT_FOUND, "Object Not Found", "Not Found".to_owned()),
            Self::UnknownPath(path) => {
                (StatusCode::NOT_FOUND, "Unknown Path", format!("there is no path {path}"))
            }
            Self::MethodNotAllowed { method, allowed } => {
                let reason = format!("{method} is not allowed here, but {allowed}");
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason)
            }
            Self::NotSupportedYet(what) => {
                let reason = format!("not supported yet: {what}");
                // What RabbitMQ's tools show the reason of.
                (StatusCode::BAD_REQUEST, "not_supported_yet", reason)
            }
            Self::NoSqs => {
                let reason = "sqs.enabled is false: there is no SQS interface here".to_owned();
                (StatusCode::NOT_FOUND, "Object Not Found", reason)
            }
            Self::NoReplicatedQueue { account, name } => {
                let reason =
                    format!("there is no replicated queue {name:?} in account {account:?}");
                (StatusCode::NOT_FOUND, "Object Not Found", reason)
            }
            Self::NoSqsOperation(name) => {
                let reason = format!("there is no SQS operation {name}");
                (StatusCode::NOT_FOUND, "Object Not Found", reason)
            }
            Self::Sqs { status, code, reason } => (status, code, reason),
            Self::Malformed(status, reason) => (status, "bad_request", reason),
            Self::Conflict(reason) => (StatusCode::CONFLICT, "conflict", reason),
            Self::PageOutOfRange(reason) => (StatusCode::BAD_REQUEST, "page_out_of_range", reason),
            Self::BadRequest(reason) => (StatusCode::BAD_REQUEST, "bad_request", reason),
            Self::System(reason) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error", reason),
            Self::TooMany(limit) => {
                let reason =
                    format!("more than {limit} requests a second (http.requests_per_s_max)");
                (StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason)
            }
            Self::Misdirected(reason) => {
                (StatusCode::MISDIRECTED_REQUEST, "misdirected_request", reason)
            }
            Self::Busy(reason) => {
                (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason.to_owned())
            }
            Self::NameBeingChecked => (
                StatusCode::SERVICE_UNAVAILABLE,
                "service_unavailable",
                "the name is being checked, try again later".to_owned(),
            ),
            Self::Unavailable(reason) => {
                (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
            }
            Self::Stopping => (
                StatusCode::SERVICE_UNAVAILABLE,
                "service_unavailable",
                "the broker is stopping".to_owned(),
            ),
        }
    }
}
