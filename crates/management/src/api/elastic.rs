//! `/api/elastic`: the directory's own routes, for users whose tags allow it.

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::ApiState;

/// Puts `routes` behind the users' passwords and tags.
pub(super) fn mount(routes: Vec<(&'static str, MethodRouter)>, api: &ApiState) -> Router<ApiState> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| {
        let guard = from_fn_with_state(api.clone(), authorize);
        router.route(path, methods.route_layer(guard).with_state(()))
    })
}

/// What only shows is for monitoring users too, what changes something for administrators.
async fn authorize(user: ApiUser, request: Request, next: Next) -> Result<Response, ApiError> {
    match *request.method() {
        Method::GET | Method::HEAD => user.require_monitoring()?,
        _ => user.require_administrator()?,
    }
    Ok(next.run(request).await)
}
