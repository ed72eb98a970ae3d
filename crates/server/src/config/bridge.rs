//! `[bridge]`: what goes between elastic queues and the broker's own.

use quelea_elastic_proto::limits::{PREFIX_BYTES_MAX, PREFIXES_MAX, QUEUE_NAME_BYTES_MAX};
use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{Address, OptionalAddress};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Bridge {
    /// Address at which relays bring the messages of elastic queues that are kept in a durable
    /// queue; empty: nothing is kept here. With port 0 only the directory of this process can tell
    /// it to relays.
    #[schemars(with = "OptionalAddress")]
    pub(crate) keep_listen: String,
    /// Address that this directory's relays are told for it; empty: `bridge.keep_listen`. It may be
    /// another broker's.
    #[schemars(with = "OptionalAddress")]
    pub(crate) keep_advertise: String,
    /// User with whose permissions elastic queues' messages are kept, fed and delivered. For one of
    /// `access.loopback_users` relays elsewhere than on this machine can keep nothing.
    pub(crate) user: String,
    /// Virtual host of the durable queues in which messages are kept.
    pub(crate) vhost: String,
    /// Directories that know the elastic queues of feeds and deliveries, each `HOST:PORT`; empty:
    /// the one of this process.
    #[schemars(with = "Vec<Address>")]
    pub(crate) directories: Vec<String>,
    /// Exchanges that feed elastic queues.
    pub(crate) feed: Vec<BridgeFeed>,
    /// Elastic queues that are delivered to exchanges or queues.
    pub(crate) delivery: Vec<BridgeDelivery>,
}

/// `[[bridge.feed]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BridgeFeed {
    /// Exchange whose messages are fed. Empty: nothing is bound, and what comes into `through` is
    /// fed.
    #[schemars(length(max = SHORT_STRING_BYTES_MAX))]
    pub(crate) exchange: String,
    /// Which of its messages: keys by which `through` is bound.
    #[serde(default = "every_key")]
    #[schemars(length(min = 1, max = PREFIXES_MAX), inner(length(max = SHORT_STRING_BYTES_MAX)))]
    pub(crate) binding_keys: Vec<String>,
    /// Virtual host of the exchange and of `through`.
    #[serde(default = "super::root_vhost")]
    pub(crate) vhost: String,
    /// Durable queue in which messages wait. It is made if it is not there.
    #[schemars(length(min = 1, max = SHORT_STRING_BYTES_MAX))]
    pub(crate) through: String,
    /// The elastic queue: 1 to 255 bytes.
    #[schemars(length(min = 1, max = QUEUE_NAME_BYTES_MAX))]
    pub(crate) queue: String,
    /// Most messages that are under way to the elastic queue.
    #[serde(default = "super::prefetch")]
    #[schemars(range(min = 1))]
    pub(crate) prefetch: u16,
}

/// `[[bridge.delivery]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BridgeDelivery {
    /// The elastic queue: 1 to 255 bytes.
    #[schemars(length(min = 1, max = QUEUE_NAME_BYTES_MAX))]
    pub(crate) queue: String,
    /// Which of its messages: those whose topic begins with one of these.
    #[serde(default = "every_prefix")]
    #[schemars(length(min = 1, max = PREFIXES_MAX), inner(length(max = PREFIX_BYTES_MAX)))]
    pub(crate) prefixes: Vec<String>,
    /// Virtual host of the exchange.
    #[serde(default = "super::root_vhost")]
    pub(crate) vhost: String,
    /// Exchange to which they are published. Empty is the default exchange, which takes them to the
    /// queue, of AMQP or SQS, that has the routing key's name.
    #[serde(default)]
    #[schemars(length(max = SHORT_STRING_BYTES_MAX))]
    pub(crate) exchange: String,
    /// Their routing key; empty: the topic.
    #[serde(default)]
    #[schemars(length(max = SHORT_STRING_BYTES_MAX))]
    pub(crate) routing_key: String,
}

impl Default for Bridge {
    fn default() -> Self {
        Self {
            keep_listen: "127.0.0.1:0".to_owned(),
            keep_advertise: String::new(),
            user: "guest".to_owned(),
            vhost: super::root_vhost(),
            directories: Vec::new(),
            feed: Vec::new(),
            delivery: Vec::new(),
        }
    }
}

fn every_key() -> Vec<String> {
    vec!["#".to_owned()]
}

fn every_prefix() -> Vec<String> {
    vec![String::new()]
}
