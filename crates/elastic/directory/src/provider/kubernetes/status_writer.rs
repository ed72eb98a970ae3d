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

/// What waits to be written: the newest state of each queue.
#[derive(Default)]
pub(super) struct QueueStates {
    waiting: Mutex<BTreeMap<String, State>>,
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
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(status.name.clone(), State::of(status));
        drop(waiting);
        self.changed.notify_one();
    }

    /// A queue is gone: its resource, if it stays, shows no relay.
    pub(super) fn forget(&self, queue: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(queue.to_owned(), State::default());
        drop(waiting);
        self.changed.notify_one();
    }

    fn take(&self) -> BTreeMap<String, State> {
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
            self.due.append(&mut self.states.take());
        }
    }

    /// A queue whose resource came, or is another one than before, is written anew.
    fn write_misplaced(&mut self) {
        for (queue, written) in &self.written {
            let uid = self.resources.of(queue).and_then(|resource| resource.uid());
            if uid.is_some() && uid != written.uid {
                self.due.entry(queue.clone()).or_insert_with(|| written.state.clone());
            }
        }
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
