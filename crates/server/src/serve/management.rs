//! The management API and the metrics page, as `serve` starts and stops them: on its own thread's runtime.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use quelea_cmq_front::DatagramCounters;
use quelea_elastic_directory::DirectoryHandle;
use quelea_management::{
    AuditTrail, Definitions, HttpLimits, HttpSettings, ImportError, Listener, TokenKey,
};
use quelea_net::HostNames;
use quelea_net::ListenError;
#[cfg(feature = "cassandra")]
use quelea_node::Authenticator;
use quelea_node::Node;
use quelea_openapi::Route;
use quelea_sqs_protocol::AnyService;
use quelea_sqs_server::SqsCounters;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

#[cfg(feature = "cassandra")]
use super::cassandra::Cluster;
use super::cassandra::MirroredIdentity;
#[cfg(feature = "cassandra")]
use super::sqs::Observers;
use crate::config::{Config, Http, Store};

/// How long it may take to answer what it was asked before the stop.
const STOP_MAX: Duration = Duration::from_secs(1);

/// In the data directory: by which the API's tokens are sealed.
const TOKEN_KEY_FILE: &str = "management.key";

/// The running API.
pub(crate) struct Management {
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What the API shows beside the broker's own.
pub(crate) struct Shown {
    pub(crate) sqs: Option<Arc<SqsCounters>>,
    pub(crate) audit: Arc<AuditTrail>,
    pub(crate) others: Vec<Arc<dyn Collector>>,
    /// Where the others listen.
    pub(crate) listeners: Vec<Listener>,
    /// The elastic queues' directory, if there is one.
    pub(crate) directory: Option<DirectoryHandle>,
    /// What CMQ's front counts, if there is one.
    pub(crate) datagram: Option<Arc<DatagramCounters>>,
    /// The SQS interface's service, if there is one.
    pub(crate) sqs_service: Option<AnyService>,
    /// What is shown of replicated queues, and whether there are any.
    pub(crate) replicated: Vec<Route>,
    pub(crate) has_replicated: bool,
}

impl Shown {
    /// Returns the classes of queue that there are at a broker.
    fn queue_classes(&self) -> Vec<&'static str> {
        let others = [
            ("replicated", self.has_replicated),
            ("elastic", self.directory.is_some()),
            ("datagram", self.datagram.is_some()),
        ];
        let present = others.into_iter().filter(|(_, is_present)| *is_present);
        [("ordered", true)].into_iter().chain(present).map(|(class, _)| class).collect()
    }
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagementError {
    #[error("cannot open the key of tokens {}: {source}", path.display())]
    TokenKey { path: PathBuf, source: std::io::Error },
    #[error("http.listen: {0}")]
    Listen(#[from] ListenError),
    #[error("cannot register the management listener: {0}")]
    Register(std::io::Error),
}

/// Why definitions are not imported at the start.
#[derive(Debug, thiserror::Error)]
#[error("definitions: {}: {problem}", file.display())]
pub(crate) struct DefinitionsError {
    file: PathBuf,
    problem: String,
    is_of_settings: bool,
}

impl DefinitionsError {
    /// Returns whether the next start fails too, until the file or the setting is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        self.is_of_settings
    }

    fn of_settings(file: &Path, problem: String) -> Self {
        Self { file: file.to_owned(), problem, is_of_settings: true }
    }

    fn of_import(file: &Path, error: ImportError) -> Self {
        let ImportError { reason: problem, is_of_document: is_of_settings } = error;
        Self { file: file.to_owned(), problem, is_of_settings }
    }
}

/// What has to be there before the log is opened: an address that is taken shows early.
pub(crate) struct Prepared(TcpListener);

/// Listens, unless the API is not wanted.
pub(crate) fn listen(config: &Http) -> Result<Option<Prepared>, ManagementError> {
    let listener = config.enabled.then(|| quelea_net::listen(&config.listen)).transpose()?;
    Ok(listener.map(Prepared))
}

impl Prepared {
    /// Serves on the calling thread's runtime.
    pub(crate) fn start(
        self,
        node: &Node,
        identity: Option<MirroredIdentity>,
        config: &Config,
        shown: Shown,
        connections_max: usize,
    ) -> Result<Management, ManagementError> {
        let queue_classes = shown.queue_classes();
        let mut settings = settings(config, shown.sqs, connections_max);
        settings.queue_classes = queue_classes;
        settings.audit = shown.audit;
        settings.collectors = shown.others;
        settings.listeners = shown.listeners;
        let own = self.0.local_addr().map_err(ManagementError::Register)?;
        settings.listeners.push(Listener { protocol: "http", address: own });
        let key = node.data_dir().join(TOKEN_KEY_FILE);
        let opened = TokenKey::open(&key);
        let opened = opened.map_err(|source| ManagementError::TokenKey { path: key, source });
        settings.token_key = Some(opened?);
        settings.elastic = quelea_elastic_directory::routes(shown.directory);
        settings.datagram = quelea_cmq_front::routes(shown.datagram);
        settings.sqs_service = shown.sqs_service;
        settings.replicated = shown.replicated;
        let (core, authenticator) = (node.handle().clone(), node.authenticator().clone());
        match identity {
            None => self.run(|listener, stopped| async move {
                quelea_management::serve(listener, core, authenticator, settings, stopped).await;
            }),
            #[cfg(feature = "cassandra")]
            Some(identity) => self.run(|listener, stopped| async move {
                let node = (core, authenticator);
                quelea_management::serve_with_shared_identity(
                    listener, node, identity, settings, stopped,
                )
                .await;
            }),
            #[cfg(not(feature = "cassandra"))]
            Some(identity) => match identity {},
        }
    }

    /// Refuses all calls on this address, on the calling thread's runtime, while Cassandra is away.
    #[cfg(feature = "cassandra")]
    pub(crate) fn start_away(
        &self,
        reason: &'static str,
        config: &Config,
        connections_max: usize,
    ) -> Result<Management, ManagementError> {
        let again = Self(self.0.try_clone().map_err(ManagementError::Register)?);
        let settings = settings(config, None, connections_max);
        again.run(|listener, stopped| async move {
            quelea_management::serve_away(listener, reason, settings, stopped).await;
        })
    }

    /// Serves the API of a front-end without a broker, on the calling thread's runtime.
    #[cfg(feature = "cassandra")]
    pub(crate) fn start_front_end(
        self,
        cluster: &Cluster,
        service: AnyService,
        authenticator: Authenticator,
        config: &Config,
        observers: &Observers,
        connections_max: usize,
    ) -> Result<Management, ManagementError> {
        let counted = Some(Arc::clone(&observers.counters));
        let mut settings = settings(config, counted, connections_max);
        settings.audit = Arc::clone(&observers.audit);
        settings.collectors.push(cluster.collector());
        settings.sqs_service = Some(service);
        settings.replicated = super::cassandra::routes(Some(cluster), config);
        let identity = cluster.identity().clone();
        self.run(|listener, stopped| async move {
            quelea_management::serve_front_end(
                listener,
                identity,
                authenticator,
                settings,
                stopped,
            )
            .await;
        })
    }

    fn run<F>(
        self,
        serve: impl FnOnce(tokio::net::TcpListener, Stopped) -> F,
    ) -> Result<Management, ManagementError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = self.0.local_addr().map_err(ManagementError::Register)?.to_string();
        let listener =
            tokio::net::TcpListener::from_std(self.0).map_err(ManagementError::Register)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped: Stopped = Box::pin(async move {
            // An error is the sender's end, which means the same.
            let _ = stopped.await;
        });
        Ok(Management { address, stop, task: tokio::spawn(serve(listener, stopped)) })
    }
}

/// Refuses definitions where half of what they say would be Cassandra's.
pub(crate) fn check_definitions(config: &Config) -> Result<(), DefinitionsError> {
    let is_shared = config.store == Store::Cassandra || !config.cassandra.nodes.is_empty();
    if config.definitions.as_os_str().is_empty() || !is_shared {
        return Ok(());
    }
    let problem = "not supported yet with users in Cassandra (cassandra.nodes)".to_owned();
    Err(DefinitionsError::of_settings(&config.definitions, problem))
}

/// Reads the definitions that the configuration names, before anything is locked, bound or opened.
pub(crate) fn read_definitions(config: &Config) -> Result<Option<Definitions>, DefinitionsError> {
    let file = &config.definitions;
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let unreadable = |error: std::io::Error| DefinitionsError::of_settings(file, error.to_string());
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let definitions = Definitions::parse(&text);
    definitions.map(Some).map_err(|error| DefinitionsError::of_import(file, error))
}

/// Imports the definitions that were read.
pub(crate) async fn import_definitions(
    node: &Node,
    config: &Config,
    definitions: Option<Definitions>,
    audit: &Arc<AuditTrail>,
) -> Result<(), DefinitionsError> {
    let Some(definitions) = definitions else { return Ok(()) };
    let file = &config.definitions;
    let (core, authenticator) = (node.handle().clone(), node.authenticator().clone());
    let mut settings = settings(config, None, 0);
    settings.audit = Arc::clone(audit);
    let path = file.to_string_lossy();
    quelea_management::import_definitions(core, authenticator, settings, &path, definitions)
        .await
        .map_err(|error| DefinitionsError::of_import(file, error))
}

/// Resolves when the API is to stop.
type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

fn settings(
    config: &Config,
    sqs: Option<Arc<SqsCounters>>,
    connections_max: usize,
) -> HttpSettings {
    HttpSettings {
        loopback_users: config.access.loopback_users.clone(),
        token_key: None,
        node: "quelea@localhost".to_owned(),
        account_id: config.sqs.account_id.clone(),
        data_dir: config.data_dir.clone(),
        sqs,
        collectors: Vec::new(),
        limits: HttpLimits {
            connections_max,
            requests_per_s_max: config.http.requests_per_s_max,
            request_max: Duration::from_millis(config.http.request_timeout_ms),
        },
        sample_interval: Duration::from_millis(config.http.sample_interval_ms),
        hosts: HostNames::new(&config.http.hosts),
        listeners: Vec::new(),
        elastic: Vec::new(),
        datagram: Vec::new(),
        sqs_service: None,
        audit: Arc::default(),
        queue_classes: Vec::new(),
        replicated: Vec::new(),
    }
}

impl Management {
    /// Returns where it listens.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Stops it; connections that are still busy then are left open.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        match tokio::time::timeout(STOP_MAX, self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the management API broke"),
            Err(_) => tracing::debug!("management connections are left open"),
        }
    }
}
