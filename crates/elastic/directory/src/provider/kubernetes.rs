//! Relays as pods. Each queue has a custom resource `ElasticQueue`, which owns the pods of its relays; we make
//! and delete pods one by one, since a set of replicas would not let us choose which relay goes.
//! Nothing is polled: pods and resources are watched. Start with [`KubernetesProvider`].

mod api_error;
mod names;
mod pod;
mod pod_watch;
mod queue_resources;
mod queue_watch;
mod resource;
mod settings;
mod status_writer;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use quelea_elastic_core::directory::{
    QueueStatus, RelayHandle, RelaySpec, Settings as DirectorySettings,
};
use quelea_elastic_proto::RelayId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::api_error::{has_reason, with_timeout};
use self::pod::PodMaker;
pub use self::pod::TemplateError;
use self::pod_watch::PodWatch;
use self::queue_resources::Resources;
use self::queue_watch::QueueWatch;
pub use self::resource::{
    ElasticQueue, ElasticQueueSla, ElasticQueueSpec, ElasticQueueStatus, LoadStatus, RelayCounts,
};
pub use self::settings::Settings;
use self::status_writer::{QueueStates, StatusWriter};
use super::{Provider, ProviderError, ProviderEvent, RelayCommand, Running};
use crate::ResultFuture;

/// The provider's name.
const PROVIDER: &str = "kubernetes";
/// One call of the API server: longer than its own slowest answers, shorter than a start's patience.
const CALL_MAX: Duration = Duration::from_secs(10);
/// A start tries again so long while the API server does not answer.
const START_MAX: Duration = Duration::from_secs(30);
/// Between two tries of a start.
const START_AGAIN: Duration = Duration::from_millis(500);
/// Events that wait for the directory; beyond it the watch waits, and the API server keeps what comes.
const EVENTS_MAX: usize = 1_024;

/// Starts relays as pods.
pub struct KubernetesProvider {
    pods: Api<Pod>,
    maker: PodMaker,
    site: String,
    resources: Resources,
    starts: Mutex<Starts>,
    states: Arc<QueueStates>,
    events: tokio::sync::Mutex<mpsc::Receiver<ProviderEvent>>,
    _tasks: JoinSet<()>,
}

/// Starts under way, so that a stop can overtake one whose pod's fate is not known yet.
#[derive(Default)]
struct Starts {
    under_way: BTreeSet<(String, RelayId)>,
    given_up: BTreeSet<(String, RelayId)>,
}

impl Starts {
    fn give_up(&mut self, key: (String, RelayId)) {
        if self.under_way.contains(&key) {
            self.given_up.insert(key);
        }
    }
}

impl KubernetesProvider {
    /// Finds the cluster (its own, inside a pod; else the kubeconfig's) and begins to watch it. `directory` says
    /// what a queue is meant to be whose resource says nothing, and what a resource may ask for. The API
    /// server need not answer yet.
    ///
    /// # Errors
    /// [`ProviderError::Refused`] when there is no cluster to be found, or a setting is wrong.
    pub async fn connect(
        settings: Settings,
        command: RelayCommand,
        directory: DirectorySettings,
    ) -> Result<Self, ProviderError> {
        let refused = |cause: String| ProviderError::Refused {
            provider: PROVIDER,
            what: "be set up".to_owned(),
            cause,
        };
        let maker =
            PodMaker::new(&settings, command).map_err(|error| refused(error.to_string()))?;
        let (client, namespace) = client(&settings).await.map_err(refused)?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let queues: Api<ElasticQueue> = Api::namespaced(client, &namespace);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let resources = Resources::new(queues.clone());
        let states = Arc::new(QueueStates::default());
        let labels = pod::selector(&pod::site_labels(&settings.site));
        let mut tasks = JoinSet::new();
        let watch = PodWatch::new(pods.clone(), labels, settings.ended_pods_kept, sender.clone());
        tasks.spawn(watch.run());
        tasks.spawn(QueueWatch::new(resources.clone(), directory, sender).run());
        tasks.spawn(
            StatusWriter::new(resources.clone(), settings.site.clone(), states.clone()).run(),
        );
        tracing::info!(%namespace, site = settings.site, "relays are pods");
        let site = settings.site;
        let events = tokio::sync::Mutex::new(events);
        Ok(Self {
            pods,
            maker,
            site,
            resources,
            starts: Mutex::default(),
            states,
            events,
            _tasks: tasks,
        })
    }

    async fn start_pod(&self, spec: &RelaySpec) -> Result<RelayHandle, ProviderError> {
        let begun = Instant::now();
        loop {
            match self.try_start(spec).await {
                Err(ProviderError::Unavailable { cause, .. }) if begun.elapsed() < START_MAX => {
                    tracing::debug!(queue = spec.queue, relay = spec.relay.0, %cause, "a start is tried again");
                    tokio::time::sleep(START_AGAIN).await;
                }
                outcome => return outcome,
            }
            // A request whose pod may or may not be there is asked for again: its name decides.
            if self.starts().given_up.contains(&key(spec)) {
                return Err(given_up(spec));
            }
        }
    }

    async fn try_start(&self, spec: &RelaySpec) -> Result<RelayHandle, ProviderError> {
        let what = || format!("start relay {} of {:?}", spec.relay.0, spec.queue);
        let owner = self.resources.owner_of(&spec.queue, &what).await?;
        let pod = self.maker.pod(spec, owner)?;
        let name = pod.metadata.name.clone().unwrap_or_default();
        let created = with_timeout(&what, self.pods.create(&PostParams::default(), &pod)).await;
        match created {
            Ok(_) => Ok(()),
            Err(error) if has_reason(&error, "AlreadyExists") => {
                self.accept(spec, &name, &what).await
            }
            Err(error) => Err(error.of(&what)),
        }?;
        let handle = RelayHandle { relay: spec.relay, request: spec.request.clone(), name };
        if self.starts().given_up.contains(&key(spec)) {
            self.delete(&handle.name, Duration::ZERO, &what).await?;
            return Err(given_up(spec));
        }
        Ok(handle)
    }

    /// Accepts a pod that is there already: it has to be this request's, and not ended.
    async fn accept(
        &self,
        spec: &RelaySpec,
        name: &str,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<(), ProviderError> {
        let found =
            with_timeout(what, self.pods.get_opt(name)).await.map_err(|error| error.of(what))?;
        let ended = |cause: String| ProviderError::Ended { request: spec.request.clone(), cause };
        let Some(found) = found else { return Err(ended("pod deleted".to_owned())) };
        let same = pod::running(&found).is_some_and(|running| {
            running.queue == spec.queue && running.handle.request == spec.request
        });
        if !same {
            let cause = format!("pod {name} is there and is not this request's");
            return Err(ProviderError::Refused { provider: PROVIDER, what: what(), cause });
        }
        if let Some(cause) = pod::end_of(&found) {
            return Err(ended(cause));
        }
        match found.metadata.deletion_timestamp {
            Some(_) => Err(ended("pod is being deleted".to_owned())),
            None => Ok(()),
        }
    }

    async fn list_pods(&self, queue: Option<&str>) -> Result<Vec<Running>, ProviderError> {
        let what = || match queue {
            Some(queue) => format!("list the relays of {queue:?}"),
            None => "list its relays".to_owned(),
        };
        let mut labels = pod::site_labels(&self.site);
        if let Some(queue) = queue {
            labels.insert(names::QUEUE.to_owned(), names::of_queue(queue));
        }
        let asked = ListParams::default().labels(&pod::selector(&labels));
        let pods =
            with_timeout(&what, self.pods.list(&asked)).await.map_err(|error| error.of(&what))?;
        let alive = pods.items.iter().filter(|pod| pod::end_of(pod).is_none());
        let mut relays: Vec<Running> = alive
            .filter_map(pod::running)
            .filter(|running| queue.is_none_or(|queue| running.queue == queue))
            .collect();
        relays.sort_by(|a, b| (&a.queue, a.handle.relay).cmp(&(&b.queue, b.handle.relay)));
        Ok(relays)
    }

    async fn stop_pod(
        &self,
        queue: &str,
        handle: &RelayHandle,
        grace: Duration,
    ) -> Result<(), ProviderError> {
        let what = || format!("stop relay {} of {queue:?}", handle.relay.0);
        self.starts().give_up((queue.to_owned(), handle.relay));
        if !handle.name.is_empty() {
            return self.delete(&handle.name, grace, &what).await;
        }
        for running in self.list_pods(Some(queue)).await? {
            if running.handle.relay == handle.relay {
                self.delete(&running.handle.name, grace, &what).await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        name: &str,
        grace: Duration,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<(), ProviderError> {
        // Whole seconds, rounded up: 0 would mean at once, without a SIGTERM.
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        let asked = DeleteParams {
            grace_period_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)),
            ..DeleteParams::default()
        };
        match with_timeout(what, self.pods.delete(name, &asked)).await {
            Ok(_) => Ok(()),
            Err(error) if has_reason(&error, "NotFound") => Ok(()),
            Err(error) => Err(error.of(what)),
        }
    }

    fn starts(&self) -> MutexGuard<'_, Starts> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for KubernetesProvider {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn start<'a>(&'a self, spec: &'a RelaySpec) -> ResultFuture<'a, RelayHandle, ProviderError> {
        Box::pin(async move {
            self.starts().under_way.insert(key(spec));
            let outcome = self.start_pod(spec).await;
            let mut starts = self.starts();
            starts.under_way.remove(&key(spec));
            starts.given_up.remove(&key(spec));
            outcome
        })
    }

    fn list<'a>(&'a self, queue: Option<&'a str>) -> ResultFuture<'a, Vec<Running>, ProviderError> {
        Box::pin(self.list_pods(queue))
    }

    fn stop<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
        grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError> {
        Box::pin(self.stop_pod(queue, handle, grace))
    }

    /// Deletes the pod: the deletion timestamp says which pod goes, and when at the latest; its
    /// SIGTERM says nothing new to a relay that is being drained.
    fn drain<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
        grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError> {
        Box::pin(self.stop_pod(queue, handle, grace))
    }

    fn event(&self) -> Pin<Box<dyn Future<Output = ProviderEvent> + Send + '_>> {
        Box::pin(async move {
            let mut events = self.events.lock().await;
            match events.recv().await {
                Some(event) => event,
                // The watches have ended, which they do only with us.
                None => std::future::pending().await,
            }
        })
    }

    fn forget<'a>(&'a self, queue: &'a str) -> ResultFuture<'a, (), ProviderError> {
        Box::pin(async move {
            self.states.forget(queue);
            if !self.resources.forget(queue).await? {
                self.states.clear(queue);
            }
            Ok(())
        })
    }

    fn show(&self, status: &QueueStatus) {
        self.states.put(status);
    }
}

fn key(spec: &RelaySpec) -> (String, RelayId) {
    (spec.queue.clone(), spec.relay)
}

fn given_up(spec: &RelaySpec) -> ProviderError {
    let cause = "stopped before it was started".to_owned();
    ProviderError::Ended { request: spec.request.clone(), cause }
}

/// Creates a client of the cluster. Returns it, and the namespace to work in.
async fn client(settings: &Settings) -> Result<(Client, String), String> {
    let mut config = if settings.context.is_empty() {
        Config::infer().await.map_err(|error| error.to_string())?
    } else {
        let context = Some(settings.context.clone());
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let found = Config::from_kubeconfig(&options).await;
        found.map_err(|error| format!("context: {:?}: {error}", settings.context))?
    };
    config.connect_timeout = Some(CALL_MAX);
    let namespace = if settings.namespace.is_empty() {
        config.default_namespace.clone()
    } else {
        settings.namespace.clone()
    };
    let client = Client::try_from(config).map_err(|error| error.to_string())?;
    Ok((client, namespace))
}
