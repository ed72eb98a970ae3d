//! `quelea serve` with `store = "cassandra"`: SQS and the management API over replicated queues, without a broker.

use std::time::Instant;

use quelea_node::{Authenticator, Stopped, hash_password};
use quelea_sqs_protocol::Fault;
use sd_notify::NotifyState;

use super::cassandra::{self, CassandraError, Cluster};
use super::connection_limits::ConnectionLimits;
use super::management::Management;
use super::reload::Reload;
use super::sqs::SqsFront;
use super::waiting::{self, Listening};
use super::{ServeError, management, notify_service_manager, or_dash, print_line, sqs, system};
use crate::config::Config;
use crate::signals::Signals;

/// Serves until a signal comes.
pub(super) async fn serve(
    config: &Config,
    signals: &mut Signals,
    reload: &mut Reload<'_>,
    started: Instant,
) -> Result<Stopped, ServeError> {
    let prepared = (management::listen(&config.http)?, sqs::listen(&config.sqs)?);
    let limits = ConnectionLimits::of(config, quelea_node::raise_file_limit());
    let listening = Listening { management: prepared.0.as_ref(), sqs: prepared.1.as_ref() };
    let bootstrap = async |cluster: &Cluster| bootstrap(cluster, config).await;
    let cluster = tokio::select! {
        connected = waiting::connect(config, limits, listening, bootstrap) => connected?.ok_or(CassandraError::NoNodes)?,
        // Cassandra may be long in answering.
        signal = signals.next() => {
            tracing::info!(signal = signal.name, "stopped before Cassandra answered");
            return Ok(Stopped::Clean);
        }
    };
    let authenticator = Authenticator::start().map_err(system("get random bytes"))?;
    let store = cassandra::FrontStore::new(&cluster);
    let observers = sqs::Observers::default();
    let service = sqs::service_alone(&store, config, &observers);
    let (management, sqs) = prepared;
    let management = management
        .map(|prepared| {
            prepared.start_front_end(
                &cluster,
                service,
                authenticator,
                config,
                &observers,
                limits.http,
            )
        })
        .transpose()?;
    let sqs =
        sqs.map(|prepared| prepared.start_alone(&store, &cluster, config, &observers, limits.sqs));
    let sqs = sqs.transpose()?;
    announce_ready(management.as_ref(), sqs.as_ref(), config, limits, started);
    let signal = tokio::select! {
        signal = signals.next() => signal.name,
        never = reload.run() => match never {},
    };
    tracing::info!(signal, "stopping");
    notify_service_manager(NotifyState::Stopping);
    if let Some(sqs) = sqs {
        sqs.stop().await;
    }
    if let Some(management) = management {
        management.stop().await;
    }
    cluster.stop().await;
    let uptime_s = started.elapsed().as_secs();
    tracing::info!(uptime_s, "stopped");
    let pid = std::process::id();
    print_line(&format!("quelea stopped clean=true uptime_s={uptime_s} pid={pid}"));
    Ok(Stopped::Clean)
}

/// Makes the first account and administrator, if this is the first front-end of all.
async fn bootstrap(cluster: &Cluster, config: &Config) -> Result<(), CassandraError> {
    let password = config.access.bootstrap_password.clone();
    let hash = async || {
        let hashed = tokio::task::spawn_blocking(move || hash_password(password.as_bytes())).await;
        let hashed = hashed.map_err(|error| Fault::Unavailable(error.to_string()))?;
        hashed.map_err(|error| Fault::Unavailable(error.to_string()))
    };
    cluster.bootstrap(&config.access.bootstrap_user, hash).await.map_err(CassandraError::Bootstrap)
}

fn announce_ready(
    management: Option<&Management>,
    sqs: Option<&SqsFront>,
    config: &Config,
    limits: ConnectionLimits,
    started: Instant,
) {
    let http = or_dash(management, Management::address);
    let sqs = or_dash(sqs, SqsFront::addresses);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        http,
        sqs,
        keyspace = config.cassandra.keyspace,
        sqs_connections_max = limits.sqs,
        http_connections_max = limits.http,
        start_ms = started.elapsed().as_millis() as u64,
        "started, over Cassandra"
    );
    let pid = std::process::id();
    print_line(&format!(
        "quelea ready amqp=- http={http} sqs={sqs} cmq=- elastic=- pid={pid} data_dir=-"
    ));
    notify_service_manager(NotifyState::Ready);
}
