//! What other rooms answer (elastic queues' directory, CMQ's front, Cassandra's front-ends): for users whose tags allow it.

use axum::extract::{RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use quelea_openapi::Route;

use crate::authentication::ApiUser;
use crate::call::Begun;
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
        _ => {
            user.require_administrator()?;
            // Other rooms read the body themselves and know nothing of the mark. What they change is in this
            // server's audit trail, though the client is gone by then.
            if let Some(begun) = request.extensions().get::<Begun>() {
                begun.begin();
            }
        }
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::http::header::AUTHORIZATION;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use quelea_openapi::Operation;

    use super::*;
    use crate::test_broker::TestBroker;

    #[tokio::test]
    async fn a_change_begins_when_its_user_may_make_it() {
        let broker = TestBroker::start();
        let answer = async || StatusCode::OK;
        let operation = Operation::new("Answers");
        let route = Route::at("/q").get(answer, operation.clone()).put(answer, operation);
        let router = quelea_openapi::router(guarded(vec![route], &broker.api)).with_state(());
        let router = TowerToHyperService::new(router);
        for (method, password, status, has_begun) in [
            (Method::PUT, "Basic Z3Vlc3Q6Z3Vlc3Q=", StatusCode::OK, true),
            (Method::PUT, "none", StatusCode::UNAUTHORIZED, false),
            (Method::GET, "Basic Z3Vlc3Q6Z3Vlc3Q=", StatusCode::OK, false),
        ] {
            let begun = Begun::default();
            let request = Request::builder().method(&method).uri("/q").extension(begun.clone());
            let request = request.header(AUTHORIZATION, password).body(Body::empty()).unwrap();
            assert_eq!(router.call(request).await.unwrap().status(), status);
            assert_eq!(begun.has_begun(), has_begun, "{method} with {password}");
        }
    }
}
