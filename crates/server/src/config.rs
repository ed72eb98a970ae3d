//! The configuration: defaults, then `quelea.toml`, then `QUELEA__SECTION__KEY`, then flags; the
//! later wins. Every key stands in [`key::KEYS`] with its type, range and meaning, from which values
//! are checked and the reference page is made.

pub(crate) mod byte_size;
pub(crate) mod key;
pub(crate) mod reference;
mod settings;

use std::path::PathBuf;

use quelea_model::limits;
use serde::{Deserialize, Serialize};

pub(crate) use settings::{ConfigError, Settings, is_address};

/// The whole configuration, as the rest of the program reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) stop_timeout_ms: u64,
    pub(crate) amqp: Amqp,
    pub(crate) http: Http,
    pub(crate) sqs: Sqs,
    pub(crate) cmq: Cmq,
    pub(crate) elastic: Elastic,
    pub(crate) bridge: Bridge,
    pub(crate) log: Log,
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    pub(crate) logging: Logging,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amqp {
    pub(crate) listen: Vec<String>,
    pub(crate) frame_max: u32,
    pub(crate) channel_max: u16,
    pub(crate) heartbeat_s: u16,
    pub(crate) connections_max: usize,
    pub(crate) handshake_timeout_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) enabled: bool,
    pub(crate) listen: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sqs {
    pub(crate) enabled: bool,
    pub(crate) listen: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) account_id: String,
    pub(crate) region: String,
    pub(crate) verify: String,
    pub(crate) connections_max: usize,
    pub(crate) idle_timeout_ms: u64,
    pub(crate) request_timeout_ms: u64,
    pub(crate) cooldown_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cmq {
    pub(crate) listen: String,
    pub(crate) key_file: String,
    pub(crate) user: String,
    pub(crate) vhost: String,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) message_bytes_max: usize,
    pub(crate) waiting_bytes_max: usize,
    pub(crate) route: Vec<CmqRoute>,
    pub(crate) forward: Vec<CmqForward>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CmqRoute {
    pub(crate) mailboxes: String,
    pub(crate) vhost: String,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) persistent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CmqForward {
    pub(crate) queue: String,
    pub(crate) vhost: String,
    pub(crate) to: String,
    pub(crate) mode: String,
    pub(crate) prefetch: u16,
    pub(crate) timeout_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Elastic {
    pub(crate) listen: String,
    pub(crate) advertise: String,
    pub(crate) key_file: String,
    pub(crate) provider: String,
    pub(crate) relay_program: String,
    pub(crate) relay_listen: String,
    pub(crate) kubernetes_site: String,
    pub(crate) kubernetes_namespace: String,
    pub(crate) kubernetes_image: String,
    pub(crate) kubernetes_pod_template: String,
    pub(crate) kubernetes_relay_listen: String,
    pub(crate) relays_on_exit: String,
    pub(crate) relay_cost_per_hour_micros: u64,
    pub(crate) metadata: String,
    pub(crate) etcd_endpoints: Vec<String>,
    pub(crate) drain_ms_max: u64,
    pub(crate) register_ms_max: u64,
    pub(crate) default: String,
    pub(crate) queue: Vec<ElasticQueue>,
    pub(crate) entry: Vec<ElasticEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElasticQueue {
    pub(crate) name: String,
    pub(crate) definition: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElasticEntry {
    pub(crate) queue: String,
    pub(crate) zmtp_in: String,
    pub(crate) zmtp_out: String,
    pub(crate) zmtp_security: String,
    pub(crate) zmtp_users_file: String,
    pub(crate) zmtp_secret_key_file: String,
    pub(crate) zmtp_clients_file: String,
    pub(crate) zmtp_heartbeat_ms: u64,
    pub(crate) slow: String,
    pub(crate) ring_bytes_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bridge {
    pub(crate) keep_listen: String,
    pub(crate) keep_advertise: String,
    pub(crate) user: String,
    pub(crate) vhost: String,
    pub(crate) directories: Vec<String>,
    pub(crate) feed: Vec<BridgeFeed>,
    pub(crate) delivery: Vec<BridgeDelivery>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BridgeFeed {
    pub(crate) exchange: String,
    pub(crate) binding_keys: Vec<String>,
    pub(crate) vhost: String,
    pub(crate) through: String,
    pub(crate) queue: String,
    pub(crate) prefetch: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BridgeDelivery {
    pub(crate) queue: String,
    pub(crate) prefixes: Vec<String>,
    pub(crate) vhost: String,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) segment_bytes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) message_bytes_max: u64,
    pub(crate) resident_bytes_max: usize,
    pub(crate) index_bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Access {
    pub(crate) loopback_users: Vec<String>,
    pub(crate) bootstrap_user: String,
    pub(crate) bootstrap_password: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Logging {
    pub(crate) level: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("./quelea-data"),
            stop_timeout_ms: 5_000,
            amqp: Amqp {
                listen: vec!["127.0.0.1:5672".to_owned()],
                frame_max: limits::FRAME_BYTES_MAX,
                channel_max: limits::CHANNELS_MAX,
                heartbeat_s: limits::HEARTBEAT_S,
                connections_max: 65_536,
                handshake_timeout_ms: limits::HANDSHAKE_TIMEOUT_MS,
            },
            http: Http { enabled: true, listen: "127.0.0.1:15672".to_owned() },
            sqs: Sqs {
                enabled: true,
                listen: vec!["127.0.0.1:9324".to_owned()],
                threads: 0,
                account_id: "000000000000".to_owned(),
                region: "us-east-1".to_owned(),
                verify: "remote".to_owned(),
                connections_max: 150_000,
                idle_timeout_ms: 60_000,
                request_timeout_ms: 20_000,
                cooldown_ms: 60_000,
            },
            cmq: Cmq {
                listen: String::new(),
                key_file: String::new(),
                user: "guest".to_owned(),
                vhost: "/".to_owned(),
                exchange: String::new(),
                routing_key: "cmq.{mailbox}".to_owned(),
                message_bytes_max: 1 << 20,
                waiting_bytes_max: 64 << 20,
                route: Vec::new(),
                forward: Vec::new(),
            },
            elastic: Elastic::default(),
            bridge: Bridge {
                keep_listen: "127.0.0.1:0".to_owned(),
                keep_advertise: String::new(),
                user: "guest".to_owned(),
                vhost: "/".to_owned(),
                directories: Vec::new(),
                feed: Vec::new(),
                delivery: Vec::new(),
            },
            log: Log { segment_bytes: limits::SEGMENT_BYTES },
            limits: Limits {
                message_bytes_max: limits::MESSAGE_BYTES_MAX,
                resident_bytes_max: limits::RESIDENT_BYTES_MAX,
                index_bytes_max: limits::INDEX_BYTES_MAX,
            },
            access: Access {
                loopback_users: vec!["guest".to_owned()],
                bootstrap_user: "guest".to_owned(),
                bootstrap_password: "guest".to_owned(),
            },
            logging: Logging { level: "info".to_owned() },
        }
    }
}

impl Default for Elastic {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:5670".to_owned(),
            advertise: String::new(),
            key_file: String::new(),
            provider: "process".to_owned(),
            relay_program: String::new(),
            relay_listen: "127.0.0.1:0".to_owned(),
            kubernetes_site: "quelea".to_owned(),
            kubernetes_namespace: String::new(),
            kubernetes_image: String::new(),
            kubernetes_pod_template: String::new(),
            kubernetes_relay_listen: "$(POD_IP):5680".to_owned(),
            relays_on_exit: String::new(),
            relay_cost_per_hour_micros: 0,
            metadata: "embedded".to_owned(),
            etcd_endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            drain_ms_max: 60_000,
            register_ms_max: 15_000,
            default: "{}".to_owned(),
            queue: Vec::new(),
            entry: Vec::new(),
        }
    }
}
