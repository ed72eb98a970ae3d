//! The management API of a broker beside Cassandra: all of a broker's, but that users, permissions, accounts and keys are
//! Cassandra's, and virtual hosts come and go with accounts.

use quelea_node::{Authenticator, CoreHandle};
use quelea_openapi::{Operation, Route, with_state};
use quelea_sqs_protocol::IdentityDirectory;
use tokio::net::TcpListener;

use crate::api::{HttpSettings, router};
use crate::error::ApiError;
use crate::front_end::FrontEnd;
use crate::identity::{identity_routes, take_over_route, vhost_route};
use crate::state::ApiState;

/// Serves the API until `stop` resolves; answers what is under way before it returns.
pub async fn serve_beside<D: IdentityDirectory>(
    listener: TcpListener,
    (core, authenticator): (CoreHandle, Authenticator),
    directory: D,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (api, fronts, served) = ApiState::new(core, authenticator, settings);
    let front_end = FrontEnd {
        directory,
        authenticator: api.authenticator.clone(),
        tokens: api.tokens.clone(),
        loopback_users: api.loopback_users.clone(),
        node: api.node.clone(),
        account_id: api.account_id.clone(),
        sqs: api.sqs.clone(),
        sqs_service: api.sqs_service.clone(),
        counters: api.counters.clone(),
        audit: api.audit.clone(),
        collectors: api.collectors.clone(),
    };
    let mut access = identity_routes();
    access.extend([vhost_route(), take_over_route()]);
    for path in ["/definitions", "/definitions/{vhost}"] {
        let refused = || Operation::new("Is refused: not supported yet").refuses(&[400]);
        access.push(Route::at(path).get(definitions, refused()).post(definitions, refused()));
    }
    let router = router(api, fronts, with_state(access, &front_end));
    served.run(listener, router, stop).await;
}

/// Half of what definitions say would go to the log, and half to Cassandra, which cannot be taken back together.
async fn definitions() -> ApiError {
    ApiError::NotSupportedYet("definitions of a broker beside Cassandra")
}
