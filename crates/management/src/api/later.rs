//! What RabbitMQ has and Quelea does not have yet: its paths are known and say so. Lists are empty, which is true of
//! them, so that tools which ask for all of everything go on.

use axum::Router;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::Value;

use crate::call::Call;
use crate::error::ApiError;
use crate::listed::array;
use crate::state::ApiState;

/// The first segment of the paths; how many more segments a list of them may have, or `None` if there is none; and what
/// is said of them: what there is not, and why or what there is instead.
const LATER: [(&str, Option<usize>, &str); 13] = [
    ("policies", Some(1), "policies; give a queue its arguments when it is declared"),
    ("operator-policies", Some(1), "operator policies; limits of the node are settings"),
    (
        "parameters",
        Some(2),
        "runtime parameters; what they configure are plugins, and there are none",
    ),
    (
        "global-parameters",
        Some(0),
        "global parameters; what they configure are plugins, and there are none",
    ),
    ("vhost-limits", Some(1), "limits of virtual hosts; limits of the node are settings"),
    ("user-limits", Some(1), "limits of users; limits of the node are settings"),
    ("feature-flags", Some(0), "feature flags; all that this version has is enabled"),
    ("deprecated-features", Some(1), "deprecated features; there are none"),
    (
        "federation-links",
        Some(1),
        "federation; a client that consumes here and publishes there links two brokers",
    ),
    ("shovels", Some(1), "shovels; messages are moved by /quelea/v1/queues/{vhost}/{name}/moves"),
    ("traces", Some(1), "tracing; an exchange that is bound to another one sees its messages"),
    ("rebalance", None, "to rebalance queues; each has one owner"),
    ("reset", None, "to reset statistics; they count from the broker's start"),
];

/// `PUT /api/cluster-name`.
pub(super) async fn name_cluster(call: Call) -> Result<Response, ApiError> {
    refuse(&call, "to name a cluster; its name is the node's")
}

/// `DELETE /api/auth/attempts/{node}`.
pub(super) async fn reset_attempts(call: Call) -> Result<Response, ApiError> {
    refuse(&call, "to reset the counts of failed sign-ins; they count from the broker's start")
}

async fn attempts_by_source(call: Call) -> Result<Response, ApiError> {
    refuse(&call, "failed sign-ins by their sources; the log names each one's address")
}

pub(super) fn routes() -> Router<ApiState> {
    let others = Router::new().route("/auth/attempts/{node}/source", any(attempts_by_source));
    LATER.iter().fold(others, |router, &(path, list_depth, what)| {
        let answer = move |method: Method, call: Call| answer(method, call, list_depth, what);
        router
            .route(&format!("/{path}"), any(answer))
            .route(&format!("/{path}/{{*rest}}"), any(answer))
    })
}

async fn answer(
    method: Method,
    call: Call,
    list_depth: Option<usize>,
    what: &'static str,
) -> Result<Response, ApiError> {
    // A virtual host's name may hold slashes, which are counted as long as they are `%2F`.
    let segments = call.uri().path().trim_start_matches('/').split('/').count();
    let depth = segments - 1;
    match list_depth {
        Some(deepest) if method == Method::GET && depth <= deepest => {
            Ok(array(std::iter::empty::<Value>()).into_response())
        }
        _ => refuse(&call, what),
    }
}

/// Refuses what is not supported yet, only for who has signed in: the call says so.
fn refuse(_call: &Call, what: &'static str) -> Result<Response, ApiError> {
    Err(ApiError::NotSupportedYet(what))
}
