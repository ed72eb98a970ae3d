//! The elastic queues' directory, as `serve` starts and stops it.

mod entries;
pub(crate) mod exposure;

use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use quelea_elastic_core::directory::{Definition, DefinitionError, FirstUseLimits, Settings};
#[cfg(feature = "kubernetes")]
use quelea_elastic_directory::provider::kubernetes::{
    Settings as KubernetesSettings, TemplateError,
};
use quelea_elastic_directory::{
    DirectoryCounters, DirectoryHandle, DirectoryServer, DirectorySettings, DirectoryStartError,
    MetaSettings, ProviderSettings,
};
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use quelea_elastic_relay::entry::EntryConfig;
use quelea_net::ListenError;
use quelea_node::Node;

use self::entries::{Entries, EntriesCounters, EntryFailure, PreparedEntries};
use super::connection_limits::ConnectionLimits;
use crate::config::{Config, Elastic as ElasticConfig, Metadata, Provider, RelaysOnExit};
use crate::key_file::{self, KeyFileError};

/// The part of an address' queues that one connection may have made is one of so many.
const CONNECTIONS_SHARE: usize = 4;

/// The running directory.
pub(crate) struct ElasticDirectory {
    server: DirectoryServer,
    counters: Arc<DirectoryCounters>,
    entries: Entries,
    entries_counters: Arc<EntriesCounters>,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ElasticError {
    #[error("elastic.listen: {0}")]
    Listen(#[from] ListenError),
    #[error("elastic.key_file: {0}")]
    Key(#[from] KeyFileError),
    #[error("{key} = {value:?}: this build of quelea has no feature {value:?}")]
    Feature { key: &'static str, value: &'static str },
    #[error("elastic.default: {0}")]
    Default(DefinitionError),
    #[error("elastic.queue.definition of {queue:?}: {error}")]
    Queue { queue: String, error: DefinitionError },
    #[error(
        "{key}: keep = {target:?} has no effect: bridge.keep_listen and bridge.keep_advertise are both \
         empty"
    )]
    NoKeeper { key: String, target: String },
    #[error(
        "elastic.advertise = {advertise:?}: relays, clients and other directories cannot reach {address}, \
         which is every address of this machine"
    )]
    EveryAddress { advertise: String, address: String },
    #[error("cannot find this program: {0}")]
    Program(std::io::Error),
    #[error("elastic.metadata = \"cassandra\": cassandra.nodes names no node")]
    NoNodes,
    #[error(transparent)]
    Start(#[from] DirectoryStartError),
    #[error(transparent)]
    Entry(#[from] EntryFailure),
    #[error("elastic.entry: it needs a directory, and elastic.listen is empty")]
    EntryWithoutDirectory,
    #[cfg(feature = "kubernetes")]
    #[error("elastic.kubernetes_{0}")]
    Kubernetes(#[from] TemplateError),
}

impl ElasticError {
    /// Returns whether the next start fails too, until the configuration is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        match self {
            Self::Listen(_) | Self::Program(_) | Self::Start(_) => false,
            Self::Entry(failure) => failure.is_of_settings(),
            _ => true,
        }
    }
}

/// Its settings, which are as they have to be.
pub(crate) struct Checked {
    key: Vec<u8>,
    key_file: String,
    core: Settings,
    queues: Vec<(String, Definition)>,
    program: PathBuf,
    stop_relays: bool,
    entries: Vec<EntryConfig>,
}

/// What has to be there before the log is opened: an address that is taken shows early.
pub(crate) struct Prepared {
    listener: TcpListener,
    checked: Checked,
    entries: PreparedEntries,
}

/// Looks at the settings, unless no directory is wanted.
pub(crate) fn check(config: &Config) -> Result<Option<Checked>, ElasticError> {
    let (cassandra, config) = (&config.cassandra, &config.elastic);
    if config.listen.is_empty() {
        return if config.entry.is_empty() {
            Ok(None)
        } else {
            Err(ElasticError::EntryWithoutDirectory)
        };
    }
    check_features(config)?;
    check_advertise(config)?;
    if config.metadata == Metadata::Cassandra && cassandra.nodes.is_empty() {
        return Err(ElasticError::NoNodes);
    }
    #[cfg(feature = "kubernetes")]
    if config.provider == Provider::Kubernetes {
        kubernetes(config).check()?;
    }
    let stop_relays = stop_relays(config);
    let key_file = match config.key_file.as_str() {
        "" => String::new(),
        // Relays may run elsewhere than in this directory.
        path => std::path::absolute(path).map_err(ElasticError::Program)?.display().to_string(),
    };
    let key = key(config)?;
    let cost = config.relay_cost_per_hour_micros;
    let definition = Definition::parse(config.default.as_bytes());
    let definition = definition
        .and_then(|definition| {
            definition.validate_cost(cost)?;
            // A queue that is made on first use may have the longest name.
            definition.validate_record(&"q".repeat(QUEUE_NAME_BYTES_MAX))?;
            Ok(definition)
        })
        .map_err(ElasticError::Default)?;
    let queues = queues(config, &definition)?;
    let program = match config.relay_program.as_str() {
        "" => std::env::current_exe().map_err(ElasticError::Program)?,
        path => PathBuf::from(path),
    };
    let core = Settings {
        definition,
        relay_cost_per_hour_micros: config.relay_cost_per_hour_micros,
        register_ms_max: config.register_ms_max,
        relays_max: config.relays_max,
        first_use: FirstUseLimits {
            per_connection_max: config.first_use_queues_max.div_ceil(CONNECTIONS_SHARE),
            per_address_max: config.first_use_queues_max,
            unused_ms_max: config.unused_ms_max,
        },
        drain_ms_max: config.drain_ms_max,
        ..Settings::default()
    };
    let entries = entries::check(&config.entry)?;
    Ok(Some(Checked { key, key_file, core, queues, program, stop_relays, entries }))
}

/// Refuses what this build lacks.
fn check_features(config: &ElasticConfig) -> Result<(), ElasticError> {
    if config.provider == Provider::Kubernetes && !cfg!(feature = "kubernetes") {
        return Err(ElasticError::Feature { key: "elastic.provider", value: "kubernetes" });
    }
    if config.metadata == Metadata::Etcd && !cfg!(feature = "etcd") {
        return Err(ElasticError::Feature { key: "elastic.metadata", value: "etcd" });
    }
    if config.metadata == Metadata::Cassandra && !cfg!(feature = "cassandra") {
        return Err(ElasticError::Feature { key: "elastic.metadata", value: "cassandra" });
    }
    Ok(())
}

fn stop_relays(config: &ElasticConfig) -> bool {
    match config.relays_on_exit {
        RelaysOnExit::Stop => true,
        RelaysOnExit::Keep => false,
        // Other directories that share its metadata go on with its queues at once.
        RelaysOnExit::ByMetadata => config.metadata == Metadata::Embedded,
    }
}

fn check_advertise(config: &ElasticConfig) -> Result<(), ElasticError> {
    let (advertise, listen) = (&config.advertise, &config.listen);
    let is_unreachable = match advertise.as_str() {
        // A directory that is alone, with relays of its own machine, may leave out where it is.
        "" => config.metadata != Metadata::Embedded && quelea_net::is_every_address(listen),
        // A name is for others to look up.
        given => given.parse().is_ok_and(|given: SocketAddr| given.ip().is_unspecified()),
    };
    if is_unreachable {
        let address = if advertise.is_empty() { listen } else { advertise }.clone();
        return Err(ElasticError::EveryAddress { advertise: advertise.clone(), address });
    }
    Ok(())
}

/// Returns what clients and relays have to show; empty if nothing is asked for.
pub(crate) fn key(config: &ElasticConfig) -> Result<Vec<u8>, KeyFileError> {
    match config.key_file.as_str() {
        "" => Ok(Vec::new()),
        path => key_file::read(Path::new(path)).map(Vec::from),
    }
}

fn queues(
    config: &ElasticConfig,
    default: &Definition,
) -> Result<Vec<(String, Definition)>, ElasticError> {
    let mut queues = Vec::new();
    for queue in &config.queue {
        let definition = Definition::parse_over(default, queue.definition.as_bytes())
            .and_then(|definition| {
                definition.validate_cost(config.relay_cost_per_hour_micros)?;
                definition.validate_record(&queue.name)?;
                Ok(definition)
            })
            .map_err(|error| ElasticError::Queue { queue: queue.name.clone(), error })?;
        queues.push((queue.name.clone(), definition));
    }
    Ok(queues)
}

#[allow(unused_variables, reason = "the configuration is looked at by features")]
fn provider(config: &ElasticConfig, dir: PathBuf, program: PathBuf) -> ProviderSettings {
    #[cfg(feature = "kubernetes")]
    if config.provider == Provider::Kubernetes {
        return ProviderSettings::Kubernetes(kubernetes(config));
    }
    ProviderSettings::Process { dir, program }
}

#[cfg(feature = "kubernetes")]
fn kubernetes(config: &ElasticConfig) -> KubernetesSettings {
    KubernetesSettings {
        site: config.kubernetes_site.clone(),
        namespace: config.kubernetes_namespace.clone(),
        image: config.kubernetes_image.clone(),
        pod_template: config.kubernetes_pod_template.clone().into(),
        relay_listen: config.kubernetes_relay_listen.clone(),
        drain_max: std::time::Duration::from_millis(config.drain_ms_max),
        ..KubernetesSettings::default()
    }
}

#[allow(unused_variables, reason = "the configuration is looked at by features")]
fn metadata(config: &Config, file: PathBuf) -> MetaSettings {
    #[cfg(feature = "etcd")]
    if config.elastic.metadata == Metadata::Etcd {
        return MetaSettings::Etcd(config.elastic.etcd_endpoints.clone());
    }
    #[cfg(feature = "cassandra")]
    if config.elastic.metadata == Metadata::Cassandra {
        return MetaSettings::Shared(super::cassandra::elastic_metadata(config));
    }
    MetaSettings::Embedded(file)
}

impl Checked {
    /// Takes the addresses.
    pub(crate) fn listen(mut self, config: &ElasticConfig) -> Result<Prepared, ElasticError> {
        let listener = quelea_net::listen(&config.listen)?;
        let entries = entries::listen(std::mem::take(&mut self.entries))?;
        Ok(Prepared { listener, checked: self, entries })
    }

    /// Checks that no definition keeps messages although there is nowhere to keep them.
    pub(crate) fn check_keeper(&self, has_keeper: bool) -> Result<(), ElasticError> {
        let default = ("elastic.default".to_owned(), &self.core.definition);
        let queues = self.queues.iter();
        let queues = queues.map(|(name, of)| (format!("elastic.queue.definition of {name:?}"), of));
        let mut all = std::iter::once(default).chain(queues);
        match all.find(|(_, definition)| !definition.keep.is_empty()) {
            Some((key, definition)) if !has_keeper => {
                Err(ElasticError::NoKeeper { key, target: definition.keep.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl Prepared {
    /// Serves beside the node, whose data directory has the files. Relays learn that messages are kept at
    /// `keeper`, if it is not empty.
    pub(crate) fn start(
        self,
        config: &Config,
        node: &Node,
        keeper: String,
        limits: ConnectionLimits,
    ) -> Result<ElasticDirectory, ElasticError> {
        let Self { listener, checked, entries } = self;
        let counters = Arc::<DirectoryCounters>::default();
        let failures = node.authenticator().failures();
        let dir = node.data_dir().join("elastic");
        private_directory(&dir).map_err(|source| {
            let what = "make the directory of elastic queues' files";
            ElasticError::Start(DirectoryStartError::System { what, source })
        })?;
        let settings = DirectorySettings {
            listener,
            advertise: config.elastic.advertise.clone(),
            key: checked.key.clone(),
            core: Settings { keeper, ..checked.core },
            queues: checked.queues,
            provider: provider(&config.elastic, dir.join("relays"), checked.program),
            relay_listen: config.elastic.relay_listen.clone(),
            relay_network_bytes_per_s_max: config.elastic.relay_network_bytes_per_s_max,
            key_file: checked.key_file,
            metadata: metadata(config, dir.join("metadata.redb")),
            stop_relays: checked.stop_relays,
            counters: Arc::clone(&counters),
            connections_max: limits.elastic,
            failures: failures.clone(),
        };
        let server = DirectoryServer::start(settings)?;
        let entries = entries.start(server.address(), &checked.key, limits, failures);
        let (entries, entries_counters) = entries?;
        let entries_counters = Arc::new(entries_counters);
        Ok(ElasticDirectory { server, counters, entries, entries_counters })
    }
}

/// Makes a directory that nobody else can read: in it is what relays prove themselves with.
fn private_directory(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

impl ElasticDirectory {
    /// Returns where it listens.
    pub(crate) fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// Returns where it and its entries listen, with the protocol of each.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let entries = self.entries.addresses().map(|address| ("zmtp", address));
        std::iter::once(("elastic", self.server.address())).chain(entries)
    }

    /// Returns what it and its entries count, for the metrics page.
    pub(crate) fn collectors(&self) -> [Arc<dyn Collector>; 2] {
        [Arc::clone(&self.counters) as _, Arc::clone(&self.entries_counters) as _]
    }

    /// Returns what answers the management API.
    pub(crate) fn handle(&self) -> DirectoryHandle {
        self.server.handle()
    }

    /// Stops it.
    pub(crate) async fn stop(self) {
        let stop = move || {
            // While the relays still take what they have.
            self.entries.stop();
            self.server.stop();
        };
        super::stop_on_thread("the elastic queues' directory", stop).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ElasticQueue;

    fn refusal(change: impl FnOnce(&mut ElasticConfig)) -> String {
        let mut config =
            ElasticConfig { listen: "127.0.0.1:0".to_owned(), ..ElasticConfig::default() };
        change(&mut config);
        let config = Config { elastic: config, ..Config::default() };
        let listened = check(&config)
            .and_then(|checked| checked.map(|checked| checked.listen(&config.elastic)).transpose());
        listened.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn it_is_off_without_an_address() {
        let off = ElasticConfig { listen: String::new(), ..ElasticConfig::default() };
        assert!(check(&Config { elastic: off, ..Config::default() }).unwrap().is_none());
        assert_eq!(refusal(|_| {}), "");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_key() {
        let queue = |name: &str, definition: &str| {
            let (name, definition) = (name.to_owned(), definition.to_owned());
            refusal(|config| config.queue.push(ElasticQueue { name, definition }))
        };
        for (refusal, expected) in [
            (refusal(|config| config.listen = "192.0.2.1:5670".to_owned()), "elastic.listen: "),
            (
                refusal(|config| config.metadata = Metadata::Cassandra),
                "elastic.metadata = \"cassandra\": cassandra.nodes names no node",
            ),
            (refusal(|config| config.key_file = "/nowhere".to_owned()), "elastic.key_file: "),
            (
                refusal(|config| config.advertise = "0.0.0.0:5670".to_owned()),
                "elastic.advertise = \"0.0.0.0:5670\": ",
            ),
            (
                refusal(|config| config.advertise = "[::]:5670".to_owned()),
                "elastic.advertise = \"[::]:5670\": ",
            ),
            (
                refusal(|config| config.default = "{\"relays_min\": 0}".to_owned()),
                "elastic.default: relays_min",
            ),
            (
                refusal(|config| {
                    config.relay_cost_per_hour_micros = 2;
                    config.default = "{\"budget_per_hour_micros\": 1}".to_owned();
                }),
                "elastic.default: budget_per_hour_micros",
            ),
            (
                refusal(|config| config.default = "{\"relays_max\": 4096}".to_owned()),
                "elastic.default: relays_max: the record of a queue whose name has 255 bytes has room for ",
            ),
            (
                queue("q", "{\"relays_max\": 4096}"),
                "elastic.queue.definition of \"q\": relays_max: the record of a queue whose name has ",
            ),
            (queue("q", "[]"), "elastic.queue.definition of \"q\": "),
            (queue("q", "{\"slow\": 1}"), "elastic.queue.definition of \"q\": slow: "),
        ] {
            assert!(refusal.starts_with(expected), "{refusal:?} does not begin with {expected:?}");
        }
        assert_eq!(queue("q", "{\"relays_max\": 3}"), "");
    }

    #[test]
    fn directories_that_share_queues_need_an_address_that_others_reach() {
        let checked = |listen: &str, advertise: &str| {
            let (listen, advertise) = (listen.to_owned(), advertise.to_owned());
            let metadata = Metadata::Etcd;
            let config = ElasticConfig { listen, advertise, metadata, ..ElasticConfig::default() };
            check_advertise(&config)
        };
        let refused = checked("0.0.0.0:0", "").unwrap_err().to_string();
        assert!(refused.starts_with("elastic.advertise = \"\": ") && refused.contains("0.0.0.0:"));
        assert!(checked("0.0.0.0:0", "10.0.0.7:5670").is_ok());
        assert!(checked("0.0.0.0:0", "quelea-0.quelea:5670").is_ok());
        assert!(checked("127.0.0.1:0", "").is_ok());
        // Alone, nobody else has to find it.
        assert_eq!(refusal(|config| config.listen = "0.0.0.0:0".to_owned()), "");
    }

    #[test]
    fn relays_are_kept_where_other_directories_can_go_on_with_them() {
        use Metadata::{Cassandra, Embedded, Etcd};
        use RelaysOnExit::{ByMetadata, Keep, Stop};

        let stopped = |metadata, relays_on_exit| {
            stop_relays(&ElasticConfig { metadata, relays_on_exit, ..ElasticConfig::default() })
        };
        assert!(stopped(Embedded, ByMetadata) && !stopped(Embedded, Keep));
        assert!(!stopped(Etcd, ByMetadata) && stopped(Etcd, Stop));
        assert!(!stopped(Cassandra, ByMetadata) && stopped(Cassandra, Stop));
    }

    #[test]
    fn messages_are_not_kept_where_nothing_keeps_them() {
        let mut config =
            ElasticConfig { listen: "127.0.0.1:0".to_owned(), ..ElasticConfig::default() };
        let definition = "{\"keep\": \"archive\"}".to_owned();
        config.queue.push(ElasticQueue { name: "q".to_owned(), definition });
        let config = Config { elastic: config, ..Config::default() };
        let checked = check(&config).unwrap().unwrap();
        assert!(checked.check_keeper(true).is_ok());
        let refused = checked.check_keeper(false).unwrap_err().to_string();
        let expected = "elastic.queue.definition of \"q\": keep = \"archive\" has no effect: ";
        assert!(refused.starts_with(expected), "{refused:?}");
    }
}
