//! What other rooms answer, elastic queues' directory and CMQ's front: for users whose tags allow it.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use quelea_openapi::Route;

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::ApiState;

/// Puts `routes` behind the users' passwords and tags.
pub(super) fn guarded(routes: Vec<Route>, api: &ApiState) -> Vec<Route> {
    let guard = |route: Route| {
        let guard = from_fn_with_state(api.clone(), authorize);
        route.map(|methods| methods.route_layer(guard))
    };
    routes.into_iter().map(guard).collect()
}

/// What only shows is for monitoring users too, what changes something for administrators.
async fn authorize(user: ApiUser, request: Request, next: Next) -> Result<Response, ApiError> {
    match *request.method() {
        Method::GET | Method::HEAD => user.require_monitoring()?,
        _ => user.require_administrator()?,
    }
    Ok(next.run(request).await)
}
