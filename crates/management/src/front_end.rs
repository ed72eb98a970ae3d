//! The management API of a front-end that has no broker: who there is, whether the store answers, and what the SQS
//! interface counts. Its requests and answers are those of a broker's API.

mod access_keys;
mod accounts;
mod node;
mod permissions;
mod takeover;
mod users;
pub(crate) mod vhosts;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use prometheus_client::collector::Collector;
use quelea_node::Authenticator;
use quelea_openapi::{Route, with_state};
use quelea_sqs_protocol::{AnyService, Fault, IdentityDirectory, UserRecord};
use quelea_sqs_server::SqsCounters;
use tokio::net::TcpListener;

use crate::api::HttpSettings;
use crate::api::access_operations as operations;
use crate::api::guard::guarded;
use crate::audit::AuditTrail;
use crate::authentication::{KnownUser, Users};
use crate::console;
use crate::counters::ApiCounters;
use crate::error::{ApiError, unknown_path};
use crate::limits::BODY_BYTES_MAX;
use crate::server::{self, Shared};
use crate::state::SharedState;
use crate::tokens::Tokens;
use crate::v1::{self, password_route};
use crate::web_pages::WebPages;

/// Serves the API of a front-end until `stop` resolves; answers what is under way before it returns.
pub async fn serve_front_end<D: IdentityDirectory>(
    listener: TcpListener,
    directory: D,
    authenticator: Authenticator,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (counters, audit) = (Arc::<ApiCounters>::default(), settings.audit);
    let front_end = FrontEnd {
        directory,
        authenticator,
        tokens: None,
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
    let router = routes(front_end, v1);
    let pages = WebPages::new(settings.hosts);
    let shared = Shared::new(router, settings.limits, pages, counters, audit);
    server::serve(listener, shared, stop).await;
}

/// What the handlers share; cheap to clone.
#[derive(Clone)]
pub(crate) struct FrontEnd<D> {
    pub(crate) directory: D,
    pub(crate) authenticator: Authenticator,
    /// Beside a broker, its.
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) loopback_users: Arc<[String]>,
    pub(crate) node: Arc<str>,
    pub(crate) account_id: Arc<str>,
    pub(crate) sqs: Option<Arc<SqsCounters>>,
    pub(crate) sqs_service: Option<AnyService>,
    pub(crate) counters: Arc<ApiCounters>,
    pub(crate) audit: Arc<AuditTrail>,
    pub(crate) collectors: Arc<[Arc<dyn Collector>]>,
}

fn routes<D: IdentityDirectory>(front_end: FrontEnd<D>, v1: v1::Sections) -> Router {
    let identity = with_state(identity_routes(), &front_end);
    let v1 = v1.router(&identity);
    let api = Router::new()
        .route("/overview", get(node::overview::<D>))
        .route("/whoami", get(users::whoami::<D>))
        .route("/audit", get(v1::audit::<FrontEnd<D>>))
        .route("/health/checks/alarms", get(node::health::<D>))
        .route("/health/checks/local-alarms", get(node::health::<D>))
        .route("/health/checks/virtual-hosts", get(node::health::<D>))
        .route("/health/checks/is-in-service", get(node::health::<D>))
        .merge(quelea_openapi::router(identity).with_state(()));
    Router::new()
        .merge(console::routes())
        .route("/metrics", get(node::metrics::<D>))
        .nest("/api", api)
        .nest("/quelea/v1", v1.with_state(()))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(front_end)
}

/// What is about users, permissions, accounts and keys.
pub(crate) fn identity_routes<D: IdentityDirectory>() -> Vec<Route<FrontEnd<D>>> {
    vec![
        Route::at("/vhosts/{vhost}/permissions")
            .get(permissions::of_vhost::<D>, operations::permissions()),
        Route::at("/accounts").get(accounts::list::<D>, operations::accounts()),
        Route::at("/accounts/{account}")
            .put(accounts::put::<D>, operations::put_account())
            .delete(accounts::delete::<D>, operations::delete_account()),
        Route::at("/access-keys")
            .get(access_keys::list::<D>, operations::access_keys())
            .post(access_keys::create::<D>, operations::create_access_key()),
        Route::at("/access-keys/{id}")
            .get(access_keys::one::<D>, operations::access_key())
            .put(access_keys::enable::<D>, operations::enable_access_key())
            .delete(access_keys::delete::<D>, operations::delete_access_key()),
        Route::at("/users").get(users::list::<D>, operations::users()),
        Route::at("/users/without-permissions")
            .get(users::without_permissions::<D>, operations::users()),
        Route::at("/users/bulk-delete").post(users::bulk_delete::<D>, operations::delete_users()),
        Route::at("/users/{user}")
            .get(users::one::<D>, operations::user())
            .put(users::put::<D>, operations::put_user())
            .delete(users::delete::<D>, operations::delete_user()),
        Route::at("/users/{user}/permissions")
            .get(permissions::of_user::<D>, operations::permissions()),
        Route::at("/permissions").get(permissions::list::<D>, operations::permissions()),
        Route::at("/permissions/{vhost}/{user}")
            .get(permissions::one::<D>, operations::permission())
            .put(permissions::put::<D>, operations::put_permissions())
            .delete(permissions::delete::<D>, operations::delete_permissions()),
        password_route(),
        Route::at("/take-over").post(takeover::take_over::<D>, operations::take_over()),
    ]
}

impl<D: IdentityDirectory> SharedState for FrontEnd<D> {
    fn sqs_service(&self) -> Option<&AnyService> {
        self.sqs_service.as_ref()
    }

    fn audit(&self) -> &AuditTrail {
        &self.audit
    }

    fn account_id(&self) -> &str {
        &self.account_id
    }

    async fn replace_hash(&self, user: &str, hash: String) -> Result<(), ApiError> {
        // Who was deleted meanwhile is not made again, unless it happens between these two.
        let known = self.directory.user(user).await?.ok_or(ApiError::Unauthorized)?;
        let changed = UserRecord { password_hash: hash.into(), ..known };
        self.directory.put_user(changed).await?;
        Ok(())
    }
}

impl<D: IdentityDirectory> Users for FrontEnd<D> {
    fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    fn loopback_users(&self) -> &[String] {
        &self.loopback_users
    }

    fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_deref()
    }

    async fn look_up(&self, name: String) -> Result<Option<KnownUser>, ApiError> {
        let Some(user) = self.directory.user(&name).await? else { return Ok(None) };
        let permissions = self.directory.permissions().await?;
        let own = permissions.iter().filter(|permission| *permission.user == *name);
        let vhosts = own.map(|permission| self.vhost_of(&permission.account).to_owned()).collect();
        Ok(Some(KnownUser { hash: user.password_hash, tags: user.tags, vhosts }))
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
