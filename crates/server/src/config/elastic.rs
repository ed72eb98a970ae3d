//! `[elastic]`: the directory of elastic queues.

use quelea_elastic_proto::Named as _;
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use quelea_elastic_relay::{ENTRY_CONNECTIONS_MAX, ZMTP_HEARTBEAT_MS, ZmtpMechanism};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::{Address, OptionalAddress};
use super::byte_size::{ByteSize, GIB};
use super::choice::{Choice, Choices};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Elastic {
    /// Address of the elastic queues' directory, at which their clients ask for relays; empty:
    /// none. Port 0 takes a free one, which the ready line tells.
    #[schemars(with = "OptionalAddress")]
    pub(crate) listen: String,
    /// Address at which relays, clients and other directories reach this one; empty: as
    /// `elastic.listen`. Of several directories each has another one, and it is not `0.0.0.0`
    /// or `[::]`.
    #[schemars(with = "OptionalAddress")]
    pub(crate) advertise: String,
    /// Most connections to the directory; further ones are closed at once. The limit of open files
    /// lowers this.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) connections_max: usize,
    /// File with the secret that clients and relays have to show, 32 bytes or 64 hexadecimal
    /// digits. Empty: none is asked for, and elastic queues are for this machine only.
    pub(crate) key_file: String,
    /// Whether elastic queues may be reached from other machines without a key, and entries without
    /// `plain` or `curve`: everybody who reaches them may do everything then. Else the start is
    /// refused.
    pub(crate) open_beyond_loopback: bool,
    /// Who runs relays: `process`, this machine; `kubernetes`, pods of a cluster (only in a build
    /// with that feature).
    pub(crate) provider: Provider,
    /// Program that provider `process` runs as relays; empty: this one.
    pub(crate) relay_program: String,
    /// Address at which relays listen. Port 0 gives each one a free one.
    #[schemars(with = "Address")]
    pub(crate) relay_listen: String,
    /// Name of this Quelea in its cluster: directories of one site see only its pods.
    pub(crate) kubernetes_site: String,
    /// Where pods and queues' resources are; empty: the service account's own namespace.
    pub(crate) kubernetes_namespace: String,
    /// Image of relays' pods; empty: the template names it.
    pub(crate) kubernetes_image: String,
    /// File with a PodTemplateSpec on which relays' pods are based; empty: none.
    pub(crate) kubernetes_pod_template: String,
    /// Where a relay listens in its pod; `$(POD_IP)` stands for the pod's address.
    pub(crate) kubernetes_relay_listen: String,
    /// What becomes of the relays of the queues that this directory controls when it is stopped:
    /// `stop` ends them; `keep` leaves them to serve, and the next start, or another directory,
    /// adopts them. Empty: `stop` if `elastic.metadata` is `embedded`, else `keep`.
    pub(crate) relays_on_exit: RelaysOnExit,
    /// What a relay costs an hour, in millionths of whatever budgets are counted in. 0: nothing,
    /// and budgets have no effect.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) relay_cost_per_hour_micros: u64,
    /// What the network of a relay's host carries in each direction, in bytes a second: relays are given no more
    /// than 0.85 of it, and `network_percent_max` of an agreement is a part of it. 0: not known.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) relay_network_bytes_per_s_max: u64,
    /// Where queues' records are kept: `embedded`, a file of this directory alone in the data
    /// directory; `cassandra`, for several directories, in the Cassandra that `cassandra.nodes`
    /// names; `etcd`, for several directories (only in a build with that feature).
    pub(crate) metadata: Metadata,
    /// Where etcd is, as in `http://10.0.0.7:2379`.
    pub(crate) etcd_endpoints: Vec<String>,
    /// How long a relay that is to end waits for its clients to leave, in milliseconds.
    #[schemars(range(max = DAY_MS))]
    pub(crate) drain_ms_max: u64,
    /// How long a relay may take from being asked for to being ready, in milliseconds; then it is
    /// given up, and another one started.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) register_ms_max: u64,
    /// Most relays that this directory has started for all of its queues together; each is a process
    /// of some 10 MiB, or a pod.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) relays_max: usize,
    /// Most queues that the clients of one address have made by using them, of those that there are;
    /// one connection may have made a quarter of them. Queues that are defined do not count.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) first_use_queues_max: usize,
    /// How long a queue that was made on first use lives without a client, in milliseconds; 0: for
    /// ever. Used again, it is made anew.
    #[schemars(range(max = DAY_MS))]
    pub(crate) unused_ms_max: u64,
    /// Definition of queues that are made on first use: a JSON object with the fields of [a queue's
    /// definition](../elastic/queues.md#a-queues-definition); what it does not name has its default.
    pub(crate) default: String,
    /// Queues that are there from the start, or defined anew by it.
    pub(crate) queue: Vec<ElasticQueue>,
    /// [Entries](../elastic/zmtp.md#the-entry) where ZeroMQ's sockets keep their connection while the
    /// queue's relays come and go.
    pub(crate) entry: Vec<ElasticEntry>,
}

/// `[[elastic.queue]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElasticQueue {
    /// Its name, as clients open it: 1 to 255 bytes.
    #[schemars(length(min = 1, max = QUEUE_NAME_BYTES_MAX))]
    pub(crate) name: String,
    /// Its definition, a JSON object; over `elastic.default`.
    #[serde(default = "empty_definition")]
    pub(crate) definition: String,
}

/// `[[elastic.entry]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElasticEntry {
    /// The elastic queue that it is for: 1 to 255 bytes.
    pub(crate) queue: String,
    /// Where PUB and XPUB sockets connect, to publish to the queue; empty: nowhere.
    #[serde(default)]
    #[schemars(with = "OptionalAddress")]
    pub(crate) zmtp_in: String,
    /// Where SUB and XSUB sockets connect, to listen to the queue; empty: nowhere.
    #[serde(default)]
    #[schemars(with = "OptionalAddress")]
    pub(crate) zmtp_out: String,
    /// The [mechanism](../elastic/zmtp.md#security) of both sides.
    #[serde(default, with = "Choice::<ZmtpMechanism>")]
    pub(crate) zmtp_security: ZmtpMechanism,
    /// PLAIN's users, a line `NAME:PASSWORD` each.
    #[serde(default)]
    pub(crate) zmtp_users_file: String,
    /// CURVE's secret key of the entry, in Z85.
    #[serde(default)]
    pub(crate) zmtp_secret_key_file: String,
    /// CURVE's public keys of the clients that may connect, in Z85, one a line; empty: all may that
    /// know the entry's.
    #[serde(default)]
    pub(crate) zmtp_clients_file: String,
    /// Time between two PINGs, in milliseconds; a peer that is not heard for three is given up. 0:
    /// none.
    #[serde(default = "zmtp_heartbeat_ms")]
    #[schemars(range(max = DAY_MS))]
    pub(crate) zmtp_heartbeat_ms: u64,
    /// What becomes of a SUB that is too slow: `drop_newest`, as in ZeroMQ; `drop_oldest`;
    /// `disconnect`; `hold_producers`, nothing is dropped here and the entry itself becomes slow.
    #[serde(default = "drop_newest", with = "Choice::<SlowPolicy>")]
    #[schemars(extend("enum" = entry_policies()))]
    pub(crate) slow: SlowPolicy,
    /// What may wait for one SUB in the entry.
    #[serde(default = "ring_bytes_max")]
    #[schemars(with = "ByteSize", range(min = 65_536, max = 4 * GIB))]
    pub(crate) ring_bytes_max: u64,
    /// Most connections of both sides together; further ones are closed at once. The limit of open files
    /// lowers this.
    #[serde(default = "entry_connections_max")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) connections_max: usize,
}

/// Who runs relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Provider {
    Process,
    Kubernetes,
}

/// Where queues' records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metadata {
    Embedded,
    Cassandra,
    Etcd,
}

/// What becomes of relays when their directory is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RelaysOnExit {
    #[serde(rename = "")]
    ByMetadata,
    Stop,
    Keep,
}

impl Choices for ZmtpMechanism {
    fn choices() -> Vec<(&'static str, Self)> {
        Self::NAMES.to_vec()
    }
}

impl Choices for SlowPolicy {
    fn choices() -> Vec<(&'static str, Self)> {
        Self::NAMES.to_vec()
    }
}

impl Default for Elastic {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:5670".to_owned(),
            advertise: String::new(),
            connections_max: 100_000,
            key_file: String::new(),
            open_beyond_loopback: false,
            provider: Provider::Process,
            relay_program: String::new(),
            relay_listen: "127.0.0.1:0".to_owned(),
            kubernetes_site: "quelea".to_owned(),
            kubernetes_namespace: String::new(),
            kubernetes_image: String::new(),
            kubernetes_pod_template: String::new(),
            kubernetes_relay_listen: "$(POD_IP):5680".to_owned(),
            relays_on_exit: RelaysOnExit::ByMetadata,
            relay_cost_per_hour_micros: 0,
            relay_network_bytes_per_s_max: 0,
            metadata: Metadata::Embedded,
            etcd_endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            drain_ms_max: 60_000,
            register_ms_max: 15_000,
            relays_max: 256,
            first_use_queues_max: 128,
            unused_ms_max: 60_000,
            default: empty_definition(),
            queue: Vec::new(),
            entry: Vec::new(),
        }
    }
}

fn empty_definition() -> String {
    "{}".to_owned()
}

const fn zmtp_heartbeat_ms() -> u64 {
    ZMTP_HEARTBEAT_MS
}

const fn drop_newest() -> SlowPolicy {
    SlowPolicy::DropNewest
}

/// Returns the policies that an entry may have: none that spills, since it has no store to spill
/// to.
fn entry_policies() -> Vec<&'static str> {
    let allowed = SlowPolicy::NAMES.iter().filter(|(_, policy)| *policy != SlowPolicy::Spill);
    allowed.map(|(name, _)| *name).collect()
}

const fn ring_bytes_max() -> u64 {
    8 << 20
}

const fn entry_connections_max() -> usize {
    ENTRY_CONNECTIONS_MAX
}
