//! What RabbitMQ has and Quelea does not have yet: its paths are known and say so. Lists are empty, which is true of
//! them, so that tools which ask for all of everything go on.

use axum::Router;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::Value;

use super::listing::array;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::ApiState;

/// The first segment of the paths; how many more segments a list of them may have, or `None` if there is none; and what
/// is said of them.
const LATER: [(&str, Option<usize>, &str); 12] = [
    ("policies", Some(1), "policies; give a queue its arguments when it is declared"),
    ("operator-policies", Some(1), "operator policies"),
    ("parameters", Some(2), "runtime parameters"),
    ("global-parameters", Some(0), "global parameters"),
    ("vhost-limits", Some(1), "limits of virtual hosts; limits of the node are settings"),
    ("user-limits", Some(1), "limits of users; limits of the node are settings"),
    ("feature-flags", Some(0), "feature flags: all that this version has is enabled"),
    ("deprecated-features", Some(1), "deprecated features: there are none"),
    ("federation-links", Some(1), "federation"),
    ("shovels", Some(1), "shovels"),
    ("traces", Some(1), "tracing"),
    ("rebalance", None, "to rebalance queues: each has one owner"),
];

pub(super) fn routes() -> Router<ApiState> {
    LATER.iter().fold(Router::new(), |router, &(path, list_depth, what)| {
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
    let depth = call.path().first().map_or(0, |rest| 1 + rest.matches('/').count());
    match list_depth {
        Some(deepest) if method == Method::GET && depth <= deepest => {
            Ok(array(std::iter::empty::<Value>()).into_response())
        }
        _ => Err(ApiError::NotSupportedYet(what)),
    }
}
