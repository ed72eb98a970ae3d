//! Sees what users ask of queues in their resources.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::StreamExt;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use quelea_elastic_core::directory::Settings;
use tokio::sync::mpsc;

use super::pod_watch::{WATCH_MAX_S, WatchBackoff};
use super::queue_resources::Resources;
use super::resource::ElasticQueue;
use super::status_writer::accept;
use crate::provider::ProviderEvent;

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
        let mut seen = pin!(watch.backoff(WatchBackoff::default()));
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
        if before.as_ref().is_some_and(|before| is_same_request(before, &resource)) {
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

/// Returns whether two states of a resource ask for the same thing: a change of its status alone is
/// our own.
fn is_same_request(before: &ElasticQueue, now: &ElasticQueue) -> bool {
    before.spec == now.spec && before.metadata.uid == now.metadata.uid
}
