//! The shapes of what the API answers. Rates are a second's; units stand last in each name.

use quelea_elastic_core::directory::Definition;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One of the directories that share the queues.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticDirectory")]
pub(super) struct Directory {
    /// Where it answers.
    pub(super) address: String,
    /// Whether it is the one that was asked.
    pub(super) this: bool,
}

/// An elastic queue as one of many: of this directory with its state, of another with its owner alone.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ListedElasticQueue")]
pub(super) enum Listed {
    Own(Box<Queue<usize>>),
    Elsewhere {
        /// The queue's name.
        name: String,
        /// The address of the directory that controls it; none while nobody does.
        owner: Option<String>,
    },
}

/// An elastic queue, with its relays or their number.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticQueueWith{R}")]
pub(super) struct Queue<R> {
    pub(super) name: String,
    /// The address of the directory that controls it.
    pub(super) owner: String,
    /// Counts its owners; none without a store that directories share.
    pub(super) fence: Option<u64>,
    /// Grows with each change of its relays or assignments.
    pub(super) generation: u64,
    /// What it promises and by which policy.
    #[schemars(with = "Definition")]
    pub(super) definition: Value,
    pub(super) relays: R,
    pub(super) producers: usize,
    pub(super) listeners: usize,
    pub(super) moves_under_way: usize,
    pub(super) moves_done: u64,
    pub(super) moves_aborted: u64,
    /// Millionths of the unit of cost that its relays took this hour.
    pub(super) spent_this_hour_micros: u64,
    /// Whether its budget is spent: it has its minimal service level.
    pub(super) minimal: bool,
    /// What it carries against what it promises as a whole.
    pub(super) kpi_queue: Option<QueueKpi>,
    #[serde(flatten)]
    pub(super) rates: Rates,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct QueueKpi {
    /// 1: as much as it promises to carry.
    pub(super) load: f64,
    pub(super) deliveries_per_s: f64,
    /// None: no limit is known.
    pub(super) deliveries_per_s_max: Option<f64>,
    pub(super) throughput_per_s_min: u64,
    /// Whether the promise is kept.
    pub(super) kept: bool,
}

/// What passes through a queue, a relay or from a producer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rates {
    pub(super) messages_in_per_s: f64,
    pub(super) bytes_in_per_s: f64,
    pub(super) messages_out_per_s: f64,
    pub(super) bytes_out_per_s: f64,
    /// Of one core.
    pub(super) cpu: f64,
    pub(super) latency_mean_us: f64,
}

/// A relay, and of which queue it is where those of several are listed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticRelay")]
pub(super) struct Relay {
    pub(super) id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    /// Such as `running` and `draining`.
    pub(super) state: &'static str,
    /// Where clients reach it; empty before it has said so.
    pub(super) address: String,
    pub(super) zmtp_producers: String,
    pub(super) zmtp_listeners: String,
    /// By which its provider was asked for it.
    pub(super) request: String,
    /// By which its provider knows it.
    pub(super) handle: String,
    /// The process, where the provider starts processes.
    pub(super) pid: Option<u32>,
    pub(super) age_ms: u64,
    /// None: it has not reported yet.
    pub(super) reported_ms_ago: Option<u64>,
    /// Deliveries that it dropped, since its start.
    pub(super) dropped: u64,
    /// Deliveries that had to wait in a file of it, since its start.
    pub(super) spilled: u64,
    /// Times that producers stopped waiting there for a listener which took nothing, since its start.
    pub(super) left_behind: u64,
    pub(super) memory_bytes: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) memory_percent: f64,
    pub(super) network_percent: f64,
    pub(super) producers: usize,
    pub(super) listeners: u32,
    pub(super) connected: bool,
    pub(super) witnesses: u32,
    #[serde(flatten)]
    pub(super) rates: Rates,
}

/// A producer of an elastic queue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticProducer")]
pub(super) struct Producer {
    /// 32 hexadecimal digits.
    pub(super) id: String,
    /// The relay that it sends to.
    pub(super) relay: Option<u64>,
    /// Counts its moves.
    pub(super) epoch: u64,
    pub(super) moving_to: Option<u64>,
    pub(super) moved_ms_ago: u64,
    pub(super) connected: bool,
    /// Whether it cannot be moved.
    pub(super) fixed: bool,
    #[serde(flatten)]
    pub(super) rates: Rates,
}

/// A listener of an elastic queue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticListener")]
pub(super) struct Listener {
    /// 32 hexadecimal digits.
    pub(super) id: String,
    /// The generation of its relays that it was sent last.
    pub(super) generation: u64,
    /// The generation that it has answered.
    pub(super) listening: u64,
    pub(super) relays: Vec<u64>,
    pub(super) lagging: bool,
    pub(super) connected: bool,
}

/// What was decided or happened, and why.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticEvent")]
pub(super) struct Event {
    /// Ever growing.
    pub(super) number: u64,
    pub(super) unix_ms: u64,
    pub(super) queue: String,
    pub(super) generation: u64,
    pub(super) kind: &'static str,
    pub(super) subject: String,
    pub(super) reason: String,
    /// A message to the operator.
    pub(super) notice: Option<String>,
}

/// What the planner would do about a queue now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticPlan")]
pub(super) struct Plan {
    pub(super) queue: String,
    pub(super) actions: Vec<PlannedAction>,
    /// What it looked at and left as it is.
    pub(super) remarks: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct PlannedAction {
    #[serde(flatten)]
    pub(super) action: Action,
    pub(super) reason: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(super) enum Action {
    Start { count: u32 },
    Move { producer: String, from: u64, to: u64 },
    Drain { relay: u64 },
    FailOver { relay: u64 },
    Restart { relay: u64 },
    Stop { relay: u64 },
    Notify { notice: String },
}

/// A producer's move that has begun.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ElasticMove")]
pub(super) struct Move {
    pub(super) producer: String,
    pub(super) from: u64,
    pub(super) to: u64,
}
