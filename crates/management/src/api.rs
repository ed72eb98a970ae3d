//! The routes, and what all of them share.

pub(crate) mod access_keys;
pub(crate) mod accounts;
mod bindings;
mod connections;
mod definitions;
mod elastic;
mod exchanges;
mod health;
mod later;
mod list_query;
mod listed;
pub(crate) mod listing;
mod messages;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod permissions;
mod queues;
mod rates;
pub(crate) mod users;
mod vhosts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use prometheus_client::collector::Collector;
use quelea_broker::access::{Permission, TopicPermission};
use quelea_broker::report::{
    BindingReport, ChannelReport, ConnectionReport, ConsumerReport, ExchangeReport, QueueReport,
    VhostReport,
};
use quelea_model::Table;
use quelea_net::HostNames;
use quelea_node::{Authenticator, CoreHandle};
use quelea_openapi::Route;
use quelea_sqs_server::SqsCounters;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use self::listing::{list, list_all, list_in};
use crate::console;
use crate::counters::ApiCounters;
use crate::error::{ApiError, unknown_path};
use crate::json::to_table;
use crate::limits::{BODY_BYTES_MAX, DEFINITIONS_BYTES_MAX, GETS_MAX};
use crate::metrics;
use crate::sampler;
use crate::server::{self, HttpLimits, Shared};
use crate::state::{ApiState, Listener};
use crate::v1;
use crate::web_pages::WebPages;

/// What [`serve`] needs to know.
#[derive(Clone)]
pub struct HttpSettings {
    /// Users that may log in from loopback only.
    pub loopback_users: Vec<String>,
    /// The node's name in answers, such as `quelea@localhost`.
    pub node: String,
    /// The account that virtual host `/` is.
    pub account_id: String,
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
}

/// Serves the management API until `stop` resolves; answers what is under way before it returns.
pub async fn serve(
    listener: TcpListener,
    core: CoreHandle,
    authenticator: Authenticator,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (api, elastic, served) = ApiState::new(core, authenticator, settings);
    let access = vhost_routes().merge(access_routes()).merge(definition_routes());
    let access = access.with_state(api.clone());
    served.run(listener, routes(api, elastic, access), stop).await;
}

/// Imports definitions, given as JSON, as `POST /api/definitions` does.
///
/// # Errors
/// A text that says what is wrong with them and where, or that the broker stops.
pub async fn import_definitions(
    core: CoreHandle,
    authenticator: Authenticator,
    settings: HttpSettings,
    document: &str,
) -> Result<(), String> {
    let document = serde_json::from_str(document).map_err(|error| error.to_string())?;
    let (api, ..) = ApiState::new(core, authenticator, settings);
    definitions::import(&api, &document, None, false).await.map_err(|error| error.reason())
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
    ) -> (Self, Vec<Route>, ServedApi) {
        let HttpSettings { elastic, limits, hosts, sample_interval, .. } = settings;
        let counters = Arc::<ApiCounters>::default();
        let api = Self {
            core,
            authenticator,
            loopback_users: settings.loopback_users.into(),
            node: settings.node.into(),
            account_id: settings.account_id.into(),
            sqs: settings.sqs,
            collectors: settings.collectors.into(),
            counters: Arc::clone(&counters),
            listeners: settings.listeners.into(),
            started: Instant::now(),
            audit: Arc::default(),
            gets: Arc::new(Semaphore::new(GETS_MAX)),
            history: Arc::default(),
            imports: Arc::new(Semaphore::new(1)),
        };
        (api.clone(), elastic, ServedApi { api, sample_interval, limits, hosts, counters })
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
        let shared = Shared::new(router, self.limits, pages, self.counters, audit);
        let sampler = tokio::spawn(sampler::run(self.api, self.sample_interval));
        server::serve(listener, shared, stop).await;
        sampler.abort();
    }
}

/// All of a broker's API, `access` being what is about users, and what makes and deletes virtual hosts.
pub(crate) fn routes(api: ApiState, elastic: Vec<Route>, access: Router) -> Router {
    let elastic = elastic::guarded(elastic, &api);
    let v1 = v1::router(&api, elastic.clone());
    let elastic = quelea_openapi::router(elastic).with_state(());
    let broker = node_routes()
        .merge(object_routes())
        .merge(topic_permission_routes())
        .merge(later::routes());
    Router::new()
        .merge(console::routes())
        .route("/metrics", get(metrics::text))
        .route("/metrics/per-object", get(metrics::per_object))
        .route("/metrics/detailed", get(metrics::detailed))
        .with_state(api.clone())
        .nest("/quelea/v1", v1)
        .nest("/api", broker.nest("/elastic", elastic).with_state(api).merge(access))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

fn node_routes() -> Router<ApiState> {
    Router::new()
        .route("/overview", get(overview::overview))
        .route("/nodes", get(nodes::list))
        .route("/nodes/{name}", get(nodes::one))
        .route("/cluster-name", get(nodes::cluster_name))
        .route("/extensions", get(nodes::extensions))
        .route("/audit", get(nodes::audit))
        .route("/auth", get(nodes::auth))
        .route("/auth/attempts/{node}", get(nodes::auth_attempts))
        .route("/whoami", get(users::whoami))
        .route("/aliveness-test/{vhost}", get(health::aliveness))
        .route("/healthchecks/node", get(health::alarms))
        .route("/healthchecks/node/{node}", get(health::alarms_of))
        .route("/health/checks/alarms", get(health::alarms))
        .route("/health/checks/local-alarms", get(health::alarms))
        .route("/health/checks/unreadable-messages", get(health::unreadable_messages))
        .route("/health/checks/virtual-hosts", get(health::alive))
        .route("/health/checks/port-listener/{port}", get(health::port_listener))
        .route("/health/checks/protocol-listener/{protocol}", get(health::protocol_listener))
        .route("/health/checks/certificate-expiration/{within}/{unit}", get(health::alive))
        .route("/health/checks/node-is-mirror-sync-critical", get(health::alive))
        .route("/health/checks/node-is-quorum-critical", get(health::alive))
        .route("/health/checks/is-in-service", get(health::alive))
        .route("/connections", get(list::<ConnectionReport>))
        .route("/connections/{name}", get(connections::one).delete(connections::close))
        .route(
            "/connections/username/{user}",
            get(connections::of_user).delete(connections::close_of_user),
        )
        .route("/vhosts", get(list::<VhostReport>))
        .route("/vhosts/{vhost}", get(vhosts::one))
        .route("/connections/{name}/channels", get(connections::channels_of))
        .route("/vhosts/{vhost}/connections", get(list_in::<ConnectionReport>))
        .route("/vhosts/{vhost}/channels", get(list_in::<ChannelReport>))
        .route("/channels", get(list::<ChannelReport>))
        .route("/channels/{name}", get(connections::one_channel))
        .route("/consumers", get(list::<ConsumerReport>))
        .route("/consumers/{vhost}", get(list_in::<ConsumerReport>))
}

fn object_routes() -> Router<ApiState> {
    Router::new()
        .route("/queues", get(list::<QueueReport>))
        .route("/queues/{vhost}", get(list_in::<QueueReport>))
        .route(
            "/queues/{vhost}/{name}",
            get(queues::one).put(queues::declare).delete(queues::delete),
        )
        .route("/queues/{vhost}/{name}/contents", delete(queues::purge))
        .route("/queues/{vhost}/{name}/get", post(messages::get))
        .route("/queues/{vhost}/{name}/actions", post(nodes::queue_action))
        .route("/queues/{vhost}/{name}/bindings", get(bindings::of_queue))
        .route("/exchanges", get(list::<ExchangeReport>))
        .route("/exchanges/{vhost}", get(list_in::<ExchangeReport>))
        .route(
            "/exchanges/{vhost}/{name}",
            get(exchanges::one).put(exchanges::declare).delete(exchanges::delete),
        )
        .route("/exchanges/{vhost}/{name}/publish", post(messages::publish))
        .route("/exchanges/{vhost}/{name}/bindings/source", get(bindings::from_exchange))
        .route("/exchanges/{vhost}/{name}/bindings/destination", get(bindings::to_exchange))
        .route("/bindings", get(list::<BindingReport>))
        .route("/bindings/{vhost}", get(list_in::<BindingReport>))
        .route(
            "/bindings/{vhost}/e/{source}/q/{destination}",
            get(bindings::queue_pair).post(bindings::bind_queue),
        )
        .route(
            "/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}",
            get(bindings::one_of_queue).delete(bindings::unbind_queue),
        )
        .route(
            "/bindings/{vhost}/e/{source}/e/{destination}",
            get(bindings::exchange_pair).post(bindings::bind_exchange),
        )
        .route(
            "/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}",
            get(bindings::one_of_exchange).delete(bindings::unbind_exchange),
        )
}

fn vhost_routes() -> Router<ApiState> {
    Router::new().route("/vhosts/{vhost}", put(vhosts::put).delete(vhosts::delete))
}

fn definition_routes() -> Router<ApiState> {
    let large = DefaultBodyLimit::max(DEFINITIONS_BYTES_MAX);
    Router::new()
        .route("/definitions", get(definitions::all).post(definitions::import_all))
        .route("/definitions/{vhost}", get(definitions::of_vhost).post(definitions::import_in))
        .layer(large)
}

fn topic_permission_routes() -> Router<ApiState> {
    Router::new()
        .route("/topic-permissions", get(list_all::<TopicPermission>))
        .route("/users/{user}/topic-permissions", get(permissions::topics_of_user))
        .route("/vhosts/{vhost}/topic-permissions", get(permissions::topics_of_vhost))
        .route(
            "/topic-permissions/{vhost}/{user}",
            get(permissions::one_topic)
                .put(permissions::put_topic)
                .delete(permissions::delete_topic),
        )
}

fn access_routes() -> Router<ApiState> {
    Router::new()
        .route("/vhosts/{vhost}/permissions", get(permissions::of_vhost))
        .route("/accounts", get(accounts::list))
        .route("/accounts/{account}", put(accounts::put).delete(accounts::delete))
        .route("/access-keys", get(access_keys::list).post(access_keys::create))
        .route(
            "/access-keys/{id}",
            get(access_keys::one).put(access_keys::enable).delete(access_keys::delete),
        )
        .route("/users", get(users::list))
        .route("/users/without-permissions", get(users::without_permissions))
        .route("/users/bulk-delete", post(users::bulk_delete))
        .route("/users/{user}", get(users::one).put(users::put).delete(users::delete))
        .route("/users/{user}/permissions", get(permissions::of_user))
        .route("/permissions", get(list_all::<Permission>))
        .route(
            "/permissions/{vhost}/{user}",
            get(permissions::one).put(permissions::put).delete(permissions::delete),
        )
}

/// What is answered with JSON.
pub(crate) type JsonAnswer = Result<Json<Value>, ApiError>;

/// What is answered with a status alone.
pub(crate) type StatusAnswer = Result<StatusCode, ApiError>;

/// A field of a request's object: absent is `None`, another type is an error with its name.
pub(crate) fn text_field<'a>(body: &'a Value, field: &str) -> Result<Option<&'a str>, ApiError> {
    match &body[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(ApiError::bad(format!("{field} must be a string, it is {other}"))),
    }
}

/// A text that has to be there.
pub(crate) fn required_field<'a>(body: &'a Value, field: &str) -> Result<&'a str, ApiError> {
    text_field(body, field)?.ok_or_else(|| ApiError::bad(format!("{field} is missing")))
}

/// A boolean; RabbitMQ's tools also send it as text.
pub(crate) fn flag_field(body: &Value, field: &str, default: bool) -> Result<bool, ApiError> {
    match &body[field] {
        Value::Null => Ok(default),
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        other => Err(ApiError::bad(format!("{field} must be true or false, it is {other}"))),
    }
}

/// The `arguments` of a queue, an exchange or a binding; none if they are absent.
pub(crate) fn arguments_field(body: &Value) -> Result<Table, ApiError> {
    match &body["arguments"] {
        Value::Null => Ok(Table::new()),
        Value::Object(object) => to_table(object).map_err(ApiError::bad),
        _ => Err(ApiError::bad("arguments must be an object")),
    }
}
