//! The routes of a broker, and its API as a whole.

mod bindings;
pub(crate) mod channels;
pub(crate) mod connections;
mod definitions;
mod exchanges;
pub(crate) mod guard;
mod health;
mod later;
mod listing;
mod messages;
pub(crate) mod nodes;
pub(crate) mod overview;
mod queues;
mod rates;
mod routes;
mod topic_permissions;
mod vhosts;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use prometheus_client::collector::Collector;
use quelea_net::HostNames;
use quelea_node::{Authenticator, CoreHandle};
use quelea_openapi::{Route, with_state};
use quelea_sqs_protocol::AnyService;
use quelea_sqs_server::SqsCounters;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use self::definitions::{Definitions, ImportError};
pub(crate) use self::routes::of_access;
use crate::audit::AuditTrail;
use crate::console;
use crate::counters::ApiCounters;
use crate::error::unknown_path;
use crate::limits::{BODY_BYTES_MAX, GETS_MAX};
use crate::metrics;
use crate::sampler;
use crate::server::{self, HttpLimits, Shared};
use crate::state::{ApiState, Listener};
use crate::tokens::{TokenKey, Tokens};
use crate::v1;
use crate::web_pages::WebPages;

/// What [`serve`] needs to know.
#[derive(Clone)]
pub struct HttpSettings {
    /// Users that may log in from loopback only.
    pub loopback_users: Vec<String>,
    /// By which tokens are sealed; without it there are none.
    pub token_key: Option<TokenKey>,
    /// The node's name in answers, such as `quelea@localhost`.
    pub node: String,
    /// The account that virtual host `/` is.
    pub account_id: String,
    /// Where the log is: free space is that of its file system.
    pub data_dir: PathBuf,
    /// What the SQS front counts, if there is one.
    pub sqs: Option<Arc<SqsCounters>>,
    /// What other fronts count, for the metrics page.
    pub collectors: Vec<Arc<dyn Collector>>,
    /// What clients may use.
    pub limits: HttpLimits,
    /// Names by which it may be asked for.
    pub hosts: HostNames,
    /// How often samples of the counters are taken.
    pub sample_interval: Duration,
    /// Where the broker listens, the API included.
    pub listeners: Vec<Listener>,
    /// What the elastic queues' directory answers below `/api/elastic` and `/quelea/v1/elastic`.
    pub elastic: Vec<Route>,
    /// What CMQ's front answers below `/quelea/v1`.
    pub datagram: Vec<Route>,
    /// What is answered of replicated queues below `/quelea/v1`.
    pub replicated: Vec<Route>,
    /// Who changed what; the SQS service tells it, too.
    pub audit: Arc<AuditTrail>,
    /// The classes of queue that there are, such as `ordered`.
    pub queue_classes: Vec<&'static str>,
    /// The service of the SQS interface, if there is one.
    pub sqs_service: Option<AnyService>,
}

/// What other rooms answer, for users whose tags allow it.
pub(crate) struct FrontRoutes {
    elastic: Vec<Route>,
    datagram: Vec<Route>,
    replicated: Vec<Route>,
}

/// Serves the management API until `stop` resolves; answers what is under way before it returns.
pub async fn serve(
    listener: TcpListener,
    core: CoreHandle,
    authenticator: Authenticator,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (api, fronts, served) = ApiState::new(core, authenticator, settings);
    let access = with_state(of_access(), &api);
    served.run(listener, router(api, fronts, access), stop).await;
}

/// Imports definitions of a file, as `POST /api/definitions` does.
///
/// # Errors
/// [`ImportError`]: they contradict what stands, a limit is met, or the broker stops.
pub async fn import_definitions(
    core: CoreHandle,
    authenticator: Authenticator,
    settings: HttpSettings,
    file: &str,
    definitions: Definitions,
) -> Result<(), ImportError> {
    let (api, ..) = ApiState::new(core, authenticator, settings);
    api.audit.note_import_at_start(file, definitions.import(&api).await?);
    Ok(())
}

/// What is left of the settings when the handlers have what they share.
pub(crate) struct ServedApi {
    api: ApiState,
    sample_interval: Duration,
    limits: HttpLimits,
    hosts: HostNames,
    counters: Arc<ApiCounters>,
}

impl ApiState {
    pub(crate) fn new(
        core: CoreHandle,
        authenticator: Authenticator,
        settings: HttpSettings,
    ) -> (Self, FrontRoutes, ServedApi) {
        let HttpSettings { elastic, datagram, replicated, limits, hosts, sample_interval, .. } =
            settings;
        let counters = Arc::<ApiCounters>::default();
        let api = Self {
            core,
            authenticator,
            tokens: settings.token_key.map(Tokens::new).map(Arc::new),
            loopback_users: settings.loopback_users.into(),
            node: settings.node.into(),
            account_id: settings.account_id.into(),
            data_dir: settings.data_dir.into(),
            sqs: settings.sqs,
            queue_classes: settings.queue_classes.into(),
            sqs_service: settings.sqs_service,
            collectors: settings.collectors.into(),
            counters: Arc::clone(&counters),
            listeners: settings.listeners.into(),
            started: Instant::now(),
            audit: settings.audit,
            object_pages: Arc::new(Semaphore::new(1)),
            gets: Arc::new(Semaphore::new(GETS_MAX)),
            history: Arc::default(),
            recent: Arc::default(),
            imports: Arc::new(Semaphore::new(1)),
        };
        let fronts = FrontRoutes { elastic, datagram, replicated };
        (api.clone(), fronts, ServedApi { api, sample_interval, limits, hosts, counters })
    }
}

impl ServedApi {
    pub(crate) async fn run(
        self,
        listener: TcpListener,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let pages = WebPages::new(self.hosts);
        let audit = Arc::clone(&self.api.audit);
        let trail = Arc::clone(&audit);
        let keep = move |change| trail.note_topology(change);
        // A core that has stopped changes nothing any more.
        let _ = self.api.core.call(|core| core.keep_topology_changes(keep)).await;
        let shared = Shared::new(router, self.limits, pages, self.counters, audit);
        let sampler = tokio::spawn(sampler::run(self.api, self.sample_interval));
        server::serve(listener, shared, stop).await;
        sampler.abort();
    }
}

/// Returns the routes of a broker's whole API, `access` being what is about users, and what makes
/// and deletes virtual hosts.
pub(crate) fn router(api: ApiState, fronts: FrontRoutes, access: Vec<Route>) -> Router {
    let elastic = guard::guarded(fronts.elastic, &api);
    let datagram = guard::guarded(fronts.datagram, &api);
    let replicated = guard::guarded(fronts.replicated, &api);
    let mut rabbitmq = with_state(routes::of_broker(), &api);
    rabbitmq.extend(access);
    let sections = v1::Sections::of_broker(&api, elastic.clone(), datagram, replicated);
    let v1 = sections.router(&rabbitmq);
    let broker = quelea_openapi::router(rabbitmq)
        .with_state(())
        .merge(later::routes().with_state(api.clone()));
    let elastic = quelea_openapi::router(elastic).with_state(());
    Router::new()
        .merge(console::routes())
        .route("/metrics", get(metrics::text))
        .route("/metrics/per-object", get(metrics::per_object))
        .route("/metrics/detailed", get(metrics::detailed))
        .with_state(api)
        .nest("/quelea/v1", v1)
        .nest("/api", broker.nest("/elastic", elastic))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}
