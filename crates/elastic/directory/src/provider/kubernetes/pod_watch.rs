//! Sees relays' pods end, whoever ended them and whether we looked or not, and sweeps up what is left of them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api_error::{has_reason, with_timeout};
use super::pod;
use crate::provider::{Ended, ProviderEvent, Running};

/// The API server is asked again at least so often: a connection that died silently is noticed.
pub(super) const WATCH_MAX_S: u32 = 60;
/// After the first failure of a watch; doubles with each one more.
const AGAIN_MIN: Duration = Duration::from_millis(250);
/// Between two tries while the API server is away: it is one watch for a directory, so the load is small.
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Watches the pods of one site.
pub(super) struct PodWatch {
    pods: Api<Pod>,
    labels: String,
    kept: Duration,
    events: mpsc::Sender<ProviderEvent>,
    known: BTreeMap<String, PodState>,
    /// Pods seen since the list that is being read began.
    listed: BTreeSet<String>,
    /// Pods that have ended, by the time when they are swept up, with their uid.
    sweeps: BTreeMap<(Instant, String), String>,
}

/// What is known of a pod.
struct PodState {
    running: Running,
    /// Why it has not come up yet, as last seen.
    held_up: Option<String>,
    /// Its end was reported.
    ended: bool,
}

impl PodWatch {
    pub(super) fn new(
        pods: Api<Pod>,
        labels: String,
        kept: Duration,
        events: mpsc::Sender<ProviderEvent>,
    ) -> Self {
        let known = BTreeMap::new();
        Self { pods, labels, kept, events, known, listed: BTreeSet::new(), sweeps: BTreeMap::new() }
    }

    /// Watches until the provider is dropped.
    pub(super) async fn run(mut self) {
        let asked = watcher::Config::default().labels(&self.labels).timeout(WATCH_MAX_S);
        let mut seen = pin!(watcher(self.pods.clone(), asked).backoff(WatchBackoff::default()));
        loop {
            let sweep = self.sweeps.keys().next().map(|(at, _)| *at);
            tokio::select! {
                event = seen.next() => match event {
                    Some(Ok(event)) => self.take(event).await,
                    Some(Err(error)) => tracing::warn!(%error, "pods cannot be watched"),
                    None => return,
                },
                () = until(sweep) => self.sweep().await,
            }
        }
    }

    async fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.name.clone());
                self.see(&pod).await;
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> =
                    self.known.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                for name in gone {
                    self.forget(&name, "pod deleted while it could not be watched".to_owned())
                        .await;
                }
            }
            Event::Apply(pod) => self.see(&pod).await,
            Event::Delete(pod) => {
                let cause = pod::end_of(&pod).unwrap_or_else(|| "pod deleted".to_owned());
                self.forget(pod.metadata.name.as_deref().unwrap_or_default(), cause).await;
            }
        }
    }

    async fn see(&mut self, pod: &Pod) {
        let Some(running) = pod::running(pod) else { return };
        let name = running.handle.name.clone();
        let known = self.known.entry(name.clone()).or_insert_with(|| PodState {
            running,
            held_up: None,
            ended: false,
        });
        let held_up = pod::held_up_by(pod);
        if held_up.is_some() && held_up != known.held_up {
            let cause = held_up.as_deref().unwrap_or_default();
            tracing::warn!(
                pod = name,
                queue = known.running.queue,
                cause,
                "a relay does not come up"
            );
        }
        // A pod that runs is held up by nothing any more; one that goes keeps the reason why it never ran.
        if pod.metadata.deletion_timestamp.is_none() {
            known.held_up = held_up;
        }
        if known.ended {
            return;
        }
        let Some(cause) = pod::end_of(pod) else { return };
        known.ended = true;
        let running = known.running.clone();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.sweeps.insert((Instant::now() + self.kept, name), uid);
        self.report_end(running, cause).await;
    }

    async fn forget(&mut self, name: &str, mut cause: String) {
        let Some(known) = self.known.remove(name) else { return };
        if known.ended {
            return;
        }
        if let Some(held_up) = known.held_up {
            cause = format!("{cause}; it never ran: {held_up}");
        }
        self.report_end(known.running, cause).await;
    }

    async fn report_end(&self, running: Running, cause: String) {
        let ended = Ended { queue: running.queue, handle: running.handle, cause };
        // The receiver is the provider, which ends this task when it goes.
        let _ = self.events.send(ProviderEvent::Ended(ended)).await;
    }

    /// Deletes the pods whose time is over: only those that we have seen end.
    async fn sweep(&mut self) {
        while let Some(first) = self.sweeps.first_entry() {
            if first.key().0 > Instant::now() {
                return;
            }
            let ((_, name), uid) = first.remove_entry();
            let preconditions = Preconditions { uid: Some(uid), resource_version: None };
            let asked = DeleteParams::default().grace_period(0).preconditions(preconditions);
            let what = || format!("delete the ended pod {name}");
            match with_timeout(&what, self.pods.delete(&name, &asked)).await {
                Ok(_) => {}
                Err(error) if has_reason(&error, "NotFound") || has_reason(&error, "Conflict") => {}
                Err(error) => tracing::warn!(pod = name, %error, "an ended pod stays"),
            }
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// How long a watch that failed waits before it begins again. `backon`'s are not `Backoff`s of `kube`, which are reset.
#[derive(Default)]
pub(super) struct WatchBackoff {
    last: Option<Duration>,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next = self.last.map_or(AGAIN_MIN, |last| (last * 2).min(AGAIN_MAX));
        self.last = Some(next);
        Some(next)
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.last = None;
    }
}
