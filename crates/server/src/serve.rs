//! `quelea serve`: starts the node, the fronts, the elastic queues' directory and bridge, and the
//! management API, announces when all are ready, and stops them on a signal. Each has a file below.

mod bridge;
mod cassandra;
mod cmq;
mod connection_limits;
pub(crate) mod elastic;
#[cfg(feature = "cassandra")]
mod front_end;
mod management;
mod node;
mod reload;
mod sqs;
#[cfg(feature = "cassandra")]
mod waiting;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use quelea_cmq_front::DatagramCounters;
use quelea_node::{DataDir, Node, NodeConfig, StartError, Stopped};
use sd_notify::NotifyState;
use tokio::runtime::Builder;

use self::bridge::{BridgeError, ElasticBridge};
use self::cassandra::{CassandraError, Cluster, HeldNames, MirroredIdentity};
use self::cmq::{CmqError, CmqFront};
use self::connection_limits::ConnectionLimits;
use self::elastic::exposure::ExposureError;
use self::elastic::{ElasticDirectory, ElasticError};
use self::management::{DefinitionsError, Management, ManagementError, Shown};
use self::reload::Reload;
use self::sqs::{SqsError, SqsFront};
#[cfg(feature = "cassandra")]
use self::waiting::Listening;
use crate::cli::ConfigArgs;
use crate::config::{Config, Store};
use crate::exit;
use crate::logging::{self, LevelError, LogLevel};
use crate::signals::Signals;
use quelea_management::{Definitions, Listener};

/// Why the broker did not start, or did not run to its end.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("logging.level = {0}")]
    Level(#[from] LevelError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Management(#[from] ManagementError),
    #[error(transparent)]
    Sqs(#[from] SqsError),
    #[error(transparent)]
    Cmq(#[from] CmqError),
    #[error(transparent)]
    Elastic(#[from] ElasticError),
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    #[error(transparent)]
    Cassandra(#[from] CassandraError),
    #[error(transparent)]
    Definitions(#[from] DefinitionsError),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
}

impl ServeError {
    /// Returns whether the next start fails too, until the configuration is corrected.
    const fn is_of_settings(&self) -> bool {
        match self {
            Self::Level(_) | Self::Exposure(_) => true,
            Self::Cassandra(error) => error.is_of_settings(),
            Self::Cmq(error) => error.is_of_settings(),
            Self::Elastic(error) => error.is_of_settings(),
            Self::Bridge(error) => error.is_of_settings(),
            Self::Definitions(error) => error.is_of_settings(),
            Self::Start(_) | Self::Management(_) | Self::Sqs(_) | Self::System { .. } => false,
        }
    }
}

/// Runs the broker with the configuration of `sources` until a signal stops it. Exit code 0: all is on the disk.
pub(crate) fn run(sources: &ConfigArgs, config: &Config) -> ExitCode {
    match serve(sources, config) {
        Ok(Stopped::Clean) => ExitCode::SUCCESS,
        Ok(Stopped::Unclean) => ExitCode::FAILURE,
        Err(error) if error.is_of_settings() => exit::refuse("quelea", error),
        Err(error) => exit::fail("quelea", error),
    }
}

fn serve(sources: &ConfigArgs, config: &Config) -> Result<Stopped, ServeError> {
    let level = logging::to_stderr(&config.logging.level)?;
    quelea_node::install_panic_hook();
    // This thread is the management thread; the core has its own.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("start the management runtime"))?;
    runtime.block_on(manage(sources, config, level))
}

async fn manage(
    sources: &ConfigArgs,
    config: &Config,
    level: LogLevel,
) -> Result<Stopped, ServeError> {
    let started = Instant::now();
    // Before anything else, so that a signal during recovery is not lost.
    let mut signals = Signals::new().map_err(system("listen for signals"))?;
    let mut reload = Reload::new(sources, config, level).map_err(system("listen for signals"))?;
    cassandra::check(config)?;
    management::check_definitions(config)?;
    match config.store {
        Store::Embedded => serve_broker(config, &mut signals, &mut reload, started).await,
        #[cfg(feature = "cassandra")]
        Store::Cassandra => front_end::serve(config, &mut signals, &mut reload, started).await,
        #[cfg(not(feature = "cassandra"))]
        Store::Cassandra => Err(CassandraError::from(cassandra::FrontError).into()),
    }
}

async fn serve_broker(
    config: &Config,
    signals: &mut Signals,
    reload: &mut Reload<'_>,
    started: Instant,
) -> Result<Stopped, ServeError> {
    let mut checked = Checked::new(config)?;
    let definitions = checked.definitions.take();
    let limits = ConnectionLimits::of(config, quelea_node::raise_file_limit());
    let Some(Opened { directory, prepared, cluster }) =
        open(config, limits, checked, signals).await?
    else {
        return Ok(Stopped::Clean);
    };
    let Prepared { management, sqs, cmq, elastic, bridge } = prepared;
    let settings = node::settings(config, limits.amqp);
    let (node, beside) = start_node(config, settings, directory, cluster.as_ref()).await?;
    let observers = sqs::Observers::default();
    management::import_definitions(&node, config, definitions, &observers.audit).await?;
    let (identity, held_names) = beside.unzip();
    let beside = cluster.as_ref().zip(held_names);
    let store = sqs.is_some().then(|| sqs::Store::of(&node, beside, config));
    let counted = sqs.is_some().then(|| Arc::clone(&observers.counters));
    let cmq_counters = Arc::<DatagramCounters>::default();
    let mut collectors: Vec<Arc<dyn Collector>> =
        cmq.iter().map(|_| Arc::clone(&cmq_counters) as Arc<dyn Collector>).collect();
    #[cfg(feature = "cassandra")]
    collectors.extend(cluster.iter().map(Cluster::collector));
    let keeper = bridge.keeper();
    let elastic = elastic.map(|prepared| prepared.start(config, &node, keeper, limits));
    let elastic = elastic.transpose()?;
    collectors.extend(elastic.iter().flat_map(ElasticDirectory::collectors));
    let others = other_listeners(cmq.as_ref(), elastic.as_ref(), &bridge);
    let bridge = bridge.start(&node, elastic.as_ref(), limits.keeper)?;
    collectors.extend(bridge.iter().map(ElasticBridge::collector));
    let shown = Shown {
        sqs: counted,
        audit: Arc::clone(&observers.audit),
        others: collectors,
        listeners: [listeners(&node, sqs.as_ref()), others].concat(),
        directory: elastic.as_ref().map(ElasticDirectory::handle),
        datagram: cmq.is_some().then(|| Arc::clone(&cmq_counters)),
        sqs_service: store.as_ref().map(|store| store.service(config, &observers)),
        replicated: cassandra::routes(cluster.as_ref(), config),
        has_replicated: cluster.is_some(),
    };
    let management = management
        .map(|prepared| prepared.start(&node, identity, config, shown, limits.http))
        .transpose()?;
    let sqs = match sqs.zip(store) {
        Some((prepared, store)) => {
            Some(prepared.start(&store, config, &observers, limits.sqs).await?)
        }
        None => None,
    };
    let cmq = cmq.map(|prepared| prepared.start(&node, &cmq_counters)).transpose()?;
    let fronts = Fronts { management, sqs, cmq, elastic, bridge, cluster };
    announce_ready(&node, &fronts, limits, started);
    notify_service_manager(NotifyState::Ready);
    Ok(run_until_signalled(node, fronts, signals, reload, started).await)
}

/// Serves until a signal says that it is enough, and then until all have stopped.
async fn run_until_signalled(
    node: Node,
    fronts: Fronts,
    signals: &mut Signals,
    reload: &mut Reload<'_>,
    started: Instant,
) -> Stopped {
    let pid = std::process::id();
    let signal = tokio::select! {
        signal = signals.next() => signal.name,
        never = reload.run() => match never {},
    };
    tracing::info!(signal, "stopping");
    notify_service_manager(NotifyState::Stopping);
    let stopped = tokio::select! {
        stopped = stop(node, fronts) => stopped,
        signal = signals.next() => {
            tracing::warn!(signal = signal.name, "stopped at once, by a second signal");
            std::process::exit(1);
        }
    };
    let clean = stopped == Stopped::Clean;
    let uptime_s = started.elapsed().as_secs();
    tracing::info!(clean, uptime_s, "stopped");
    print_line(&format!("quelea stopped clean={clean} uptime_s={uptime_s} pid={pid}"));
    stopped
}

/// What a broker has before its log is opened.
struct Opened {
    directory: DataDir,
    prepared: Prepared,
    cluster: Option<Cluster>,
}

/// Locks the data directory, takes the addresses, and connects to the Cassandra beside it, in this order: a second
/// broker would find addresses in use too, which says less, and Cassandra may be long in answering. Nothing if a
/// signal came before it did.
async fn open(
    config: &Config,
    limits: ConnectionLimits,
    checked: Checked,
    signals: &mut Signals,
) -> Result<Option<Opened>, ServeError> {
    let directory = DataDir::lock(&config.data_dir).map_err(StartError::from)?;
    let connect = async {
        let prepared = checked.listen(config)?;
        let cluster = connect(config, limits, &prepared).await?;
        Ok((prepared, cluster))
    };
    let connected = tokio::select! {
        biased;
        connected = connect => connected.map(Some),
        signal = signals.next() => {
            tracing::info!(signal = signal.name, "stopped before Cassandra answered");
            Ok(None)
        }
    };
    if let Ok(Some((prepared, cluster))) = connected {
        return Ok(Some(Opened { directory, prepared, cluster }));
    }
    directory.leave_unused();
    connected.map(|_| None)
}

/// Connects to the Cassandra beside the broker, if there is to be one.
async fn connect(
    config: &Config,
    limits: ConnectionLimits,
    prepared: &Prepared,
) -> Result<Option<Cluster>, ServeError> {
    #[cfg(feature = "cassandra")]
    {
        let listening =
            Listening { management: prepared.management.as_ref(), sqs: prepared.sqs.as_ref() };
        // The node asks for the users when its log is there.
        waiting::connect(config, limits, listening, async |_| Ok(())).await
    }
    #[cfg(not(feature = "cassandra"))]
    {
        let _ = prepared;
        Ok(cassandra::connect(config, limits).await?)
    }
}

/// Starts the node; where there is a Cassandra, with its users and beside its queues.
async fn start_node(
    config: &Config,
    settings: NodeConfig,
    directory: DataDir,
    cluster: Option<&Cluster>,
) -> Result<(Node, Option<(MirroredIdentity, HeldNames)>), ServeError> {
    let (other, channels) = cassandra::node_parts(cluster, config).unzip();
    let node = Node::start_beside(settings, directory, other)?;
    let Some((cluster, channels)) = cluster.zip(channels) else { return Ok((node, None)) };
    let served = cluster.serve_beside_node(node.handle(), channels).await;
    Ok((node, Some(served.map_err(CassandraError::Beside)?)))
}

/// The settings of what runs beside the core, all looked at before anything is locked, bound or opened.
struct Checked {
    cmq: Option<cmq::Checked>,
    elastic: Option<elastic::Checked>,
    bridge: bridge::Checked,
    definitions: Option<Definitions>,
}

/// The same with their addresses.
struct Prepared {
    management: Option<management::Prepared>,
    sqs: Option<sqs::Prepared>,
    cmq: Option<cmq::Prepared>,
    elastic: Option<elastic::Prepared>,
    bridge: bridge::Prepared,
}

impl Checked {
    fn new(config: &Config) -> Result<Self, ServeError> {
        elastic::exposure::check(config)?;
        let (cmq, elastic) = (cmq::check(config)?, elastic::check(config)?);
        let bridge = bridge::check(config)?;
        let has_keeper = bridge::has_keeper(config);
        elastic.iter().try_for_each(|elastic| elastic.check_keeper(has_keeper))?;
        let definitions = management::read_definitions(config)?;
        Ok(Self { cmq, elastic, bridge, definitions })
    }

    fn listen(self, config: &Config) -> Result<Prepared, ServeError> {
        Ok(Prepared {
            management: management::listen(&config.http)?,
            sqs: sqs::listen(&config.sqs)?,
            cmq: self.cmq.map(|cmq| cmq.listen(&config.cmq)).transpose()?,
            elastic: self.elastic.map(|elastic| elastic.listen(&config.elastic)).transpose()?,
            bridge: self.bridge.listen(config)?,
        })
    }
}

/// What runs beside the node's core.
struct Fronts {
    management: Option<Management>,
    sqs: Option<SqsFront>,
    cmq: Option<CmqFront>,
    elastic: Option<ElasticDirectory>,
    bridge: Option<ElasticBridge>,
    cluster: Option<Cluster>,
}

/// Returns where the broker and the SQS interface listen.
fn listeners(node: &Node, sqs: Option<&sqs::Prepared>) -> Vec<Listener> {
    let amqp = node.amqp_addresses().iter().map(|address| ("amqp", *address));
    let sqs = sqs.into_iter().flat_map(sqs::Prepared::addresses).map(|address| ("sqs", address));
    amqp.chain(sqs).map(|(protocol, address)| Listener { protocol, address }).collect()
}

/// Returns where elastic queues, what keeps their messages, and CMQ's front listen.
fn other_listeners(
    cmq: Option<&cmq::Prepared>,
    elastic: Option<&ElasticDirectory>,
    bridge: &bridge::Prepared,
) -> Vec<Listener> {
    let elastic = elastic.into_iter().flat_map(ElasticDirectory::addresses);
    let keep = bridge.address().map(|address| ("keep", address));
    let cmq = cmq.and_then(cmq::Prepared::address).map(|address| ("cmq", address));
    let all = elastic.chain(keep).chain(cmq);
    all.map(|(protocol, address)| Listener { protocol, address }).collect()
}

fn or_dash<T>(front: Option<&T>, address: impl Fn(&T) -> String) -> String {
    front.map_or_else(|| "-".to_owned(), address)
}

/// Writes the log's line, and the one for whoever started us.
fn announce_ready(node: &Node, fronts: &Fronts, limits: ConnectionLimits, started: Instant) {
    let amqp: Vec<_> = node.amqp_addresses().iter().map(ToString::to_string).collect();
    let (amqp, http, sqs, cmq, elastic) = (
        amqp.join(","),
        or_dash(fronts.management.as_ref(), Management::address),
        or_dash(fronts.sqs.as_ref(), SqsFront::addresses),
        or_dash(fronts.cmq.as_ref(), CmqFront::address),
        or_dash(fronts.elastic.as_ref(), ElasticDirectory::address),
    );
    if let Some(tail) = &node.recovery().dropped_tail {
        tracing::warn!(%tail, "the end of the log was cut off: it was not on the disk as a whole");
    }
    let (pid, data_dir) = (std::process::id(), node.data_dir().display().to_string());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        amqp,
        http,
        sqs,
        cmq,
        elastic,
        keep = fronts.bridge.as_ref().and_then(ElasticBridge::keep_address),
        data_dir,
        connections_max = limits.amqp,
        sqs_connections_max = limits.sqs,
        http_connections_max = limits.http,
        elastic_connections_max = limits.elastic,
        keep_connections_max = limits.keeper,
        recovered_messages = node.recovery().entries,
        replayed_bytes = node.recovery().replayed_bytes,
        start_ms = started.elapsed().as_millis() as u64,
        "started"
    );
    print_line(&format!(
        "quelea ready amqp={amqp} http={http} sqs={sqs} cmq={cmq} elastic={elastic} pid={pid} \
         data_dir={data_dir}"
    ));
}

/// Stops the other interfaces, then the core, then the management API, which may ask the core to the
/// last. A second signal ends the process at once: what was confirmed is in the log.
async fn stop(node: Node, fronts: Fronts) -> Stopped {
    let Fronts { management, sqs, cmq, elastic, bridge, cluster } = fronts;
    if let Some(bridge) = bridge {
        bridge.stop().await;
    }
    if let Some(elastic) = elastic {
        elastic.stop().await;
    }
    if let Some(sqs) = sqs {
        sqs.stop().await;
    }
    if let Some(cluster) = cluster {
        cluster.stop().await;
    }
    if let Some(cmq) = cmq {
        cmq.stop().await;
    }
    // It only fails if the core has stopped already.
    let _ = node.handle().call(|core| core.begin_stop()).await;
    let core = tokio::task::spawn_blocking(move || node.join());
    let stopped = core.await.unwrap_or(Stopped::Unclean);
    if let Some(management) = management {
        management.stop().await;
    }
    stopped
}

/// Stops a part that waits for its threads, on a thread that only waits for them.
async fn stop_on_thread(what: &str, stop: impl FnOnce() + Send + 'static) {
    if tokio::task::spawn_blocking(stop).await.is_err() {
        tracing::warn!("{what} did not stop");
    }
}

/// Notifies systemd, if it started us and asked for it (`Type=notify`).
fn notify_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "systemd cannot be notified");
    }
}

/// One line for whoever started us. They may have closed their end.
fn print_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

const fn system(what: &'static str) -> impl Fn(std::io::Error) -> ServeError {
    move |source| ServeError::System { what, source }
}
