//! Sees what users ask of queues in their resources, and finds the resource of a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use quelea_elastic_core::directory::Settings;
use tokio::sync::{Notify, mpsc};

use super::PROVIDER;
use super::api_error::{is, limited};
use super::names;
use super::pod_watch::{Patience, WATCH_MAX_S};
use super::resource::{ElasticQueue, ElasticQueueSpec};
use super::shown::accept;
use crate::provider::{ProviderError, ProviderEvent};

/// The resources of all queues, as last seen. Shared by whoever needs one.
#[derive(Clone)]
pub(super) struct Resources {
    pub(super) api: Api<ElasticQueue>,
    seen: Arc<Mutex<BTreeMap<String, ElasticQueue>>>,
    /// One came that was not there before: what its queue is waits to be written to it.
    pub(super) arrived: Arc<Notify>,
}

/// Our own writes of a status may come between reading a resource and deleting it.
const FORGET_TRIES_MAX: usize = 5;

impl Resources {
    pub(super) fn new(api: Api<ElasticQueue>) -> Self {
        Self { api, seen: Arc::default(), arrived: Arc::default() }
    }

    /// The resource of a queue; the oldest one, if there are several.
    pub(super) fn of(&self, queue: &str) -> Option<ElasticQueue> {
        let seen = self.seen();
        let of_queue = seen.values().filter(|resource| resource.queue() == queue);
        of_queue.min_by_key(|resource| age(resource)).cloned()
    }

    /// The reference by which the queue's resource owns pods; the resource is made if there is none.
    pub(super) async fn owner_of(
        &self,
        queue: &str,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<OwnerReference, ProviderError> {
        if let Some(resource) = self.of(queue) {
            return Ok(owner(&resource));
        }
        let name = names::of_queue(queue);
        let labels = [(names::MANAGED_BY.to_owned(), names::MANAGER.to_owned())].into();
        let resource = ElasticQueue {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: ElasticQueueSpec {
                queue: (name != queue).then(|| queue.to_owned()),
                ..ElasticQueueSpec::default()
            },
            status: None,
        };
        match limited(what, self.api.create(&PostParams::default(), &resource)).await {
            Ok(made) => Ok(owner(&made)),
            Err(error) if is(&error, "AlreadyExists") => self.found(queue, &name, what).await,
            Err(error) => Err(error.of(what)),
        }
    }

    /// Deletes the resource of a queue that is gone, if it was made on the queue's first use, and tells whether. A
    /// user's own stays: it makes the queue again when it is changed, or when the directory starts.
    pub(super) async fn forget(&self, queue: &str) -> Result<bool, ProviderError> {
        let Some(seen) = self.of(queue) else { return Ok(true) };
        let name = seen.name_any();
        let what = || format!("delete ElasticQueue {name}");
        for _ in 0..FORGET_TRIES_MAX {
            let found = limited(&what, self.api.get_opt(&name)).await;
            let Some(now) = found.map_err(|error| error.of(&what))? else { return Ok(true) };
            if !made_by_us(&now) || now.uid() != seen.uid() {
                return Ok(false);
            }
            // Only what we have just read: a user may be about to ask for something.
            let preconditions =
                Preconditions { uid: now.uid(), resource_version: now.resource_version() };
            let asked = DeleteParams::default().preconditions(preconditions);
            match limited(&what, self.api.delete(&name, &asked)).await {
                Ok(_) => return Ok(true),
                Err(error) if is(&error, "NotFound") => return Ok(true),
                Err(error) if is(&error, "Conflict") => {}
                Err(error) => return Err(error.of(&what)),
            }
        }
        let cause = format!("it was changed {FORGET_TRIES_MAX} times meanwhile");
        Err(ProviderError::Unavailable { provider: PROVIDER, what: what(), cause })
    }

    /// It is there and was not seen yet, or it is another queue's.
    async fn found(
        &self,
        queue: &str,
        name: &str,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<OwnerReference, ProviderError> {
        let found = limited(what, self.api.get(name)).await.map_err(|error| error.of(what))?;
        let unavailable =
            |cause: String| ProviderError::Unavailable { provider: PROVIDER, what: what(), cause };
        if found.queue() != queue {
            let cause = format!("ElasticQueue {name} is that of the queue {:?}", found.queue());
            return Err(ProviderError::Refused { provider: PROVIDER, what: what(), cause });
        }
        if found.metadata.deletion_timestamp.is_some() {
            return Err(unavailable(format!("ElasticQueue {name} is being deleted")));
        }
        Ok(owner(&found))
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, ElasticQueue>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the resources of one namespace.
pub(super) struct QueueWatch {
    resources: Resources,
    directory: Settings,
    events: mpsc::Sender<ProviderEvent>,
    listed: BTreeSet<String>,
}

impl QueueWatch {
    pub(super) fn new(
        resources: Resources,
        directory: Settings,
        events: mpsc::Sender<ProviderEvent>,
    ) -> Self {
        Self { resources, directory, events, listed: BTreeSet::new() }
    }

    /// Watches until the provider is dropped.
    pub(super) async fn run(mut self) {
        let asked = watcher::Config::default().timeout(WATCH_MAX_S);
        let watch = watcher(self.resources.api.clone(), asked);
        let mut seen = pin!(watch.backoff(Patience::default()));
        while let Some(event) = seen.next().await {
            match event {
                Ok(event) => self.take(event).await,
                Err(error) => tracing::warn!(%error, "ElasticQueues cannot be watched"),
            }
        }
    }

    async fn take(&mut self, event: Event<ElasticQueue>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(resource) => {
                self.listed.insert(resource.name_any());
                self.see(resource).await;
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let seen: Vec<String> = self.resources.seen().keys().cloned().collect();
                for name in seen.iter().filter(|name| !listed.contains(*name)) {
                    self.forget(name).await;
                }
            }
            Event::Apply(resource) => self.see(resource).await,
            Event::Delete(resource) => self.forget(&resource.name_any()).await,
        }
    }

    async fn see(&self, resource: ElasticQueue) {
        // What is being deleted owns nothing new, and says nothing new.
        if resource.metadata.deletion_timestamp.is_some() {
            return;
        }
        let name = resource.name_any();
        let before = self.resources.seen().insert(name.clone(), resource.clone());
        if before.as_ref().is_none_or(|before| before.uid() != resource.uid()) {
            self.resources.arrived.notify_one();
        }
        if before.as_ref().is_some_and(|before| same_wish(before, &resource)) {
            return;
        }
        let queue = resource.queue().to_owned();
        let first = self.resources.of(&queue).map(|first| first.name_any());
        let verdict = match first.filter(|first| *first != name) {
            Some(first) => Err(format!("queue: {queue:?} is that of ElasticQueue {first}")),
            None => self.define(&queue, &resource, before.is_some()).await,
        };
        accept(&self.resources, &resource, &verdict).await;
    }

    async fn define(
        &self,
        queue: &str,
        resource: &ElasticQueue,
        again: bool,
    ) -> Result<(), String> {
        let base = &self.directory.definition;
        let asked = resource.definition(base).and_then(|asked| {
            asked.as_ref().unwrap_or(base).validate_in(queue, &self.directory)?;
            Ok(asked)
        });
        let definition = match asked {
            Ok(Some(definition)) => definition,
            // Nothing is asked for, and nothing was: whoever defined the queue otherwise is right.
            Ok(None) if !again => return Ok(()),
            Ok(None) => base.clone(),
            Err(error) => {
                tracing::warn!(queue, %error, "an ElasticQueue is not accepted");
                return Err(error.to_string());
            }
        };
        let event = ProviderEvent::Define { queue: queue.to_owned(), definition };
        // The receiver is the provider, which ends this task when it goes.
        let _ = self.events.send(event).await;
        Ok(())
    }

    async fn forget(&self, name: &str) {
        let Some(gone) = self.resources.seen().remove(name) else { return };
        let queue = gone.queue().to_owned();
        match self.resources.of(&queue) {
            // Of two resources of one queue, the one that stays is heard now.
            Some(other) => {
                let verdict = self.define(&queue, &other, true).await;
                accept(&self.resources, &other, &verdict).await;
            }
            None => {
                let _ = self.events.send(ProviderEvent::Delete { queue }).await;
            }
        }
    }
}

/// Whether a resource stands only for a queue that somebody used.
fn made_by_us(resource: &ElasticQueue) -> bool {
    let ours = resource.labels().get(names::MANAGED_BY).is_some_and(|by| by == names::MANAGER);
    let spec = ElasticQueueSpec { queue: None, ..resource.spec.clone() };
    ours && spec == ElasticQueueSpec::default()
}

/// Whether two states of a resource ask for the same: a change of its status alone is our own.
fn same_wish(before: &ElasticQueue, now: &ElasticQueue) -> bool {
    before.spec == now.spec && before.metadata.uid == now.metadata.uid
}

fn age(resource: &ElasticQueue) -> (Option<k8s_openapi::jiff::Timestamp>, String) {
    let made = resource.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (made, resource.name_any())
}

/// Not one that blocks the deletion of its owner, which would need a right more.
fn owner(resource: &ElasticQueue) -> OwnerReference {
    OwnerReference {
        api_version: ElasticQueue::api_version(&()).into_owned(),
        kind: ElasticQueue::kind(&()).into_owned(),
        name: resource.name_any(),
        uid: resource.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
