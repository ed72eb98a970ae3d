//! The custom resource `ElasticQueue`: what a user of the cluster asks of a queue, and what is shown of it.
//! The file of the Helm chart is made from these types; a test keeps the two equal.

#![expect(unreachable_pub, reason = "of the derived schemas' own types")]
#![expect(clippy::duplicated_attributes, reason = "each column has a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use quelea_elastic_core::directory::{Definition, DefinitionError, Relocation};
use quelea_elastic_core::plan::Policy;
use quelea_elastic_core::sla::Rule;
use quelea_elastic_proto::Named as _;
use quelea_elastic_proto::frame::{Acknowledge, SlowPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An elastic queue of Quelea. What is left out is as the directory's configuration says.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "quelea.dev",
    version = "v1alpha1",
    kind = "ElasticQueue",
    doc = "An elastic queue of Quelea: relays that grow and shrink with its load.",
    plural = "elasticqueues",
    shortname = "eq",
    category = "all",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    status = "ElasticQueueStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Up", type_ = "integer", json_path = ".status.relays.up"),
    printcolumn(name = "Relays", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Producers", type_ = "integer", json_path = ".status.producers"),
    printcolumn(name = "Listeners", type_ = "integer", json_path = ".status.listeners"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.queue) == has(oldSelf.queue) && (!has(self.queue) || self.queue == oldSelf.queue)").message("queue: a queue is not renamed"),
    validation = Rule::new("!has(self.replicas) || !has(self.sla) || !has(self.sla.relaysMin) || self.replicas >= self.sla.relaysMin").message("replicas: must be at least sla.relaysMin"),
    validation = Rule::new("!has(self.replicas) || self.replicas <= (has(self.sla) && has(self.sla.relaysMax) ? self.sla.relaysMax : 4096)").message("replicas: must be at most sla.relaysMax"),
)]
pub struct ElasticQueueSpec {
    /// The queue's name, if it is not the resource's own; cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub queue: Option<String>,
    /// Exactly so many relays, as `kubectl scale` and a HorizontalPodAutoscaler set it. Left out (or null): Quelea's
    /// planner chooses between sla.relaysMin and sla.relaysMax.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub replicas: Option<i32>,
    /// The service level: what a relay may carry, how many relays there may be, what they may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sla: Option<ElasticQueueSla>,
    /// Which rules scale the queue: steady (default) or paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Policy::names()))]
    pub policy: Option<String>,
    /// When a message is done: relayed (default), delivered or stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Acknowledge::names()))]
    pub acknowledge: Option<String>,
    /// What happens to a listener that is too slow: drop_newest, drop_oldest (default), disconnect, hold_producers
    /// or spill.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = SlowPolicy::names()))]
    pub slow: Option<String>,
    /// A listener's ring in a relay, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ring_bytes_max: Option<i64>,
    /// The durable queue that keeps the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// What a move does about a listener that does not come along: prompt (default, it sees a gap) or strict (the
    /// producer stays).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Relocation::names()))]
    pub relocation: Option<String>,
}

/// The service level. Limits are for one relay unless they say otherwise; 0 means none.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.relaysMin) || !has(self.relaysMax) || self.relaysMin <= self.relaysMax").message("sla.relaysMin: must be at most sla.relaysMax"),
)]
pub struct ElasticQueueSla {
    /// Messages in a second that a relay may carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub messages_in_per_s_max: Option<i64>,
    /// Bytes a second from producers that a relay may carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_in_per_s_max: Option<i64>,
    /// Bytes a second to listeners that a relay may carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_out_per_s_max: Option<i64>,
    /// Mean time from read to write in a relay, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub latency_us_max: Option<i64>,
    /// Producers and listeners of one relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub clients_max: Option<i64>,
    /// Part of its host's memory that a relay may use, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub memory_percent_max: Option<i32>,
    /// Part of its host's network that may be used, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub network_percent_max: Option<i32>,
    /// Messages in a second, over all listeners, that the queue as a whole can always deliver, with the next three.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub throughput_per_s_min: Option<i64>,
    /// From so many producers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 200_000))]
    pub throughput_producers: Option<i32>,
    /// To so many listeners.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 200_000))]
    pub throughput_listeners: Option<i32>,
    /// Of so many bytes each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16_777_216))]
    pub throughput_payload_bytes: Option<i32>,
    /// Which of several broken limits is handled first; those that are left out follow in the default order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), extend("items" = rule_names()))]
    pub priorities: Option<Vec<String>>,
    /// Fewest relays of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub relays_min: Option<i32>,
    /// Most relays of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub relays_max: Option<i32>,
    /// What the queue's relays may cost an hour, in millionths; 0: no budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub budget_per_hour_micros: Option<i64>,
    /// Relays that stay when the budget is spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub relays_without_budget: Option<i32>,
    /// A relay is removed when the load has fitted on one fewer for so long, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400_000))]
    pub scale_in_after_ms: Option<i64>,
    /// But not within this time after relays were added for load, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400_000))]
    pub scale_in_after_out_ms: Option<i64>,
    /// Nor within this time after another one was removed, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400_000))]
    pub scale_in_apart_ms: Option<i64>,
    /// Instead of the two first: for so long the queue has had no producer at all, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400_000))]
    pub scale_in_idle_ms: Option<i64>,
}

/// Returns the schema of one of `priorities`.
fn rule_names() -> Value {
    serde_json::json!({ "enum": Rule::ALL.map(Rule::name), "type": "string" })
}

/// What the queue's directory shows of it.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ElasticQueueStatus {
    /// The spec's generation that this status knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Grows with each change of the queue's relays or assignments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_generation: Option<i64>,
    /// Relays that are starting, up or draining: the scale subresource's count.
    pub replicas: i32,
    /// Labels of the relays' pods, for a HorizontalPodAutoscaler.
    pub selector: String,
    /// The same relays, by where they are in their lives.
    pub relays: RelayCounts,
    /// Producers.
    pub producers: i64,
    /// Listeners.
    pub listeners: i64,
    /// Rates of all relays together.
    pub load: LoadStatus,
    /// Ready, Accepted, WithinBudget.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Relays by state.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelayCounts {
    /// Asked for, not registered yet.
    pub starting: i32,
    /// Serving.
    pub up: i32,
    /// Being emptied.
    pub draining: i32,
    /// Dead, its clients being moved.
    pub dead: i32,
}

/// Rates, in whole numbers: a status is for people and rules, and no number that changes in each report.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadStatus {
    /// Messages from producers, a second.
    pub messages_in_per_s: i64,
    /// Bytes of these.
    pub bytes_in_per_s: i64,
    /// Deliveries to listeners, a second.
    pub messages_out_per_s: i64,
    /// Bytes of these.
    pub bytes_out_per_s: i64,
    /// Thousandths of a processor core.
    pub cpu_milli: i64,
}

impl ElasticQueue {
    /// Returns the name of the queue that it is about.
    #[must_use]
    pub fn queue(&self) -> &str {
        let own = self.metadata.name.as_deref().unwrap_or_default();
        self.spec.queue.as_deref().unwrap_or(own)
    }

    /// Returns what it asks of the queue, over what the site says of all; `None` if it asks for
    /// nothing, as one that was made on the queue's first use.
    ///
    /// # Errors
    /// Names the field that is outside its limits or contradicts another.
    pub fn definition(&self, base: &Definition) -> Result<Option<Definition>, DefinitionError> {
        let mut asked = match serde_json::to_value(&self.spec) {
            Ok(Value::Object(asked)) => asked,
            _ => Map::new(),
        };
        asked.remove("queue");
        let replicas = asked.remove("replicas");
        if let Some(Value::Object(sla)) = asked.remove("sla") {
            asked.extend(sla);
        }
        let mut fields: Map<String, Value> =
            asked.into_iter().map(|(name, value)| (snake(&name), value)).collect();
        if fields.is_empty() && replicas.is_none() {
            return Ok(None);
        }
        // The count that is asked for pins both bounds; the planner then has nothing to choose.
        if let Some(replicas) = replicas {
            fields.insert("relays_min".into(), replicas.clone());
            fields.insert("relays_max".into(), replicas);
        }
        lower_minimal_service(base, &mut fields);
        let text = Value::Object(fields).to_string();
        Definition::parse_over(base, text.as_bytes()).map(Some)
    }
}

/// The site's minimal service level must not exceed what this queue may have at most.
fn lower_minimal_service(base: &Definition, fields: &mut Map<String, Value>) {
    let Some(most) = fields.get("relays_max").and_then(Value::as_u64) else { return };
    let asked = fields.get("relays_without_budget").and_then(Value::as_u64);
    let minimal = asked.unwrap_or_else(|| u64::from(base.sla.relays_without_budget));
    let pinned = fields.get("relays_min").and_then(Value::as_u64) == Some(most);
    if minimal > most && (asked.is_none() || pinned) {
        fields.insert("relays_without_budget".into(), most.into());
    }
}

/// Returns `relaysMin` as the definition has it: `relays_min`.
fn snake(camel: &str) -> String {
    let mut name = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kube::CustomResourceExt;
    use quelea_elastic_core::plan::Policy;
    use serde_json::json;

    use super::*;

    fn definition_of(spec: Value) -> Result<Option<Definition>, DefinitionError> {
        let spec = serde_json::from_value(spec).unwrap();
        ElasticQueue::new("prices", spec).definition(&Definition::default())
    }

    /// `QUELEA_BLESS=1 cargo test -p quelea-elastic-directory --features kubernetes` writes it anew.
    #[test]
    fn the_charts_definition_is_what_these_types_say() {
        let made = serde_saphyr::to_string(&ElasticQueue::crd()).unwrap();
        let made = format!(
            "# Made from crates/elastic/directory/src/provider/kubernetes/resource.rs, which says how.\n{}\n",
            made.trim_end()
        );
        let root =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/helm/quelea/crds");
        let path = root.join("elasticqueues.quelea.dev.yaml");
        if std::env::var_os("QUELEA_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), made, "run it with QUELEA_BLESS=1");
    }

    #[test]
    fn a_resource_that_asks_for_nothing_defines_nothing() {
        assert_eq!(definition_of(json!({})), Ok(None));
        assert_eq!(definition_of(json!({ "queue": "other" })), Ok(None));
    }

    #[test]
    fn what_it_asks_for_lies_over_the_sites_defaults() {
        let asked = json!({
            "sla": {
                "messagesInPerSMax": 1000, "relaysMax": 4, "budgetPerHourMicros": 5,
                "memoryPercentMax": 70, "throughputPerSMin": 500, "throughputProducers": 2,
                "throughputListeners": 5, "throughputPayloadBytes": 100, "priorities": ["bytes_in"],
            },
            "policy": "paper",
            "ringBytesMax": 1_048_576,
            "slow": "hold_producers",
        });
        let defined = definition_of(asked).unwrap().unwrap();
        assert_eq!(defined.sla.messages_in_per_s_max, 1000);
        assert_eq!((defined.sla.relays_min, defined.sla.relays_max), (1, 4));
        assert_eq!(defined.sla.budget_per_hour_micros, 5);
        assert_eq!(defined.policy, Policy::Paper);
        assert_eq!(defined.sla.memory_percent_max, 70);
        assert_eq!(defined.sla.throughput_per_s_min, 500);
        assert_eq!(defined.sla.priorities.place(Rule::BytesIn), 0);
        assert_eq!(defined.ring_bytes_max, 1_048_576);
    }

    #[test]
    fn a_count_of_replicas_leaves_the_planner_no_choice() {
        let asked = json!({ "replicas": 3, "sla": { "relaysMin": 2, "relaysMax": 8, "relaysWithoutBudget": 4 } });
        let defined = definition_of(asked).unwrap().unwrap();
        assert_eq!((defined.sla.relays_min, defined.sla.relays_max), (3, 3));
        assert_eq!(defined.sla.relays_without_budget, 3);
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_its_field() {
        let error =
            definition_of(json!({ "sla": { "relaysMin": 9, "relaysMax": 8 } })).unwrap_err();
        assert_eq!(error.field, "relays_min");
        let error = definition_of(json!({ "acknowledge": "stored" })).unwrap_err();
        assert_eq!(error.field, "acknowledge");
    }
}
