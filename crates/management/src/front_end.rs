//! The management API of a front-end that has no broker: who there is, whether the store answers, and what the SQS
//! interface counts. Its requests and answers are those of a broker's API.

mod node;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use prometheus_client::collector::Collector;
use quelea_node::Authenticator;
use quelea_openapi::{Operation, Route, with_state};
use quelea_sqs_protocol::{AnyService, IdentityDirectory};
use quelea_sqs_server::SqsCounters;
use tokio::net::TcpListener;

use crate::api::HttpSettings;
use crate::api::guard::guarded;
use crate::audit::AuditTrail;
use crate::console;
use crate::counters::ApiCounters;
use crate::error::unknown_path;
use crate::identity::{identity_routes, store_better_hashes, take_over_route, users};
use crate::limits::BODY_BYTES_MAX;
use crate::server::{self, Shared};
use crate::shapes::{Health, shows};
use crate::state::SharedState;
use crate::tokens::Tokens;
use crate::v1;
use crate::web_pages::WebPages;

/// Serves the API of a front-end until `stop` resolves; answers what is under way before it returns.
pub async fn serve_front_end<D: IdentityDirectory>(
    listener: TcpListener,
    directory: D,
    authenticator: Authenticator,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    store_better_hashes(&authenticator, &directory);
    let (counters, audit) = (Arc::<ApiCounters>::default(), settings.audit);
    let front_end = FrontEnd {
        directory,
        authenticator,
        loopback_users: settings.loopback_users.into(),
        node: settings.node.into(),
        account_id: settings.account_id.into(),
        sqs: settings.sqs,
        sqs_service: settings.sqs_service,
        collectors: settings.collectors.into(),
        counters: Arc::clone(&counters),
        audit: Arc::clone(&audit),
    };
    let replicated = guarded(settings.replicated, &front_end);
    let v1 = v1::Sections::of_front_end(&front_end, replicated);
    let router = router(front_end, v1);
    let pages = WebPages::new(settings.hosts);
    let shared = Shared::new(router, settings.limits, pages, counters, audit);
    server::serve(listener, shared, stop).await;
}

/// What the handlers share; cheap to clone.
#[derive(Clone)]
struct FrontEnd<D> {
    directory: D,
    authenticator: Authenticator,
    loopback_users: Arc<[String]>,
    node: Arc<str>,
    account_id: Arc<str>,
    sqs: Option<Arc<SqsCounters>>,
    sqs_service: Option<AnyService>,
    counters: Arc<ApiCounters>,
    audit: Arc<AuditTrail>,
    collectors: Arc<[Arc<dyn Collector>]>,
}

fn router<D: IdentityDirectory>(front_end: FrontEnd<D>, v1: v1::Sections) -> Router {
    let mut routes = of_node::<D>();
    routes.extend(identity_routes());
    routes.push(take_over_route());
    let routes = with_state(routes, &front_end);
    let v1 = v1.router(&routes);
    Router::new()
        .merge(console::routes())
        .route("/metrics", get(node::metrics::<D>))
        .with_state(front_end)
        .nest("/api", quelea_openapi::router(routes).with_state(()))
        .nest("/quelea/v1", v1)
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

fn of_node<D: IdentityDirectory>() -> Vec<Route<FrontEnd<D>>> {
    let check = |path| {
        let fails = Operation::new("Fails while Cassandra does not answer");
        let operation = fails.answers::<Health>(200).answers::<Health>(503);
        Route::at(path).get(node::health::<D>, operation)
    };
    vec![
        Route::at("/overview").get(node::overview::<D>, shows("Returns what this front-end is")),
        Route::at("/whoami").get(users::whoami::<FrontEnd<D>>, shows("Returns the user who asks")),
        Route::at("/audit").get(v1::audit::<FrontEnd<D>>, v1::audit_operation()),
        check("/health/checks/alarms"),
        check("/health/checks/local-alarms"),
        check("/health/checks/virtual-hosts"),
        check("/health/checks/is-in-service"),
    ]
}

impl<D: IdentityDirectory> SharedState for FrontEnd<D> {
    type Directory = D;

    fn directory(&self) -> &D {
        &self.directory
    }

    fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    fn loopback_users(&self) -> &[String] {
        &self.loopback_users
    }

    fn tokens(&self) -> Option<&Tokens> {
        None
    }

    fn sqs_service(&self) -> Option<&AnyService> {
        self.sqs_service.as_ref()
    }

    fn audit(&self) -> &AuditTrail {
        &self.audit
    }

    fn account_id(&self) -> &str {
        &self.account_id
    }
}
