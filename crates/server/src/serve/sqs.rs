//! The SQS interface over the broker in this process, as `serve` starts and stops it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use quelea_management::AuditTrail;
use quelea_net::{HostNames, ListenError};
use quelea_node::Node;
use quelea_sqs_embedded::{EmbeddedSettings, EmbeddedStore, FrontError};
#[cfg(feature = "cassandra")]
use quelea_sqs_protocol::QueueClass;
use quelea_sqs_protocol::{AnyService, ServiceSettings};
use quelea_sqs_server::{AllowedOrigins, BODIES_BYTES_MAX, SqsCounters, SqsServer, SqsSettings};

#[cfg(feature = "cassandra")]
use super::cassandra::CassandraError;
use super::cassandra::{Cluster, HeldNames};
#[cfg(feature = "cassandra")]
use super::cassandra::{FrontStore, StoreOfBoth};
use crate::config::{Config, Sqs};

/// The running interface.
pub(crate) struct SqsFront {
    server: SqsServer,
}

/// What is notified of what the interface does.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) counters: Arc<SqsCounters>,
    pub(crate) audit: Arc<AuditTrail>,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqsError {
    #[error("sqs.listen: {0}")]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Start(#[from] FrontError),
    #[cfg(feature = "cassandra")]
    #[error("sqs.listen: {0}")]
    Again(std::io::Error),
    #[cfg(feature = "cassandra")]
    #[error(transparent)]
    Cassandra(#[from] CassandraError),
}

/// The queues that are served beside a node, and who may use them.
pub(crate) enum Store {
    /// The node's.
    Node(EmbeddedStore),
    /// Those and replicated ones.
    #[cfg(feature = "cassandra")]
    Both(StoreOfBoth),
}

impl Store {
    /// Returns the store of a node, with replicated queues if there is a cluster.
    pub(crate) fn of(node: &Node, beside: Option<(&Cluster, HeldNames)>, config: &Config) -> Self {
        let settings = EmbeddedSettings {
            account_id: config.sqs.account_id.as_str().into(),
            cooldown_ms: config.sqs.cooldown_ms,
        };
        let store = EmbeddedStore::new(node.handle(), settings);
        match beside {
            None => Self::Node(store),
            #[cfg(feature = "cassandra")]
            Some((cluster, held)) => Self::Both(StoreOfBoth::new(cluster, store, held)),
            #[cfg(not(feature = "cassandra"))]
            Some((cluster, _)) => match *cluster {},
        }
    }

    /// Returns the service on the store, for other fronts than this.
    pub(crate) fn service(&self, config: &Config, observers: &Observers) -> AnyService {
        let settings = service_settings(config, observers);
        match self {
            Self::Node(store) => store.service(settings),
            #[cfg(feature = "cassandra")]
            Self::Both(store) => store.service(settings),
        }
    }
}

/// Returns what the service goes by beside a node, for the management API.
fn service_settings(config: &Config, observers: &Observers) -> ServiceSettings {
    let changes = observers.audit.changes_by("management");
    let (region, default_class) = (config.sqs.region.as_str().into(), config.sqs.default_class);
    ServiceSettings { region, default_class, changes }
}

/// Returns the service of a front-end alone, whose queues are all of one class.
#[cfg(feature = "cassandra")]
pub(crate) fn service_alone(
    store: &FrontStore,
    config: &Config,
    observers: &Observers,
) -> AnyService {
    let default_class = QueueClass::Replicated;
    store.service(ServiceSettings { default_class, ..service_settings(config, observers) })
}

/// What has to be there before the log is opened: addresses that are taken show early.
pub(crate) struct Prepared(Vec<TcpListener>);

/// Listens, unless the interface is not wanted.
pub(crate) fn listen(config: &Sqs) -> Result<Option<Prepared>, SqsError> {
    if !config.enabled {
        return Ok(None);
    }
    let listeners = config.listen.iter().map(|address| quelea_net::listen(address));
    Ok(Some(Prepared(listeners.collect::<Result<_, _>>()?)))
}

impl Prepared {
    /// Returns where it listens.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().filter_map(|listener| listener.local_addr().ok())
    }

    /// Refuses all calls on these addresses, while Cassandra is away.
    #[cfg(feature = "cassandra")]
    pub(crate) fn start_away(
        &self,
        config: &Config,
        connections_max: usize,
    ) -> Result<SqsFront, SqsError> {
        let again = self.0.iter().map(TcpListener::try_clone).collect::<Result<_, _>>();
        let listeners = again.map_err(SqsError::Again)?;
        let settings = settings(config, &Observers::default(), connections_max);
        let server = quelea_cassandra_front::serve_away(listeners, &settings);
        Ok(SqsFront { server: server.map_err(CassandraError::from)? })
    }

    /// Serves what is in the store.
    pub(crate) async fn start(
        self,
        store: &Store,
        config: &Config,
        observers: &Observers,
        connections_max: usize,
    ) -> Result<SqsFront, SqsError> {
        let Self(listeners) = self;
        let settings = settings(config, observers, connections_max);
        let server = match store {
            Store::Node(store) => quelea_sqs_embedded::serve(store, listeners, &settings).await?,
            #[cfg(feature = "cassandra")]
            Store::Both(store) => {
                let served = quelea_cassandra_front::serve_both(store, listeners, &settings).await;
                served.map_err(CassandraError::from)?
            }
        };
        Ok(SqsFront { server })
    }

    /// Serves replicated queues alone; with `sqs.threads` 0 on the thread that speaks with Cassandra.
    #[cfg(feature = "cassandra")]
    pub(crate) fn start_alone(
        self,
        store: &FrontStore,
        cluster: &Cluster,
        config: &Config,
        observers: &Observers,
        connections_max: usize,
    ) -> Result<SqsFront, SqsError> {
        let Self(listeners) = self;
        let mut settings = settings(config, observers, connections_max);
        settings.default_class = QueueClass::Replicated;
        let server = quelea_cassandra_front::serve_alone(store, cluster, listeners, &settings);
        Ok(SqsFront { server: server.map_err(CassandraError::from)? })
    }
}

fn settings(config: &Config, observers: &Observers, connections_max: usize) -> SqsSettings {
    let sqs = &config.sqs;
    SqsSettings {
        threads: sqs.threads,
        account: sqs.account_id.as_str().into(),
        region: sqs.region.as_str().into(),
        default_class: sqs.default_class,
        verify: sqs.verify,
        hosts: HostNames::new(&sqs.hosts),
        origins: AllowedOrigins::new(&sqs.origins),
        connections_max,
        bodies_bytes_max: BODIES_BYTES_MAX,
        idle_max: Duration::from_millis(sqs.idle_timeout_ms),
        request_max: Duration::from_millis(sqs.request_timeout_ms),
        counters: Arc::clone(&observers.counters),
        changes: observers.audit.changes_by("SQS"),
    }
}

impl SqsFront {
    /// Returns where it listens, separated by commas.
    pub(crate) fn addresses(&self) -> String {
        let addresses: Vec<_> = self.server.addresses().iter().map(ToString::to_string).collect();
        addresses.join(",")
    }

    /// Stops it, while the broker can still answer what is under way.
    pub(crate) async fn stop(self) {
        super::stop_on_thread("the SQS interface", move || self.server.stop()).await;
    }
}
