//! A directory's thread: its runtime, its listener, and how it starts and stops.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use quelea_elastic_core::directory::{Definition, Directory, Input, Peer, Settings, limits};
use quelea_net::{Acceptor, SignInFailures};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::ResultFuture;
use crate::connection::{self, SiteKey};
use crate::counters::DirectoryCounters;
use crate::driver::message::Message;
use crate::driver::{Driver, DriverParts};
use crate::meta::MetaStore;
use crate::meta::embedded::{Embedded, OpenError};
use crate::ownership::Ownership;
use crate::ownership_command::Command;
use crate::provider::process::{ProcessSettings, Processes};
use crate::provider::{Directories, Provider, RelayCommand, Running};
use crate::refusal::number_of;
use crate::relay_token::TokenSecret;

/// What waits for the driver; who sends more waits.
const INBOX_MAX: usize = 4_096;
/// How long relays of queues that were not taken over may take to end when the directory stops; then they are made to.
const RELAYS_STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the directory waits for that.
const RELAYS_STOP_MAX: Duration = Duration::from_secs(4);
/// How long giving up its lease may take.
const LEASE_STOP_MAX: Duration = Duration::from_secs(1);

/// What a directory is started with.
pub struct DirectorySettings {
    /// Where it listens.
    pub listener: TcpListener,
    /// Where others reach it, `host:port`; empty: the listener's address.
    pub advertise: String,
    /// The site's key, empty if none is asked for.
    pub key: Vec<u8>,
    /// The state machine's settings.
    pub core: Settings,
    /// Queues that are defined by the configuration.
    pub queues: Vec<(String, Definition)>,
    /// Who starts relays.
    pub provider: ProviderSettings,
    /// What relays are started with: where they listen, and the key's file.
    pub relay_listen: String,
    /// Bytes a second that the network of a relay's host carries in each direction; 0 if nobody knows.
    pub relay_network_bytes_per_s_max: u64,
    /// The file of the key, for relays; empty if there is none.
    pub key_file: String,
    /// Where metadata is.
    pub metadata: MetaSettings,
    /// Whether relays are ended when the directory is: all of them if it is alone (its metadata is embedded),
    /// else those of the queues that it controls then.
    pub stop_relays: bool,
    /// What it counts.
    pub counters: Arc<DirectoryCounters>,
    /// Most connections, those in their greeting included; further ones are closed at once.
    pub connections_max: usize,
    /// Where who shows a wrong key or token is counted.
    pub failures: SignInFailures,
}

/// See [`DirectorySettings::provider`].
pub enum ProviderSettings {
    /// Processes of this machine.
    Process {
        /// Where lease files and logs are.
        dir: PathBuf,
        /// The program that is run.
        program: PathBuf,
    },
    /// Pods of a cluster.
    #[cfg(feature = "kubernetes")]
    Kubernetes(crate::provider::kubernetes::Settings),
}

/// See [`DirectorySettings::metadata`].
pub enum MetaSettings {
    /// A file of this directory alone.
    Embedded(PathBuf),
    /// An etcd cluster, by its endpoints.
    #[cfg(feature = "etcd")]
    Etcd(Vec<String>),
    /// Another store that several directories share, which is opened on the directory's runtime.
    Shared(OpenMeta),
}

/// Opens a store; the error says what is wrong.
pub type OpenMeta = Box<
    dyn FnOnce() -> ResultFuture<'static, Arc<dyn MetaStore>, Box<dyn Error + Send + Sync>> + Send,
>;

/// Why a directory does not start.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryStartError {
    /// A file, a socket or a thread.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The embedded store.
    #[error(transparent)]
    Embedded(#[from] OpenError),
    /// The metadata store of several directories.
    #[error(transparent)]
    Meta(#[from] crate::meta::MetaError),
    /// The metadata store of several directories, where it is opened.
    #[error("elastic.metadata: {0}")]
    Shared(Box<dyn Error + Send + Sync>),
    /// The provider.
    #[error(transparent)]
    Provider(#[from] crate::provider::ProviderError),
    /// The thread ended before it had started.
    #[error("the directory's thread broke")]
    ThreadEnded,
}

/// A directory that serves.
pub struct DirectoryServer {
    address: SocketAddr,
    handle: DirectoryHandle,
    thread: JoinHandle<()>,
}

/// Asks a directory, from any thread; cheap to clone.
#[derive(Clone)]
pub struct DirectoryHandle {
    inbox: Sender<Message>,
    ownership: UnboundedSender<Command>,
}

impl DirectoryServer {
    /// Starts the thread; returns when clients can connect.
    ///
    /// # Errors
    /// If the provider or the metadata store cannot be had.
    pub fn start(settings: DirectorySettings) -> Result<Self, DirectoryStartError> {
        let system = |what| move |source| DirectoryStartError::System { what, source };
        let address = settings.listener.local_addr().map_err(system("read the address"))?;
        let (inbox, messages) = channel(INBOX_MAX);
        let (started, start) = std::sync::mpsc::channel();
        let sender = inbox.clone();
        let body = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(source) => {
                    let what = "start the directory's runtime";
                    let _ = started.send(Err(DirectoryStartError::System { what, source }));
                    return;
                }
            };
            runtime.block_on(async move {
                match Prepared::new(settings, sender).await {
                    Ok(running) => {
                        let _ = started.send(Ok(running.command.clone()));
                        running.serve(messages).await;
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("directory".to_owned()).spawn(body);
        let thread = thread.map_err(system("start the directory's thread"))?;
        let ownership = start.recv().map_err(|_| DirectoryStartError::ThreadEnded)??;
        Ok(Self { address, handle: DirectoryHandle { inbox, ownership }, thread })
    }

    /// Returns the address at which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle by which to ask it.
    #[must_use]
    pub fn handle(&self) -> DirectoryHandle {
        self.handle.clone()
    }

    /// Stops it: clients get BYE, relays are ended if they are to be, the lease is given up. Waits.
    pub fn stop(self) {
        let (answer, _stopping) = oneshot::channel();
        // It fails if the thread has ended, which is what is wanted.
        let _ = self.handle.inbox.blocking_send(Message::Stop(answer));
        if self.thread.join().is_err() {
            tracing::error!("the directory's thread broke");
        }
    }
}

impl DirectoryHandle {
    pub(crate) const fn ownership(&self) -> &UnboundedSender<Command> {
        &self.ownership
    }

    /// Runs `call` on the directory's thread; `None` if it has stopped.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        let call = Box::new(move |driver: &mut Driver| {
            // The caller may have gone.
            let _ = sender.send(call(driver));
        });
        self.inbox.send(Message::Call(call)).await.ok()?;
        answer.await.ok()
    }
}

/// What runs on the thread.
struct Prepared {
    driver: Driver,
    ownership: Ownership,
    commands: UnboundedReceiver<Command>,
    command: UnboundedSender<Command>,
    provider: Arc<dyn Provider>,
    listener: tokio::net::TcpListener,
    site_key: Arc<SiteKey>,
    inbox: Sender<Message>,
    connections_max: usize,
    queues: Vec<(String, Definition)>,
    stop_relays: bool,
    /// No other directory shares the queues.
    alone: bool,
}

/// Sets up what starts relays and ends them.
#[cfg_attr(not(feature = "kubernetes"), expect(clippy::unused_async, unused_variables))]
async fn provider(
    settings: ProviderSettings,
    command: RelayCommand,
    core: &Settings,
) -> Result<Arc<dyn Provider>, DirectoryStartError> {
    match settings {
        ProviderSettings::Process { dir, program } => {
            let processes = Processes::new(ProcessSettings { dir, program, command });
            let what = "read the relays' leases";
            Ok(Arc::new(processes.map_err(|source| DirectoryStartError::System { what, source })?))
        }
        #[cfg(feature = "kubernetes")]
        ProviderSettings::Kubernetes(kubernetes) => {
            use crate::provider::kubernetes::KubernetesProvider;
            Ok(Arc::new(KubernetesProvider::connect(kubernetes, command, core.clone()).await?))
        }
    }
}

impl Prepared {
    async fn new(
        settings: DirectorySettings,
        inbox: Sender<Message>,
    ) -> Result<Self, DirectoryStartError> {
        let system = |what| move |source| DirectoryStartError::System { what, source };
        settings.listener.set_nonblocking(true).map_err(system("set up the listener"))?;
        let address = settings.listener.local_addr().map_err(system("read the address"))?;
        let listener = tokio::net::TcpListener::from_std(settings.listener)
            .map_err(system("register the listener"))?;
        let advertise = match settings.advertise.is_empty() {
            true => address.to_string(),
            false => settings.advertise,
        };
        let alone = matches!(settings.metadata, MetaSettings::Embedded(_));
        let meta = open_meta(settings.metadata).await?;
        let secret = TokenSecret::of_site(&meta).await?;
        let directories = Directories::from(vec![advertise.clone()]);
        let command = RelayCommand {
            directories: directories.clone(),
            listen: settings.relay_listen,
            key_file: settings.key_file,
            network_bytes_per_s_max: settings.relay_network_bytes_per_s_max,
            secret: secret.clone(),
        };
        let provider = provider(settings.provider, command, &settings.core).await?;
        let (command, commands) = unbounded_channel();
        let core = settings.core;
        let driver = Driver::new(DriverParts {
            advertise: advertise.clone(),
            default: core.definition.clone(),
            core: Directory::new(core),
            counters: settings.counters,
            provider: Arc::clone(&provider),
            ownership: command.clone(),
            inbox: inbox.clone(),
            stop_relays: settings.stop_relays,
            secret,
            failures: settings.failures.clone(),
        });
        let ownership = Ownership {
            meta,
            provider: Arc::clone(&provider),
            advertise,
            directories,
            is_shared: !alone,
            inbox: inbox.clone(),
        };
        Ok(Self {
            driver,
            ownership,
            commands,
            command,
            provider,
            listener,
            site_key: Arc::new(SiteKey { key: settings.key, failures: settings.failures }),
            inbox,
            connections_max: settings.connections_max.min(limits::PEERS_MAX),
            queues: settings.queues,
            stop_relays: settings.stop_relays,
            alone,
        })
    }

    async fn serve(self, messages: Receiver<Message>) {
        let Self { mut driver, ownership, commands, command, provider, .. } = self;
        for (queue, definition) in self.queues {
            driver.input(Input::Define { queue, definition });
        }
        let ownership = tokio::spawn(ownership.run(commands));
        let listening = tokio::spawn(listen(
            self.listener,
            self.site_key,
            self.inbox.clone(),
            self.connections_max,
        ));
        let events = tokio::spawn(forward_provider_events(Arc::clone(&provider), self.inbox));
        let owned = driver.run(messages).await;
        listening.abort();
        events.abort();
        if self.stop_relays {
            stop_relays(provider.as_ref(), (!self.alone).then_some(&owned)).await;
        }
        // It fails if the task has ended.
        let _ = command.send(Command::Stop);
        if timeout(LEASE_STOP_MAX, ownership).await.is_err() {
            tracing::warn!("the directory's lease is left to end by itself");
        }
    }
}

/// Opens the store where queues' records are.
async fn open_meta(metadata: MetaSettings) -> Result<Arc<dyn MetaStore>, DirectoryStartError> {
    match metadata {
        MetaSettings::Embedded(path) => Ok(Arc::new(Embedded::open(&path)?)),
        #[cfg(feature = "etcd")]
        MetaSettings::Etcd(endpoints) => {
            Ok(Arc::new(crate::meta::etcd::Etcd::connect(&endpoints).await?))
        }
        MetaSettings::Shared(open) => open().await.map_err(DirectoryStartError::Shared),
    }
}

async fn listen(
    listener: tokio::net::TcpListener,
    site_key: Arc<SiteKey>,
    inbox: Sender<Message>,
    connections_max: usize,
) {
    let open = Arc::<AtomicUsize>::default();
    let mut last = 0;
    let mut acceptor = Acceptor::new(listener, "the directory's connections");
    loop {
        let (socket, address) = acceptor.accept(|| ()).await;
        if open.load(Ordering::Relaxed) >= connections_max {
            tracing::warn!(limit = connections_max, "too many connections: one is closed");
            continue;
        }
        last += 1;
        let (site_key, inbox, open) = (Arc::clone(&site_key), inbox.clone(), Arc::clone(&open));
        open.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let address = number_of(address);
            connection::serve(socket, (Peer(last), address), site_key, inbox).await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn forward_provider_events(provider: Arc<dyn Provider>, inbox: Sender<Message>) {
    loop {
        let event = provider.event().await;
        if inbox.send(Message::Provider(event)).await.is_err() {
            return;
        }
    }
}

/// Ends the relays of `queues`, or every relay, that the driver did not see end, and waits for it.
async fn stop_relays(provider: &dyn Provider, queues: Option<&BTreeSet<String>>) {
    let meant = |one: &Running| queues.is_none_or(|queues| queues.contains(&one.queue));
    let running = match provider.list(None).await {
        Ok(running) => running,
        Err(error) => return tracing::warn!(%error, "relays are left running"),
    };
    for one in running.iter().filter(|one| meant(one)) {
        if let Err(error) = provider.stop(&one.queue, &one.handle, RELAYS_STOP_GRACE).await {
            tracing::warn!(%error, "a relay is left running");
        }
    }
    let until = Instant::now() + RELAYS_STOP_MAX;
    while provider.list(None).await.is_ok_and(|running| running.iter().any(meant)) {
        if tokio::time::timeout_at(until, provider.event()).await.is_err() {
            return tracing::warn!("relays have not ended in time");
        }
    }
}
