//! `quelea serve`: starts the node, the SQS interface and the management API, tells when all are
//! ready, and stops them on a signal.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use quelea_cmq_front::DatagramCounters;
use quelea_elastic_directory::DirectoryHandle;
use quelea_management::HttpSettings;
use quelea_node::{ListenError, Node, StartError, Stopped};
use quelea_sqs_server::SqsCounters;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

use crate::bridge::{self, BridgeError, ElasticBridge};
use crate::cmq::{self, CmqError, CmqFront};
use crate::config::Config;
use crate::elastic::{self, ElasticDirectory, ElasticError};
use crate::sqs::{self, SqsError, SqsFront};
use crate::wiring::node_config;

/// How long the management API may take to answer what it was asked before the stop.
const HTTP_STOP_MAX: Duration = Duration::from_secs(1);

/// Why the broker did not start, or did not run to its end.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("logging.level = {level:?}: {reason}")]
    Level { level: String, reason: String },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Sqs(#[from] SqsError),
    #[error(transparent)]
    Cmq(#[from] CmqError),
    #[error(transparent)]
    Elastic(#[from] ElasticError),
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: std::io::Error },
}

/// Runs the broker until a signal stops it. Exit code 0: all is on the disk.
pub(crate) fn run(config: &Config) -> ExitCode {
    match serve(config) {
        Ok(Stopped::Clean) => ExitCode::SUCCESS,
        Ok(Stopped::Unclean) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quelea: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: &Config) -> Result<Stopped, ServeError> {
    log_to_stderr(&config.logging.level)?;
    quelea_node::install_panic_hook();
    // This thread is the management thread; the core has its own.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("start the management runtime"))?;
    runtime.block_on(manage(config))
}

fn log_to_stderr(level: &str) -> Result<(), ServeError> {
    let filter = EnvFilter::try_new(level).map_err(|error| ServeError::Level {
        level: level.to_owned(),
        reason: error.to_string(),
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

async fn manage(config: &Config) -> Result<Stopped, ServeError> {
    let started = Instant::now();
    // Before anything else, so that a signal during recovery is not lost.
    let mut signals = Signals::new().map_err(system("listen for signals"))?;
    let listener = match config.http.enabled {
        true => Some(quelea_node::listen(&config.http.listen)?),
        false => None,
    };
    let sqs = sqs::prepare(&config.sqs)?;
    let cmq = cmq::prepare(config)?;
    let elastic = elastic::prepare(&config.elastic)?;
    let bridge = bridge::prepare(config)?;
    elastic.iter().try_for_each(|elastic| elastic.check_keeper(&bridge.keeper()))?;
    let settings = node_config(config);
    let connections_max = settings.connections_max;
    let node = Node::start(settings)?;
    let counters = Arc::<SqsCounters>::default();
    let counted = sqs.is_some().then(|| Arc::clone(&counters));
    let cmq_counters = Arc::<DatagramCounters>::default();
    let mut collectors: Vec<Arc<dyn Collector>> =
        cmq.iter().map(|_| Arc::clone(&cmq_counters) as Arc<dyn Collector>).collect();
    let keeper = bridge.keeper();
    let elastic = elastic.map(|prepared| prepared.start(config, node.data_dir(), keeper));
    let elastic = elastic.transpose()?;
    collectors.extend(elastic.iter().flat_map(ElasticDirectory::collectors));
    let bridge = bridge.start(&node, elastic.as_ref())?;
    collectors.extend(bridge.iter().map(ElasticBridge::collector));
    let directory = elastic.as_ref().map(ElasticDirectory::handle);
    let http = listener
        .map(|listener| Http::start(listener, &node, config, counted, collectors, directory))
        .transpose()?;
    let sqs = match sqs {
        Some(prepared) => Some(prepared.start(&node, config, counters).await?),
        None => None,
    };
    let cmq = cmq.map(|prepared| prepared.start(&node, &cmq_counters)).transpose()?;
    let fronts = Fronts { http, sqs, cmq, elastic, bridge };
    let pid = std::process::id();
    tell_started(&node, &fronts, connections_max, started);
    let name = signals.next().await;
    tracing::info!(signal = name, "stopping");
    let stopped = stop(node, fronts, &mut signals).await;
    let clean = stopped == Stopped::Clean;
    let uptime_s = started.elapsed().as_secs();
    tracing::info!(clean, uptime_s, "stopped");
    say(&format!("quelea stopped clean={clean} uptime_s={uptime_s} pid={pid}"));
    Ok(stopped)
}

/// What runs beside the node's core.
struct Fronts {
    http: Option<Http>,
    sqs: Option<SqsFront>,
    cmq: Option<CmqFront>,
    elastic: Option<ElasticDirectory>,
    bridge: Option<ElasticBridge>,
}

/// The log's line, and the one for whoever started us.
fn tell_started(node: &Node, fronts: &Fronts, connections_max: usize, started: Instant) {
    fn or_dash<T>(front: Option<&T>, address: impl Fn(&T) -> String) -> String {
        front.map_or_else(|| "-".to_owned(), address)
    }
    let amqp: Vec<_> = node.amqp_addresses().iter().map(ToString::to_string).collect();
    let (amqp, http, sqs, cmq, elastic) = (
        amqp.join(","),
        or_dash(fronts.http.as_ref(), |http| http.address.clone()),
        or_dash(fronts.sqs.as_ref(), SqsFront::addresses),
        or_dash(fronts.cmq.as_ref(), CmqFront::address),
        or_dash(fronts.elastic.as_ref(), ElasticDirectory::address),
    );
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
        connections_max,
        recovered_messages = node.recovery().entries,
        replayed_bytes = node.recovery().replayed_bytes,
        dropped_tail = node.recovery().dropped_tail.as_deref(),
        start_ms = started.elapsed().as_millis() as u64,
        "started"
    );
    say(&format!(
        "quelea ready amqp={amqp} http={http} sqs={sqs} cmq={cmq} elastic={elastic} pid={pid} \
         data_dir={data_dir}"
    ));
}

/// Stops the other interfaces, then the core, then the management API, which may ask the core to the
/// last. A second signal ends the process at once: what was confirmed is in the log.
async fn stop(node: Node, fronts: Fronts, signals: &mut Signals) -> Stopped {
    let Fronts { http, sqs, cmq, elastic, bridge } = fronts;
    if let Some(bridge) = bridge {
        bridge.stop().await;
    }
    if let Some(elastic) = elastic {
        elastic.stop().await;
    }
    if let Some(sqs) = sqs {
        sqs.stop().await;
    }
    if let Some(cmq) = cmq {
        cmq.stop().await;
    }
    // It only fails if the core has stopped already.
    let _ = node.handle().call(|core| core.begin_stop()).await;
    let core = tokio::task::spawn_blocking(move || node.join());
    let stopped = tokio::select! {
        stopped = core => stopped.unwrap_or(Stopped::Unclean),
        name = signals.next() => {
            tracing::warn!(signal = name, "stopped at once, by a second signal");
            std::process::exit(1);
        }
    };
    if let Some(http) = http {
        http.stop().await;
    }
    stopped
}

/// One line for whoever started us. They may have closed their end.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// The management API on this thread's runtime.
struct Http {
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Http {
    fn start(
        listener: std::net::TcpListener,
        node: &Node,
        config: &Config,
        sqs: Option<Arc<SqsCounters>>,
        collectors: Vec<Arc<dyn Collector>>,
        directory: Option<DirectoryHandle>,
    ) -> Result<Self, ServeError> {
        let address = listener.local_addr().map_err(system("read the listener's address"))?;
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(system("register the management listener"))?;
        let settings = HttpSettings {
            loopback_users: config.access.loopback_users.clone(),
            node: "quelea@localhost".to_owned(),
            account_id: config.sqs.account_id.clone(),
            sqs,
            collectors,
            elastic: quelea_elastic_directory::routes(directory),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            // An error is the sender's end, which means the same.
            let _ = stopped.await;
        };
        let (core, authenticator) = (node.handle().clone(), node.authenticator().clone());
        let serve = quelea_management::serve(listener, core, authenticator, settings, stopped);
        Ok(Self { address: address.to_string(), stop, task: tokio::spawn(serve) })
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        match tokio::time::timeout(HTTP_STOP_MAX, self.task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the management API broke"),
            Ok(Err(error)) => tracing::warn!(%error, "the management API broke"),
            Err(_) => tracing::debug!("management connections are left open"),
        }
    }
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

const fn system(what: &'static str) -> impl Fn(std::io::Error) -> ServeError {
    move |source| ServeError::System { what, source }
}
