//! The custom resources of queues: found, made and deleted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Resource, ResourceExt};
use tokio::sync::Notify;

use super::PROVIDER;
use super::api_error::{has_reason, with_timeout};
use super::names;
use super::resource::{ElasticQueue, ElasticQueueSpec};
use crate::provider::ProviderError;

/// The resources of all queues, as last seen. Clones share it.
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

    /// Returns the resource of a queue; the oldest one, if there are several.
    pub(super) fn of(&self, queue: &str) -> Option<ElasticQueue> {
        let seen = self.seen();
        let of_queue = seen.values().filter(|resource| resource.queue() == queue);
        of_queue.min_by_key(|resource| age(resource)).cloned()
    }

    /// Returns the reference by which the queue's resource owns pods; the resource is made if there
    /// is none.
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
        match with_timeout(what, self.api.create(&PostParams::default(), &resource)).await {
            Ok(made) => Ok(owner(&made)),
            Err(error) if has_reason(&error, "AlreadyExists") => {
                self.found(queue, &name, what).await
            }
            Err(error) => Err(error.of(what)),
        }
    }

    /// Deletes the resource of a queue that is gone, if it was made on the queue's first use, and returns whether. A
    /// user's own stays: it makes the queue again when it is changed, or when the directory starts.
    pub(super) async fn forget(&self, queue: &str) -> Result<bool, ProviderError> {
        let Some(seen) = self.of(queue) else { return Ok(true) };
        let name = seen.name_any();
        let what = || format!("delete ElasticQueue {name}");
        for _ in 0..FORGET_TRIES_MAX {
            let found = with_timeout(&what, self.api.get_opt(&name)).await;
            let Some(now) = found.map_err(|error| error.of(&what))? else { return Ok(true) };
            if !made_by_us(&now) || now.uid() != seen.uid() {
                return Ok(false);
            }
            // Only what we have just read: a user may be about to ask for something.
            let preconditions =
                Preconditions { uid: now.uid(), resource_version: now.resource_version() };
            let asked = DeleteParams::default().preconditions(preconditions);
            // Before the watch says so: its word would end the queue of the same name that a client asks for now.
            let was = self.seen().remove(&name);
            let deleted = with_timeout(&what, self.api.delete(&name, &asked)).await;
            let error = match deleted {
                Ok(_) => return Ok(true),
                Err(error) if has_reason(&error, "NotFound") => return Ok(true),
                Err(error) => error,
            };
            if let Some(was) = was {
                self.seen().entry(name.clone()).or_insert(was);
            }
            if !has_reason(&error, "Conflict") {
                return Err(error.of(&what));
            }
        }
        let cause = format!("it was changed {FORGET_TRIES_MAX} times meanwhile");
        Err(ProviderError::Unavailable { provider: PROVIDER, what: what(), cause })
    }

    /// Returns the reference to a resource that is there and was not seen yet, unless it is another
    /// queue's.
    async fn found(
        &self,
        queue: &str,
        name: &str,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<OwnerReference, ProviderError> {
        let found = with_timeout(what, self.api.get(name)).await.map_err(|error| error.of(what))?;
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

    pub(super) fn seen(&self) -> MutexGuard<'_, BTreeMap<String, ElasticQueue>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a resource stands only for a queue that somebody used.
fn made_by_us(resource: &ElasticQueue) -> bool {
    let ours = resource.labels().get(names::MANAGED_BY).is_some_and(|by| by == names::MANAGER);
    let spec = ElasticQueueSpec { queue: None, ..resource.spec.clone() };
    ours && spec == ElasticQueueSpec::default()
}

fn age(resource: &ElasticQueue) -> (Option<k8s_openapi::jiff::Timestamp>, String) {
    let made = resource.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (made, resource.name_any())
}

/// Returns a reference that does not block the deletion of its owner, which would need a right
/// more.
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
