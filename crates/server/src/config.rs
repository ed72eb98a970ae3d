//! The configuration: defaults, then `quelea.toml`, then `QUELEA__SECTION__KEY`, then flags; the
//! later wins. A key is one field of these structures: its type and its attributes say what it may be,
//! [`Default`] what it is if it is not set, its doc comment what the reference page says of it.

mod address;
mod amqp;
mod bdqs;
mod bridge;
pub(crate) mod byte_size;
mod cassandra;
mod check;
mod choice;
mod cmq;
mod elastic;
mod http;
mod key;
pub(crate) mod reference;
mod settings;
mod sqs;

use std::path::PathBuf;

use quelea_model::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::amqp::Amqp;
pub(crate) use self::bdqs::Bdqs;
pub(crate) use self::bridge::{Bridge, BridgeDelivery, BridgeFeed};
use self::byte_size::{ByteSize, GIB, MIB};
pub(crate) use self::cassandra::Cassandra;
pub(crate) use self::check::ConfigError;
pub(crate) use self::cmq::{Cmq, CmqForward, CmqRoute};
pub(crate) use self::elastic::{Elastic, ElasticEntry, Metadata, Provider, RelaysOnExit};
pub(crate) use self::http::Http;
pub(crate) use self::settings::Settings;
pub(crate) use self::sqs::Sqs;
#[cfg(test)]
pub(crate) use self::{cmq::ForwardMode, elastic::ElasticQueue};

const DAY_MS: u64 = 86_400_000;

/// The whole configuration, as the rest of the program reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// What queues are in: `embedded`, the log of this broker, with replicated queues beside it if `cassandra.nodes` names
    /// some; `cassandra`, Cassandra alone: this is one of several [front-ends](../cassandra/front-ends.md) then, which serves SQS
    /// and the management API, and has no log, no data directory, and none of the other protocols.
    pub(crate) store: Store,
    /// Directory of the log. It is made if it is missing, and locked while the broker runs.
    pub(crate) data_dir: PathBuf,
    /// How long a stop waits for clients to read what is left for them, in milliseconds.
    #[schemars(range(max = DAY_MS))]
    pub(crate) stop_timeout_ms: u64,
    /// File with [definitions](management-api.md#definitions) that are imported at each start, before the broker says that
    /// it is ready. With one that cannot be imported it does not start. Not with `cassandra.nodes`. Empty: none.
    pub(crate) definitions: PathBuf,
    pub(crate) amqp: Amqp,
    pub(crate) http: Http,
    pub(crate) sqs: Sqs,
    pub(crate) cassandra: Cassandra,
    pub(crate) bdqs: Bdqs,
    pub(crate) cmq: Cmq,
    pub(crate) elastic: Elastic,
    pub(crate) bridge: Bridge,
    pub(crate) log: Log,
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    pub(crate) logging: Logging,
}

/// What queues are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Store {
    Embedded,
    Cassandra,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// Size of one file of the log. Smaller files are given back sooner, larger ones are changed
    /// less often. A message that does not fit gets a file of its own.
    #[schemars(with = "ByteSize", range(min = MIB, max = GIB))]
    pub(crate) segment_bytes: u32,
    /// Whether to start although messages are lost, without them: a log that is damaged or misses a
    /// segment is refused else. Each of them is named in an error. For one start, not for good.
    pub(crate) accept_damage: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Largest body of a message.
    #[schemars(with = "ByteSize", range(max = 512 * MIB))]
    pub(crate) message_bytes_max: u64,
    /// Bodies of messages that are kept in memory, of all queues together. Beyond it they are left
    /// to the log and read ahead for consumers.
    #[schemars(with = "ByteSize", range(min = MIB, max = 1_024 * GIB))]
    pub(crate) resident_bytes_max: usize,
    /// Index entries (24 bytes a message) that are kept in memory, of all queues together. Beyond
    /// it ranges of them are left to the log.
    #[schemars(with = "ByteSize", range(min = MIB, max = 1_024 * GIB))]
    pub(crate) index_bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Access {
    /// Users who may log in from this machine only.
    pub(crate) loopback_users: Vec<String>,
    /// Administrator who is made when the data directory is new.
    pub(crate) bootstrap_user: String,
    /// Password of that administrator. Without effect once the data directory exists.
    #[schemars(length(min = 1, max = 1_024))]
    pub(crate) bootstrap_password: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Logging {
    /// What is logged to standard error: `error`, `warn`, `info`, `debug`, `trace`, or filters such
    /// as `info,quelea_node=debug`. After a change SIGHUP has the broker read its configuration anew
    /// and take this over; all other settings need a restart.
    pub(crate) level: String,
}

impl Config {
    /// Returns whether this process keeps elastic queues' messages itself: at a port of its own choice only if its
    /// directory can tell relays of it.
    pub(crate) fn has_own_keeper(&self) -> bool {
        let keep_listen = &self.bridge.keep_listen;
        let is_unknown = keep_listen.ends_with(":0") && self.elastic.listen.is_empty();
        !keep_listen.is_empty() && !is_unknown
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            store: Store::Embedded,
            data_dir: PathBuf::from("./quelea-data"),
            stop_timeout_ms: 5_000,
            definitions: PathBuf::new(),
            amqp: Amqp::default(),
            http: Http::default(),
            sqs: Sqs::default(),
            cassandra: Cassandra::default(),
            bdqs: Bdqs::default(),
            cmq: Cmq::default(),
            elastic: Elastic::default(),
            bridge: Bridge::default(),
            log: Log::default(),
            limits: Limits::default(),
            access: Access::default(),
            logging: Logging::default(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { segment_bytes: limits::SEGMENT_BYTES, accept_damage: false }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            resident_bytes_max: limits::RESIDENT_BYTES_MAX,
            index_bytes_max: limits::INDEX_BYTES_MAX,
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Self {
            loopback_users: vec!["guest".to_owned()],
            bootstrap_user: "guest".to_owned(),
            bootstrap_password: "guest".to_owned(),
        }
    }
}

impl Default for Logging {
    fn default() -> Self {
        Self { level: "info".to_owned() }
    }
}

/// Returns the default of tables' `vhost`.
fn root_vhost() -> String {
    "/".to_owned()
}

/// Returns the default of tables' `prefetch`.
const fn prefetch() -> u16 {
    1_000
}
