//! A queue's state, written to its resource's status: at once when relays, clients or notices change, seldom when
//! only the load does, so that a busy site does not fill its cluster's etcd.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use quelea_elastic_core::directory::QueueStatus;
use quelea_elastic_core::plan::RelayState;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::api_error::{CallError, has_reason, with_timeout};
use super::queue_resources::Resources;
use super::resource::{ElasticQueue, ElasticQueueStatus, LoadStatus, RelayCounts};
use super::{names, pod};

/// Between two writes of one queue that differ in their load alone.
const LOAD_EVERY: Duration = Duration::from_secs(10);
/// After a write that did not work.
const AGAIN: Duration = Duration::from_secs(2);
/// Owner of the condition `Accepted`, which any directory may write; the rest is the queue's owner's.
const ACCEPTANCE: &str = "quelea-acceptance";

/// What waits to be written: the newest state of each queue; `None` where nothing is to be known of it any more.
#[derive(Default)]
pub(super) struct QueueStates {
    waiting: Mutex<BTreeMap<String, Option<State>>>,
    changed: Notify,
}

/// A queue's state, as the resource shows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    generation: i64,
    relays: RelayCounts,
    producers: i64,
    listeners: i64,
    minimal: bool,
    load: LoadStatus,
}

impl QueueStates {
    /// Takes a queue's state; the one that waits is replaced.
    pub(super) fn put(&self, status: &QueueStatus) {
        self.replace(&status.name, Some(State::of(status)));
    }

    /// A queue is gone: what is put from now on is of another one of its name.
    pub(super) fn forget(&self, queue: &str) {
        self.replace(queue, None);
    }

    /// The resource of a queue that is gone stays: it shows no relay.
    pub(super) fn clear(&self, queue: &str) {
        self.replace(queue, Some(State::default()));
    }

    fn replace(&self, queue: &str, state: Option<State>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(queue.to_owned(), state);
        drop(waiting);
        self.changed.notify_one();
    }

    fn take(&self) -> BTreeMap<String, Option<State>> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes the states of queues to their resources.
pub(super) struct StatusWriter {
    resources: Resources,
    site: String,
    states: Arc<QueueStates>,
    /// What was written last of each queue.
    written: BTreeMap<String, Written>,
    /// What is not written yet.
    due: BTreeMap<String, State>,
}

/// What was written last.
struct Written {
    state: State,
    at: Instant,
    /// The resource that it was written to; `None` if there was none.
    uid: Option<String>,
}

impl StatusWriter {
    pub(super) fn new(resources: Resources, site: String, states: Arc<QueueStates>) -> Self {
        Self { resources, site, states, written: BTreeMap::new(), due: BTreeMap::new() }
    }

    /// Writes until the provider is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let again = self.write_due().await;
            let arrived = Arc::clone(&self.resources.arrived);
            let wait = async {
                match again {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.states.changed.notified() => {}
                () = arrived.notified() => self.write_misplaced(),
                () = wait => {}
            }
            self.take();
        }
    }

    fn take(&mut self) {
        for (queue, state) in self.states.take() {
            if let Some(state) = state {
                self.due.insert(queue, state);
            } else {
                self.due.remove(&queue);
                self.written.remove(&queue);
            }
        }
    }

    /// A queue whose resource came, or is another one than before, is written anew. One whose resource is gone is
    /// gone too, though perhaps by another directory.
    fn write_misplaced(&mut self) {
        let Self { resources, written, due, .. } = self;
        written.retain(|queue, written| {
            let uid = resources.of(queue).and_then(|resource| resource.uid());
            if uid.is_some() && uid != written.uid {
                due.entry(queue.clone()).or_insert_with(|| written.state.clone());
            }
            uid.is_some() || written.uid.is_none()
        });
    }

    /// Writes what may be written now; answers when to try the rest.
    async fn write_due(&mut self) -> Option<Instant> {
        let mut again: Option<Instant> = None;
        for (queue, state) in std::mem::take(&mut self.due) {
            let resource = self.resources.of(&queue);
            let uid = resource.as_ref().and_then(ResourceExt::uid);
            let last = self.written.get(&queue).filter(|last| last.uid == uid);
            let later = match last {
                Some(last) if last.state == state => continue,
                Some(last) if last.state.differs_in_load_alone(&state) => {
                    Some(last.at + LOAD_EVERY)
                }
                _ => None,
            };
            let later = match (later.filter(|at| *at > Instant::now()), &resource) {
                (None, Some(resource)) => {
                    let written = self.write(resource, &queue, &state).await;
                    written.err().map(|_| Instant::now() + AGAIN)
                }
                // A queue of which no relay was ever started has no resource to show it.
                (None, None) => None,
                (later, _) => later,
            };
            if let Some(at) = later {
                again = Some(again.map_or(at, |first| first.min(at)));
                self.due.insert(queue, state);
            } else {
                self.written.insert(queue, Written { state, at: Instant::now(), uid });
            }
        }
        again
    }

    async fn write(
        &self,
        resource: &ElasticQueue,
        queue: &str,
        state: &State,
    ) -> Result<(), CallError> {
        let mut labels = pod::site_labels(&self.site);
        labels.insert(names::QUEUE.to_owned(), names::of_queue(queue));
        let status = json!({
            "queueGeneration": state.generation,
            "replicas": state.relays.starting + state.relays.up + state.relays.draining,
            "selector": pod::selector(&labels),
            "relays": state.relays,
            "producers": state.producers,
            "listeners": state.listeners,
            "load": state.load,
            "conditions": [ready(resource, state), within_budget(resource, state)],
        });
        apply(&self.resources, resource, names::MANAGER, status).await
    }
}

/// Shows a resource's user whether what it asks for is taken.
pub(super) async fn accept(
    resources: &Resources,
    resource: &ElasticQueue,
    verdict: &Result<(), String>,
) {
    let (reason, message) = match verdict {
        Ok(()) => ("Defined", "the queue is as this resource says"),
        Err(text) => ("Invalid", text.as_str()),
    };
    let accepted = condition(resource, "Accepted", verdict.is_ok(), reason, message);
    let status = json!({
        "observedGeneration": resource.metadata.generation,
        "conditions": [accepted],
    });
    if let Err(error) = apply(resources, resource, ACCEPTANCE, status).await {
        tracing::warn!(resource = resource.name_any(), %error, "a condition is not written");
    }
}

async fn apply(
    resources: &Resources,
    resource: &ElasticQueue,
    manager: &str,
    status: Value,
) -> Result<(), CallError> {
    let name = resource.name_any();
    let patch = json!({
        "apiVersion": "quelea.dev/v1alpha1",
        "kind": "ElasticQueue",
        "metadata": { "name": name },
        "status": status,
    });
    let asked = PatchParams::apply(manager).force();
    let what = || format!("write the status of ElasticQueue {name}");
    match with_timeout(&what, resources.api.patch_status(&name, &asked, &Patch::Apply(patch))).await
    {
        Ok(_) => Ok(()),
        Err(error) if has_reason(&error, "NotFound") => Ok(()),
        Err(error) => {
            tracing::debug!(resource = name, %error, "a status is not written");
            Err(error)
        }
    }
}

fn ready(resource: &ElasticQueue, state: &State) -> Condition {
    let relays = state.relays;
    let message = format!(
        "{} up, {} starting, {} draining, {} dead",
        relays.up, relays.starting, relays.draining, relays.dead
    );
    let reason = if relays.up > 0 { "RelaysUp" } else { "NoRelayUp" };
    condition(resource, "Ready", relays.up > 0, reason, &message)
}

fn within_budget(resource: &ElasticQueue, state: &State) -> Condition {
    let (reason, message) = if state.minimal {
        ("BudgetSpent", "the hour's budget is spent: the queue has its minimal service level")
    } else {
        ("WithinBudget", "")
    };
    condition(resource, "WithinBudget", !state.minimal, reason, message)
}

/// Builds a condition, whose time is that of its last change, also over our own restarts.
fn condition(
    resource: &ElasticQueue,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let before = resource.status.as_ref().and_then(|shown: &ElasticQueueStatus| {
        shown.conditions.iter().find(|one| one.type_ == kind && one.status == status)
    });
    let since =
        before.map_or_else(|| Time(Timestamp::now()), |one| one.last_transition_time.clone());
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: resource.metadata.generation,
        last_transition_time: since,
    }
}

impl State {
    fn of(status: &QueueStatus) -> Self {
        let count = |state| {
            let relays = status.relays.iter().filter(|relay| relay.state == state).count();
            i32::try_from(relays).unwrap_or(i32::MAX)
        };
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        // Rates are finite and far below 2^63; `as` saturates.
        let rate = |value: f64| value.round() as i64;
        Self {
            generation: i64::try_from(status.generation).unwrap_or(i64::MAX),
            relays: RelayCounts {
                starting: count(RelayState::Starting),
                up: count(RelayState::Up),
                draining: count(RelayState::Draining),
                dead: count(RelayState::Dead),
            },
            producers: whole(status.producers),
            listeners: whole(status.listeners),
            minimal: status.minimal,
            load: LoadStatus {
                messages_in_per_s: rate(status.load.messages_in),
                bytes_in_per_s: rate(status.load.bytes_in),
                messages_out_per_s: rate(status.load.messages_out),
                bytes_out_per_s: rate(status.load.bytes_out),
                cpu_milli: rate(status.load.cpu * 1_000.0),
            },
        }
    }

    fn differs_in_load_alone(&self, other: &Self) -> bool {
        Self { load: other.load, ..self.clone() } == *other
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::any;
    use kube::{Api, Client};

    use super::*;

    /// Returns the writer of a site whose API server takes whatever it is sent.
    fn writer() -> StatusWriter {
        let answer = async || r#"{"metadata": {"name": "q"}, "spec": {}}"#;
        let client = Client::new(Router::new().fallback_service(any(answer)), "site");
        let resources = Resources::new(Api::default_namespaced(client));
        StatusWriter::new(resources, "site".to_owned(), Arc::default())
    }

    fn resource(uid: &str) -> ElasticQueue {
        let mut resource = ElasticQueue::new("q", super::super::ElasticQueueSpec::default());
        resource.metadata.uid = Some(uid.to_owned());
        resource
    }

    impl StatusWriter {
        async fn write_waiting(&mut self) {
            self.take();
            assert_eq!(self.write_due().await, None, "nothing is to be tried again");
        }

        /// Returns the resource that the queue was written to last; `None` if nothing is known of the queue.
        fn written_to(&self) -> Option<Option<&str>> {
            self.written.get("q").map(|written| written.uid.as_deref())
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_queue_that_is_gone() {
        for is_seen in [false, true] {
            let mut writer = writer();
            if is_seen {
                writer.resources.seen().insert("q".to_owned(), resource("1"));
            }
            writer.states.replace("q", Some(State { producers: 1, ..State::default() }));
            writer.write_waiting().await;
            assert_eq!(writer.written_to(), Some(is_seen.then_some("1")));
            writer.states.forget("q");
            writer.write_waiting().await;
            assert_eq!(writer.written_to(), None);
            // Another one of its name.
            writer.states.replace("q", Some(State { producers: 2, ..State::default() }));
            writer.write_waiting().await;
            assert_eq!(writer.written_to(), Some(is_seen.then_some("1")));
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_queue_whose_resource_is_gone() {
        let mut writer = writer();
        writer.resources.seen().insert("q".to_owned(), resource("1"));
        writer.states.clear("q");
        writer.write_waiting().await;
        assert_eq!(writer.written_to(), Some(Some("1")));
        writer.resources.seen().insert("q".to_owned(), resource("2"));
        writer.write_misplaced();
        writer.write_waiting().await;
        assert_eq!(writer.written_to(), Some(Some("2")));
        writer.resources.seen().clear();
        writer.write_misplaced();
        assert_eq!(writer.written_to(), None);
    }
}
