//! `[cassandra]`.

use quelea_sqs_protocol::Consistency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::{Address, OptionalAddress};
use super::choice::{Choice, Choices};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cassandra {
    /// Nodes of the Apache Cassandra that holds [replicated queues](../cassandra/front-ends.md); a few are enough, the others are
    /// found through them. Empty: there are no replicated queues here.
    #[schemars(with = "Vec<Address>")]
    pub(crate) nodes: Vec<String>,
    /// Keyspace of all front-ends that serve the same queues. It is made if it is missing.
    pub(crate) keyspace: String,
    /// Datacenter whose nodes are asked; empty: the only one.
    pub(crate) datacenter: String,
    /// On how many nodes each row is stored, in a keyspace that is made here.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) replication: usize,
    /// User of Cassandra; empty: none.
    pub(crate) user: String,
    /// File whose first line is that user's password; empty: it has none.
    pub(crate) password_file: String,
    /// File with the certificates, in PEM, that have to have signed those of the nodes; empty: connections are not
    /// encrypted. Wants the feature `cassandra-tls`.
    pub(crate) ca_file: String,
    /// How many replicas take part in the reads and writes of queues without the attribute `Consistency`: `LOCAL_QUORUM`,
    /// more than half of those in the datacenter; `ONE`, one.
    #[serde(with = "Choice::<Consistency>")]
    pub(crate) consistency: Consistency,
    /// How long a request to Cassandra may take, its repetitions included, in milliseconds; a start refuses more than 5000.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) request_timeout_ms: u64,
    /// Where the other front-ends send calls of the [FIFO queues](../cassandra/fifo.md) that this one owns, as `host:port`; empty:
    /// the address from which Cassandra is reached, any port. Keep it from clients.
    #[schemars(with = "OptionalAddress")]
    pub(crate) internal_listen: String,
    /// What is advertised to the others, as `host:port`, where that is another one; empty: `internal_listen`.
    #[schemars(with = "OptionalAddress")]
    pub(crate) internal_address: String,
}

impl Choices for Consistency {
    fn choices() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|consistency| (consistency.name(), consistency)).to_vec()
    }
}

impl Default for Cassandra {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            keyspace: "quelea".to_owned(),
            datacenter: String::new(),
            replication: 3,
            user: String::new(),
            password_file: String::new(),
            ca_file: String::new(),
            consistency: Consistency::LocalQuorum,
            request_timeout_ms: 5_000,
            internal_listen: String::new(),
            internal_address: String::new(),
        }
    }
}
