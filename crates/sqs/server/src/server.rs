//! Where SQS is served, on threads of its own or on one that runs already, and how it starts and stops.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quelea_net::{Acceptor, HostNames};
use quelea_sqs_protocol::{ChangeSink, Identity, QueueClass, Queues, Service, ServiceSettings};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::authentication::{Authentication, Verify};
use crate::body_budget::Budgets;
use crate::connection;
use crate::counters::SqsCounters;
use crate::limits::{ANSWERS_MAX, STOP_MAX};
use crate::origins::AllowedOrigins;
use crate::phases::Connections;
use crate::request::Endpoints;
use crate::worker::{Place, Worker};

/// What [`SqsServer::start`] needs to know.
#[derive(Clone, Debug)]
pub struct SqsSettings {
    /// Threads of its own; each serves the connections that it accepts. Ignored by
    /// [`SqsServer::on_other_thread`].
    pub threads: usize,
    /// The account of those who need no key.
    pub account: Arc<str>,
    /// The region in ARNs.
    pub region: Arc<str>,
    /// The class of queues that are made without the attribute `Class`.
    pub default_class: QueueClass,
    /// Which requests have to be signed with a known key.
    pub verify: Verify,
    /// Names, beside those that no web page can have, by which requests from this machine may ask without a key.
    pub hosts: HostNames,
    /// The origins whose web pages may ask, signing with a known key.
    pub origins: AllowedOrigins,
    /// Most connections; further ones are closed at once.
    pub connections_max: usize,
    /// Most bytes of the bodies of all requests that are being read or served, and of all answers that wait for
    /// their clients to read them; what comes beyond them is refused ([`BODIES_BYTES_MAX`](crate::BODIES_BYTES_MAX) unless there is a reason).
    pub bodies_bytes_max: usize,
    /// How long a connection may do nothing, or not read its answer.
    pub idle_max: Duration,
    /// How long a request may take to arrive.
    pub request_max: Duration,
    /// Where it counts.
    pub counters: Arc<SqsCounters>,
    /// Is notified of what is changed of queues.
    pub changes: ChangeSink,
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start an SQS thread: {0}")]
pub struct SqsStartError(#[from] io::Error);

/// A server that runs.
#[derive(Debug)]
pub struct SqsServer {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    /// Ends when the task on the core's thread has ended.
    task: Option<Receiver<()>>,
}

impl SqsServer {
    /// Serves `queues`, to those whom `identity` knows, on these listeners, which must not block.
    ///
    /// # Errors
    /// [`SqsStartError`] if the system gives no thread or does not take a listener.
    pub fn start<Q: Queues, I: Identity>(
        listeners: Vec<StdListener>,
        queues: &Q,
        identity: &I,
        settings: &SqsSettings,
    ) -> Result<Self, SqsStartError> {
        let addresses = listeners.iter().map(StdListener::local_addr).collect::<Result<_, _>>()?;
        let (stop, stopping) = watch::channel(false);
        let budgets = Budgets::new(settings.bodies_bytes_max);
        let mut threads = Vec::new();
        for number in 0..settings.threads.max(1) {
            let listeners: Vec<_> =
                listeners.iter().map(StdListener::try_clone).collect::<Result<_, _>>()?;
            let (queues, identity, settings) = (queues.clone(), identity.clone(), settings.clone());
            let (stopping, budgets) = (stopping.clone(), budgets.clone());
            let run = move || {
                if let Err(error) = run(listeners, (queues, identity), &settings, budgets, stopping)
                {
                    tracing::error!(%error, "an SQS thread could not start");
                }
            };
            threads.push(std::thread::Builder::new().name(format!("sqs-{number}")).spawn(run)?);
        }
        Ok(Self { addresses, stop, threads, task: None })
    }

    /// Prepares to serve on a thread that has a runtime already, such as the broker's own: handing a
    /// request from thread to thread costs more than serving it. The server runs once its task is
    /// spawned there as a local one.
    ///
    /// # Errors
    /// [`SqsStartError`] if a listener has no address.
    pub fn on_other_thread<Q: Queues, I: Identity>(
        listeners: Vec<StdListener>,
        queues: &Q,
        identity: &I,
        settings: &SqsSettings,
    ) -> Result<(Self, impl AsyncFnOnce() + Send + use<Q, I>), SqsStartError> {
        let addresses = listeners.iter().map(StdListener::local_addr).collect::<Result<_, _>>()?;
        let (stop, stopping) = watch::channel(false);
        let (ended, task) = channel();
        let (queues, identity, settings) = (queues.clone(), identity.clone(), settings.clone());
        let run = async move || {
            let budgets = Budgets::new(settings.bodies_bytes_max);
            if let Err(error) =
                serve(listeners, (queues, identity), &settings, budgets, stopping).await
            {
                tracing::error!(%error, "SQS could not start");
            }
            drop(ended);
        };
        Ok((Self { addresses, stop, threads: Vec::new(), task: Some(task) }, run))
    }

    /// Returns the addresses at which it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes no more connections and requests, answers those that are there within five seconds, and
    /// ends. Receives that wait have received nothing.
    pub fn stop(self) {
        // Without receivers every thread has ended.
        let _ = self.stop.send(true);
        if let Some(task) = self.task {
            // Nothing is ever sent: this waits for its end.
            let _ = task.recv_timeout(ANSWERS_MAX + 2 * STOP_MAX);
        }
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::warn!("an SQS thread panicked");
            }
        }
    }
}

/// Runs a thread, from start to end.
fn run<Q: Queues, I: Identity>(
    listeners: Vec<StdListener>,
    store: (Q, I),
    settings: &SqsSettings,
    budgets: Budgets,
    stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // What still runs at the end is dropped with the set.
    let serve = serve(listeners, store, settings, budgets, stopping);
    runtime.block_on(LocalSet::new().run_until(serve))
}

/// Serves until the server stops, on a thread that takes local tasks.
async fn serve<Q: Queues, I: Identity>(
    listeners: Vec<StdListener>,
    store: (Q, I),
    settings: &SqsSettings,
    budgets: Budgets,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let (queues, identity) = store;
    let (region, default_class) = (settings.region.clone(), settings.default_class);
    let service = ServiceSettings { region, default_class, changes: settings.changes.clone() };
    let worker = Rc::new(Worker {
        service: Service::new(queues, identity, service),
        authentication: Authentication::new(
            settings.verify,
            settings.hosts.clone(),
            settings.origins.clone(),
            settings.account.clone(),
        ),
        connections: Connections::new(settings.idle_max, settings.request_max),
        connections_max: settings.connections_max,
        budgets,
        failures_logged: Cell::new(0),
        counters: Arc::clone(&settings.counters),
        stopping: stopping.clone(),
    });
    let mut accepting = Vec::new();
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        let accept = accept(Rc::clone(&worker), listener, stopping.clone());
        accepting.push(tokio::task::spawn_local(accept));
    }
    let sweeping = Rc::clone(&worker);
    let sweep = tokio::task::spawn_local(async move {
        sweeping.connections.sweep(&sweeping.counters, &sweeping.budgets.answers).await;
    });
    // An error is the sender's end, which means the same.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    drain(&worker).await;
    sweep.abort();
    worker.connections.abort_all();
    Ok(())
}

/// Waits until all is answered, and no connection is left, for a while: who reads no answer, or sends no more of a request, is
/// not waited for as long.
async fn drain<Q, I>(worker: &Worker<Q, I>) {
    const POLL_INTERVAL: Duration = Duration::from_millis(10);
    let connections = &worker.connections;
    let began = Instant::now();
    let mut answered_at = began;
    while connections.len() > 0 && answered_at.elapsed() < STOP_MAX {
        if connections.is_any_answering() && began.elapsed() < ANSWERS_MAX {
            answered_at = Instant::now();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Accepts connections and starts a task for each, for ever.
async fn accept<Q: Queues, I: Identity>(
    worker: Rc<Worker<Q, I>>,
    listener: TcpListener,
    stopping: watch::Receiver<bool>,
) {
    let mut acceptor = Acceptor::new(listener, "SQS connections");
    loop {
        let (stream, peer) = acceptor.accept(|| ()).await;
        admit(&worker, stream, peer, &stopping);
    }
}

fn admit<Q: Queues, I: Identity>(
    worker: &Rc<Worker<Q, I>>,
    stream: TcpStream,
    peer: SocketAddr,
    stopping: &watch::Receiver<bool>,
) {
    // Both fail only if the peer is gone already.
    let Ok(local) = stream.local_addr() else { return };
    if quelea_net::prepare_socket(&stream).is_err() {
        return;
    }
    let Some((place, progress)) = Place::take(worker) else {
        tracing::debug!(%peer, "refused an SQS connection: there are too many");
        return;
    };
    let number = place.number;
    let serve = connection::serve(
        Rc::clone(worker),
        progress,
        stream,
        Endpoints { peer, local },
        stopping.clone(),
    );
    let task = tokio::task::spawn_local(async move {
        let _place = place;
        serve.await;
    });
    worker.connections.set_abort(number, task.abort_handle());
}
