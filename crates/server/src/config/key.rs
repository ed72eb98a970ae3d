//! Every configuration key: its type with its limits, and what it means.

mod bridge;
mod elastic;

use quelea_model::limits;

use self::bridge::{DELIVERY_FIELDS, FEED_FIELDS};
use self::elastic::{ELASTIC_ENTRY_FIELDS, ELASTIC_QUEUE_FIELDS};

/// One key. Its default is in [`super::Config::default`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Dotted, as in `amqp.listen`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// One sentence for the reference.
    pub(crate) meaning: &'static str,
}

/// What a value may be. Limits are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    TextList,
    /// `HOST:PORT`; port 0 takes a free one.
    Address,
    /// The same, or empty for none.
    OptionalAddress,
    AddressList,
    Flag,
    Integer {
        min: u64,
        max: u64,
    },
    /// Bytes, with an optional unit.
    Size {
        min: u64,
        max: u64,
    },
    /// A list of tables, each with these fields: `[[section.key]]` in the file.
    Tables(&'static [Field]),
}

/// A key of a table in a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) key: Key,
    /// What it is if it is not given, as TOML; `None`: it has to be given.
    pub(crate) default: Option<&'static str>,
}

impl Key {
    /// The key of that dotted name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}

/// What every environment variable of the configuration starts with.
pub(crate) const ENVIRONMENT_PREFIX: &str = "QUELEA__";

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

/// In the order of the reference: sections together.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "data_dir",
        kind: Kind::Text,
        meaning: "Directory of the log. It is made if it is missing, and locked while the broker \
                  runs.",
    },
    Key {
        name: "stop_timeout_ms",
        kind: Kind::Integer { min: 0, max: DAY_MS },
        meaning: "How long a stop waits for clients to read what is left for them, in milliseconds.",
    },
    Key {
        name: "amqp.listen",
        kind: Kind::AddressList,
        meaning: "Addresses for AMQP clients. Port 0 takes a free one, which the ready line tells.",
    },
    Key {
        name: "amqp.frame_max",
        kind: Kind::Size { min: limits::FRAME_BYTES_MIN as u64, max: 16 * MIB },
        meaning: "Largest frame that is offered to clients. A connection may hold this much of an \
                  unfinished frame.",
    },
    Key {
        name: "amqp.channel_max",
        kind: Kind::Integer { min: 1, max: 65_535 },
        meaning: "Most channels of one connection.",
    },
    Key {
        name: "amqp.heartbeat_s",
        kind: Kind::Integer { min: 0, max: 65_535 },
        meaning: "Heartbeat that is offered to clients, in seconds; 0 for none. A client that is \
                  silent for twice as long is disconnected.",
    },
    Key {
        name: "amqp.connections_max",
        kind: Kind::Integer { min: 1, max: 10_000_000 },
        meaning: "Most AMQP connections; further ones are closed at once. The limit of open files, which \
                  is raised as far as it may, lowers this.",
    },
    Key {
        name: "amqp.handshake_timeout_ms",
        kind: Kind::Integer { min: 100, max: DAY_MS },
        meaning: "How long a client may take from connecting to `connection.open`, in milliseconds.",
    },
    Key {
        name: "http.enabled",
        kind: Kind::Flag,
        meaning: "Whether the management API and the metrics page are served.",
    },
    Key {
        name: "http.listen",
        kind: Kind::Address,
        meaning: "Address of the management API and of `/metrics`.",
    },
    Key {
        name: "sqs.enabled",
        kind: Kind::Flag,
        meaning: "Whether the interface of Amazon SQS is served, on the same queues as AMQP.",
    },
    Key {
        name: "sqs.listen",
        kind: Kind::AddressList,
        meaning: "Addresses of the SQS interface, plain HTTP. Port 0 takes a free one, which the \
                  ready line tells.",
    },
    Key {
        name: "sqs.threads",
        kind: Kind::Integer { min: 0, max: 256 },
        meaning: "Threads of the SQS interface. Each serves the connections that it accepts. 0: the \
                  core's own thread serves them, which costs least for each request, but takes from \
                  AMQP's clients what HTTP and signatures cost.",
    },
    Key {
        name: "sqs.account_id",
        kind: Kind::Text,
        meaning: "Account of virtual host `/`, and of requests from this machine that no known key has \
                  signed. Any other account is the virtual host of that name.",
    },
    Key {
        name: "sqs.region",
        kind: Kind::Text,
        meaning: "Region in the ARNs of queues. Requests may be signed for any region.",
    },
    Key {
        name: "sqs.verify",
        kind: Kind::Text,
        meaning: "Which requests have to be signed with an access key of this broker: `remote`, those \
                  from other machines (what is signed with a known key is verified everywhere); \
                  `always`, all.",
    },
    Key {
        name: "sqs.connections_max",
        kind: Kind::Integer { min: 1, max: 10_000_000 },
        meaning: "Most connections to the SQS interface; further ones are closed at once. The limit of \
                  open files lowers this.",
    },
    Key {
        name: "sqs.idle_timeout_ms",
        kind: Kind::Integer { min: 100, max: DAY_MS },
        meaning: "How long a connection to the SQS interface may be without a request, or not read an \
                  answer, in milliseconds. A receive that waits is a request.",
    },
    Key {
        name: "sqs.request_timeout_ms",
        kind: Kind::Integer { min: 100, max: DAY_MS },
        meaning: "How long a request to the SQS interface may take to arrive, in milliseconds.",
    },
    Key {
        name: "sqs.cooldown_ms",
        kind: Kind::Integer { min: 0, max: DAY_MS },
        meaning: "How long a queue may not be purged again, and none of its name be made after it was \
                  deleted, in milliseconds. SQS has a minute.",
    },
    Key {
        name: "cmq.listen",
        kind: Kind::OptionalAddress,
        meaning: "Address (UDP) at which CMQ's datagrams are taken and published to exchanges; empty: \
                  none. 4711 is CMQ's port.",
    },
    Key {
        name: "cmq.key_file",
        kind: Kind::Text,
        meaning: "File with the secret that CMQ's peers share, 32 bytes or 64 hexadecimal digits; only \
                  who has it is listened to then. Empty: none, nothing is encrypted.",
    },
    Key {
        name: "cmq.user",
        kind: Kind::Text,
        meaning: "User with whose permissions CMQ's messages are published and forwarded. One of \
                  `access.loopback_users` is for datagrams from this machine only.",
    },
    Key {
        name: "cmq.vhost",
        kind: Kind::Text,
        meaning: "Virtual host for messages to mailboxes without a route.",
    },
    Key {
        name: "cmq.exchange",
        kind: Kind::Text,
        meaning: "Exchange for messages to mailboxes without a route. Empty is the default exchange, \
                  which takes them to the queue that has the routing key's name.",
    },
    Key {
        name: "cmq.routing_key",
        kind: Kind::Text,
        meaning: "Routing key of messages to mailboxes without a route; `{mailbox}` stands for the \
                  mailbox's number.",
    },
    Key {
        name: "cmq.message_bytes_max",
        kind: Kind::Size { min: 1, max: 64 * MIB },
        meaning: "Largest message of CMQ, either way.",
    },
    Key {
        name: "cmq.waiting_bytes_max",
        kind: Kind::Size { min: MIB, max: 4 * GIB },
        meaning: "Bytes that were taken from CMQ's peers and wait to be published. Their credit ends \
                  before.",
    },
    Key {
        name: "cmq.route",
        kind: Kind::Tables(ROUTE_FIELDS),
        meaning: "Where messages to certain mailboxes are published; the first one that fits holds.",
    },
    Key {
        name: "cmq.forward",
        kind: Kind::Tables(FORWARD_FIELDS),
        meaning: "Queues whose messages are pushed to CMQ's peers.",
    },
    Key {
        name: "elastic.listen",
        kind: Kind::OptionalAddress,
        meaning: "Address of the elastic queues' directory, at which their clients ask for relays; empty: \
                  none. Port 0 takes a free one, which the ready line tells.",
    },
    Key {
        name: "elastic.advertise",
        kind: Kind::OptionalAddress,
        meaning: "Address at which relays, clients and other directories reach this one; empty: as \
                  `elastic.listen`. Each directory of an etcd has another one, and it is not `0.0.0.0` or \
                  `[::]`.",
    },
    Key {
        name: "elastic.key_file",
        kind: Kind::Text,
        meaning: "File with the secret that clients and relays have to show, 32 bytes or 64 hexadecimal \
                  digits. Empty: none is asked for.",
    },
    Key {
        name: "elastic.provider",
        kind: Kind::Text,
        meaning: "Who runs relays: `process`, this machine; `kubernetes`, pods of a cluster (only in a \
                  build with that feature).",
    },
    Key {
        name: "elastic.relay_program",
        kind: Kind::Text,
        meaning: "Program that provider `process` runs as relays; empty: this one.",
    },
    Key {
        name: "elastic.relay_listen",
        kind: Kind::Address,
        meaning: "Address at which relays listen. Port 0 gives each one a free one.",
    },
    Key {
        name: "elastic.kubernetes_site",
        kind: Kind::Text,
        meaning: "Name of this Quelea in its cluster: directories of one site see only its pods.",
    },
    Key {
        name: "elastic.kubernetes_namespace",
        kind: Kind::Text,
        meaning: "Where pods and queues' resources are; empty: the service account's own namespace.",
    },
    Key {
        name: "elastic.kubernetes_image",
        kind: Kind::Text,
        meaning: "Image of relays' pods; empty: the template names it.",
    },
    Key {
        name: "elastic.kubernetes_pod_template",
        kind: Kind::Text,
        meaning: "File with a PodTemplateSpec on which relays' pods are based; empty: none.",
    },
    Key {
        name: "elastic.kubernetes_relay_listen",
        kind: Kind::Text,
        meaning: "Where a relay listens in its pod; `$(POD_IP)` stands for the pod's address.",
    },
    Key {
        name: "elastic.relays_on_exit",
        kind: Kind::Text,
        meaning: "What becomes of the relays of the queues that this directory controls when it is stopped: \
                  `stop` ends them; `keep` leaves them to serve, and the next start, or another directory, \
                  adopts them. Empty: `keep` if `elastic.metadata` is `etcd`, else `stop`.",
    },
    Key {
        name: "elastic.relay_cost_per_hour_micros",
        kind: Kind::Integer { min: 0, max: 1_000_000_000_000 },
        meaning: "What a relay costs an hour, in millionths of whatever budgets are counted in. 0: \
                  nothing, and budgets have no effect.",
    },
    Key {
        name: "elastic.metadata",
        kind: Kind::Text,
        meaning: "Where queues' records are kept: `embedded`, a file of this directory alone in the data \
                  directory; `etcd`, for several directories (only in a build with that feature).",
    },
    Key {
        name: "elastic.etcd_endpoints",
        kind: Kind::TextList,
        meaning: "Where etcd is, as in `http://10.0.0.7:2379`.",
    },
    Key {
        name: "elastic.drain_ms_max",
        kind: Kind::Integer { min: 0, max: DAY_MS },
        meaning: "How long a relay that is to end waits for its clients to leave, in milliseconds.",
    },
    Key {
        name: "elastic.register_ms_max",
        kind: Kind::Integer { min: 100, max: DAY_MS },
        meaning: "How long a relay may take from being asked for to being ready, in milliseconds; then it \
                  is given up, and another one started.",
    },
    Key {
        name: "elastic.default",
        kind: Kind::Text,
        meaning: "Definition of queues that are made on first use: a JSON object with the fields of \
                  [a queue's definition](elastic.md#a-queues-definition); what it does not name has its \
                  default.",
    },
    Key {
        name: "elastic.queue",
        kind: Kind::Tables(ELASTIC_QUEUE_FIELDS),
        meaning: "Queues that are there from the start, or defined anew by it.",
    },
    Key {
        name: "elastic.entry",
        kind: Kind::Tables(ELASTIC_ENTRY_FIELDS),
        meaning: "[Entries](elastic-zmtp.md#the-entry) where ZeroMQ's sockets keep their connection while \
                  the queue's relays come and go.",
    },
    Key {
        name: "bridge.keep_listen",
        kind: Kind::OptionalAddress,
        meaning: "Address at which relays bring the messages of elastic queues that are kept in a durable \
                  queue; empty: nothing is kept here. With port 0 only the directory of this process \
                  can tell it to relays.",
    },
    Key {
        name: "bridge.keep_advertise",
        kind: Kind::OptionalAddress,
        meaning: "Address that this directory's relays are told for it; empty: `bridge.keep_listen`. It \
                  may be another broker's.",
    },
    Key {
        name: "bridge.user",
        kind: Kind::Text,
        meaning: "User with whose permissions elastic queues' messages are kept, fed and delivered. For \
                  one of `access.loopback_users` relays elsewhere than on this machine can keep nothing.",
    },
    Key {
        name: "bridge.vhost",
        kind: Kind::Text,
        meaning: "Virtual host of the durable queues in which messages are kept.",
    },
    Key {
        name: "bridge.directories",
        kind: Kind::TextList,
        meaning: "Directories that know the elastic queues of feeds and deliveries, each `HOST:PORT`; \
                  empty: the one of this process.",
    },
    Key {
        name: "bridge.feed",
        kind: Kind::Tables(FEED_FIELDS),
        meaning: "Exchanges that feed elastic queues.",
    },
    Key {
        name: "bridge.delivery",
        kind: Kind::Tables(DELIVERY_FIELDS),
        meaning: "Elastic queues that are delivered to exchanges or queues.",
    },
    Key {
        name: "log.segment_bytes",
        kind: Kind::Size { min: MIB, max: GIB },
        meaning: "Size of one file of the log. Smaller files are given back sooner, larger ones are \
                  changed less often. A message that does not fit gets a file of its own.",
    },
    Key {
        name: "limits.message_bytes_max",
        kind: Kind::Size { min: 0, max: 512 * MIB },
        meaning: "Largest body of a message.",
    },
    Key {
        name: "limits.resident_bytes_max",
        kind: Kind::Size { min: MIB, max: 1 << 40 },
        meaning: "Bodies of messages that are kept in memory, of all queues together. Beyond it they \
                  are left to the log and read ahead for consumers.",
    },
    Key {
        name: "limits.index_bytes_max",
        kind: Kind::Size { min: MIB, max: 1 << 40 },
        meaning: "Index entries (24 bytes a message) that are kept in memory, of all queues together. \
                  Beyond it stretches of them are left to the log.",
    },
    Key {
        name: "access.loopback_users",
        kind: Kind::TextList,
        meaning: "Users who may log in from this machine only.",
    },
    Key {
        name: "access.bootstrap_user",
        kind: Kind::Text,
        meaning: "Administrator who is made when the data directory is new.",
    },
    Key {
        name: "access.bootstrap_password",
        kind: Kind::Text,
        meaning: "Password of that administrator. Without effect once the data directory exists.",
    },
    Key {
        name: "logging.level",
        kind: Kind::Text,
        meaning: "What is logged to standard error: `error`, `warn`, `info`, `debug`, `trace`, or \
                  filters such as `info,quelea_node=debug`.",
    },
];

/// `[[cmq.route]]`.
const ROUTE_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "cmq.route.mailboxes",
            kind: Kind::Text,
            meaning: "Mailboxes that it is for: one, as in `7`, or all from one to another, as in \
                      `0-15`.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "cmq.route.vhost",
            kind: Kind::Text,
            meaning: "Virtual host of the exchange.",
        },
        default: Some("\"/\""),
    },
    Field {
        key: Key {
            name: "cmq.route.exchange",
            kind: Kind::Text,
            meaning: "Exchange that they are published to.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "cmq.route.routing_key",
            kind: Kind::Text,
            meaning: "Their routing key; `{mailbox}` stands for the mailbox's number.",
        },
        default: Some("\"cmq.{mailbox}\""),
    },
    Field {
        key: Key {
            name: "cmq.route.persistent",
            kind: Kind::Flag,
            meaning: "Whether they are persistent. Durable queues keep those, and a reliable sender is \
                      acknowledged when they are safe.",
        },
        default: Some("true"),
    },
];

/// `[[cmq.forward]]`.
const FORWARD_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "cmq.forward.queue",
            kind: Kind::Text,
            meaning: "Queue that is consumed from. It need not exist yet.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "cmq.forward.vhost",
            kind: Kind::Text,
            meaning: "Virtual host that the queue is in. `cmq.user` has to have permission there.",
        },
        default: Some("\"/\""),
    },
    Field {
        key: Key {
            name: "cmq.forward.to",
            kind: Kind::Text,
            meaning: "Whom its messages are pushed to, `HOST:PORT/MAILBOX`.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "cmq.forward.mode",
            kind: Kind::Text,
            meaning: "`reliable`: in order, and acknowledged to the queue when the peer has acknowledged \
                      it. `unordered`: the same without the order. `lossy`: acknowledged when it is sent. \
                      `latest`: the same, and the peer drops what is older than the newest.",
        },
        default: Some("\"reliable\""),
    },
    Field {
        key: Key {
            name: "cmq.forward.prefetch",
            kind: Kind::Integer { min: 1, max: 65_535 },
            meaning: "Most messages that are under way to the peer.",
        },
        default: Some("1000"),
    },
    Field {
        key: Key {
            name: "cmq.forward.timeout_ms",
            kind: Kind::Integer { min: 100, max: DAY_MS },
            meaning: "How long the peer may be without acknowledging anything, in milliseconds; then what \
                      is under way goes back to the queue, for other consumers too, and the peer is tried \
                      again later.",
        },
        default: Some("10000"),
    },
];
