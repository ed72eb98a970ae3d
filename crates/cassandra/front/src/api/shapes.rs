//! What is answered.

use std::collections::BTreeMap;

use quelea_cassandra_store::{
    CassandraQueues, FrontEndView, HintView, NodeView, Passed, PeerStats, RequestCounts,
};
use quelea_sqs_protocol::{Backlog, OrderHint, QueueFacts};
use schemars::JsonSchema;
use serde::Serialize;

/// The cluster, as the front-end that was asked knows it. What it counts is since its start.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedCluster")]
pub(super) struct ClusterShown {
    /// Where Cassandra keeps the queues.
    keyspace: String,
    /// The front-end that was asked first, then the others.
    front_ends: Vec<FrontEndShown>,
    nodes: Vec<NodeShown>,
    /// By how much this machine's clock is corrected to agree with Cassandra's.
    clock_correction_us: i64,
    /// Requests to Cassandra.
    requests: RequestsShown,
    /// Changes of queues, users and owners of which Cassandra did not say whether they were made, so that they were read back.
    unknown_outcomes: u64,
    /// What this front-end had to do with the others.
    peers: PeersShown,
    /// Messages that the sweep has found, to which nothing led.
    messages_restored: u64,
}

/// A process that serves replicated queues: a front-end, or a broker beside Cassandra.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedFrontEnd")]
struct FrontEndShown {
    /// Another one after each start.
    id: String,
    /// Where the others reach it by datagrams; none if `bdqs.listen` is empty there.
    address: Option<String>,
    /// Whether it is the one that was asked.
    is_self: bool,
    /// Whether it renews its row in Cassandra.
    is_alive: bool,
    /// How long it has not.
    silent_for_ms: u64,
}

/// A node of Cassandra.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CassandraNode")]
struct NodeShown {
    host_id: String,
    address: String,
    datacenter: Option<String>,
    rack: Option<String>,
    /// Whether the front-end that was asked has a connection to it; it needs none to another datacenter.
    is_connected: bool,
}

/// Requests to Cassandra, by what they were for.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CassandraRequests")]
struct RequestsShown {
    /// Messages that were sent, received, changed or deleted.
    messages: u64,
    /// Finding out where messages are.
    upkeep: u64,
    /// Front-ends that find each other.
    peers: u64,
    /// Looking for messages that nothing leads to.
    sweep: u64,
    /// Leases of FIFO queues: lightweight transactions and serial reads.
    leases: u64,
}

/// What a front-end had to do with the others.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedPeers")]
struct PeersShown {
    datagrams_sent: u64,
    datagrams_received: u64,
    /// Those of another version.
    datagrams_unreadable: u64,
    /// Of new messages, to front-ends that poll.
    nudges_sent: u64,
    nudges_received: u64,
    entries_claimed: u64,
    /// Those that were left to a front-end that had claimed them at the same time.
    entries_yielded: u64,
    /// Messages that were delivered here and there, as far as was noticed.
    duplicates_seen: u64,
}

/// A replicated queue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedQueue")]
pub(super) struct QueueShown {
    account: String,
    name: String,
    fifo: bool,
    created_at_ms: u64,
    modified_at_ms: u64,
    /// Those of SQS that were set.
    attributes: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    /// About how many can be received.
    messages_visible: u64,
    /// About how many were received and not deleted.
    messages_in_flight: u64,
    /// About how many cannot be received yet.
    messages_delayed: u64,
    /// 0 if there is none.
    oldest_message_age_s: u64,
    passed_here: PassedShown,
    order_hint: OrderHintShown,
}

/// Messages of a queue that passed at the front-end that was asked; a front-end forgets it with a restart.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedPassed")]
struct PassedShown {
    sent: u64,
    received: u64,
    deleted: u64,
}

/// Among how many of the oldest messages a receive chooses (BDQS's K).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedOrderHint")]
struct OrderHintShown {
    /// The attribute `OrderHint`: a number, or `auto`.
    configured: String,
    /// K at the front-end that was asked; none if it has not looked into the queue lately.
    k: Option<u64>,
    /// Of the messages that were lately delivered there, the part that another front-end is known to have delivered too.
    duplicates_per_message: Option<f64>,
}

impl ClusterShown {
    pub(super) fn of(queues: &CassandraQueues, keyspace: &str) -> Self {
        Self {
            keyspace: keyspace.to_owned(),
            front_ends: queues.front_ends().into_iter().map(Into::into).collect(),
            nodes: queues.nodes().into_iter().map(Into::into).collect(),
            clock_correction_us: queues.clock_correction_us(),
            requests: queues.requests().into(),
            unknown_outcomes: queues.unknown_outcomes(),
            peers: queues.peer_stats().into(),
            messages_restored: queues.restored(),
        }
    }
}

impl From<FrontEndView> for FrontEndShown {
    fn from(view: FrontEndView) -> Self {
        let FrontEndView { id, address, is_self, is_alive, silent_for_ms } = view;
        let address = address.map(|address| address.to_string());
        Self { id: id.to_string(), address, is_self, is_alive, silent_for_ms }
    }
}

impl From<NodeView> for NodeShown {
    fn from(view: NodeView) -> Self {
        let NodeView { host_id, address, datacenter, rack, is_connected } = view;
        let (host_id, address) = (host_id.to_string(), address.to_string());
        Self { host_id, address, datacenter, rack, is_connected }
    }
}

impl From<RequestCounts> for RequestsShown {
    fn from(counts: RequestCounts) -> Self {
        let RequestCounts { messages, upkeep, peers, sweep, leases } = counts;
        Self { messages, upkeep, peers, sweep, leases }
    }
}

impl From<PeerStats> for PeersShown {
    fn from(stats: PeerStats) -> Self {
        Self {
            datagrams_sent: stats.datagrams_sent,
            datagrams_received: stats.datagrams_heard,
            datagrams_unreadable: stats.datagrams_unreadable,
            nudges_sent: stats.nudges_sent,
            nudges_received: stats.nudges_heard,
            entries_claimed: stats.entries_claimed,
            entries_yielded: stats.entries_yielded,
            duplicates_seen: stats.duplicates_seen,
        }
    }
}

impl QueueShown {
    /// Returns what is shown of a queue. `hint` is what `OrderHint=auto` has come to, if the queue
    /// is served here.
    pub(super) fn of(
        facts: &QueueFacts,
        backlog: Backlog,
        passed: Passed,
        hint: Option<HintView>,
    ) -> Self {
        let Passed { sent, received, deleted } = passed;
        let Backlog { visible, in_flight, delayed, oldest_age_s } = backlog;
        Self {
            account: facts.queue.account.to_string(),
            name: facts.queue.name.to_string(),
            fifo: facts.settings.is_fifo(),
            created_at_ms: facts.created_at_ms,
            modified_at_ms: facts.modified_at_ms,
            attributes: facts.attributes.clone(),
            tags: facts.tags.clone(),
            messages_visible: visible,
            messages_in_flight: in_flight,
            messages_delayed: delayed,
            oldest_message_age_s: oldest_age_s,
            passed_here: PassedShown { sent, received, deleted },
            order_hint: OrderHintShown::of(facts, hint),
        }
    }
}

impl OrderHintShown {
    /// Returns the order hint as it is shown. A FIFO queue has one owner, which keeps the order.
    fn of(facts: &QueueFacts, hint: Option<HintView>) -> Self {
        let auto = hint.filter(|_| !facts.settings.is_fifo());
        let (configured, k) = match facts.settings.order_hint {
            OrderHint::Auto => ("auto".to_owned(), auto.map(|hint| hint.k as u64)),
            OrderHint::Fixed(k) => (k.to_string(), Some(k.into())),
        };
        let duplicates_per_message = auto.and_then(|hint| hint.duplicates_per_message);
        Self { configured, k, duplicates_per_message }
    }
}
