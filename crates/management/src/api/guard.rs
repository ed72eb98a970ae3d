//! What other rooms answer (elastic queues' directory, CMQ's front, Cassandra's front-ends): for users whose tags allow it.

use axum::extract::{RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use quelea_openapi::Route;

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::SharedState;

/// Puts `routes` behind the users' passwords and tags.
pub(crate) fn guarded<S: SharedState>(routes: Vec<Route>, api: &S) -> Vec<Route> {
    let guard = |route: Route| {
        let guard = from_fn_with_state(api.clone(), authorize::<S>);
        route.map(|methods| methods.route_layer(guard))
    };
    routes.into_iter().map(guard).collect()
}

/// Lets a request through if its user may make it: what only shows is for monitoring users too, or,
/// of an account, for its users; what changes something is for administrators.
async fn authorize<S: SharedState>(
    State(api): State<S>,
    user: ApiUser,
    path: RawPathParams,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let account = path.iter().find(|(name, _)| *name == "account").map(|(_, account)| account);
    match (request.method(), account) {
        (&Method::GET | &Method::HEAD, Some(account)) => {
            user.require_vhost(api.vhost_of(account))?;
        }
        (&Method::GET | &Method::HEAD, None) => user.require_monitoring()?,
        _ => user.require_administrator()?,
    }
    Ok(next.run(request).await)
}
