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
/// After the deletion of a pod that did not work.
const SWEEP_AGAIN: Duration = Duration::from_secs(5);

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
    /// No pod is swept up before, since the API server was away.
    sweeps_from: Instant,
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
        Self {
            pods,
            labels,
            kept,
            events,
            known: BTreeMap::new(),
            listed: BTreeSet::new(),
            sweeps: BTreeMap::new(),
            sweeps_from: Instant::now(),
        }
    }

    /// Watches until the provider is dropped.
    pub(super) async fn run(mut self) {
        let asked = watcher::Config::default().labels(&self.labels).timeout(WATCH_MAX_S);
        let mut seen = pin!(watcher(self.pods.clone(), asked).backoff(WatchBackoff::default()));
        loop {
            tokio::select! {
                event = seen.next() => match event {
                    Some(Ok(event)) => self.take(event).await,
                    Some(Err(error)) => tracing::warn!(%error, "pods cannot be watched"),
                    None => return,
                },
                () = until(self.next_sweep()) => self.sweep(Instant::now()).await,
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

    fn next_sweep(&self) -> Option<Instant> {
        self.sweeps.keys().next().map(|(at, _)| (*at).max(self.sweeps_from))
    }

    /// Deletes the pods whose time is over: only those that we have seen end.
    async fn sweep(&mut self, now: Instant) {
        while let Some(first) = self.sweeps.first_entry() {
            if first.key().0 > now {
                return;
            }
            let ((_, name), uid) = first.remove_entry();
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let asked = DeleteParams::default().grace_period(0).preconditions(preconditions);
            let what = || format!("delete the ended pod {name}");
            match with_timeout(&what, self.pods.delete(&name, &asked)).await {
                Ok(_) => {}
                Err(error) if has_reason(&error, "NotFound") || has_reason(&error, "Conflict") => {}
                Err(error) if error.may_pass() => {
                    tracing::warn!(pod = name, %error, "an ended pod stays for now");
                    self.sweeps_from = Instant::now() + SWEEP_AGAIN;
                    // Behind the others, in whose way it must not stand.
                    self.sweeps.insert((self.sweeps_from, name), uid);
                    return;
                }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::Request;
    use axum::http::{Method, StatusCode};
    use kube::Client;

    use super::*;

    /// Returns a watch that has seen these pods end, whose time is over. The API server answers with these codes, one
    /// after the other, and writes down what it is asked to delete.
    fn watch(ended: [&str; 2], codes: [u16; 3]) -> (PodWatch, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        let server = Router::new().fallback(async move |request: Request| {
            assert_eq!(request.method(), Method::DELETE);
            let mut log = log.lock().unwrap();
            let code = codes[log.len()];
            log.push(request.uri().path().rsplit('/').next().unwrap().to_owned());
            let (status, reason) = if code == 200 { ("Success", "") } else { ("Failure", "Any") };
            let text = format!(
                r#"{{"kind": "Status", "apiVersion": "v1", "metadata": {{}}, "status": "{status}",
                    "message": "m", "reason": "{reason}", "code": {code}}}"#
            );
            (StatusCode::from_u16(code).unwrap(), text)
        });
        let pods = Api::default_namespaced(Client::new(server, "site"));
        let mut watch = PodWatch::new(pods, String::new(), Duration::ZERO, mpsc::channel(1).0);
        for name in ended {
            watch.sweeps.insert((Instant::now(), name.to_owned()), "1".to_owned());
        }
        (watch, asked)
    }

    #[tokio::test]
    async fn ended_pods_are_deleted_when_the_api_server_is_back() {
        let (mut watch, asked) = watch(["a", "b"], [503, 200, 200]);
        let first = watch.next_sweep().unwrap();
        watch.sweep(Instant::now()).await;
        assert_eq!(*asked.lock().unwrap(), ["a"], "the others would be refused too");
        let again = watch.next_sweep().unwrap();
        assert!(again >= first + SWEEP_AGAIN);
        watch.sweep(again).await;
        assert_eq!(*asked.lock().unwrap(), ["a", "b", "a"]);
        assert_eq!(watch.next_sweep(), None);
    }

    #[tokio::test]
    async fn an_ended_pod_that_may_not_be_deleted_stays() {
        let (mut watch, asked) = watch(["a", "b"], [403, 200, 200]);
        watch.sweep(Instant::now()).await;
        assert_eq!(*asked.lock().unwrap(), ["a", "b"]);
        assert_eq!(watch.next_sweep(), None);
    }
}
