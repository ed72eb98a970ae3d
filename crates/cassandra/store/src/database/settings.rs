//! How a front-end reaches Cassandra.

use std::path::PathBuf;

use quelea_model::limits::IN_FLIGHT_MAX;
use quelea_sqs_protocol::Consistency;

use crate::limits::{BUCKET_ROWS_MAX, OWNED_BYTES_MAX};

/// How a front-end reaches Cassandra, and what it makes there.
#[derive(Clone, Debug)]
pub struct CassandraSettings {
    /// A few nodes, each as `host:port`; the others are found through them.
    pub nodes: Vec<String>,
    /// The keyspace, which is made when it is not there.
    pub keyspace: String,
    /// The datacenter whose nodes are asked; `None`: the only one.
    pub datacenter: Option<String>,
    /// How many nodes of the datacenter store each row, in a keyspace that is made here.
    pub replication: usize,
    /// Who signs in; `None`: nobody.
    pub user: Option<String>,
    /// A file with that user's password on its first line.
    pub password_file: Option<PathBuf>,
    /// A file with the certificates, in PEM, of who may have signed those of the nodes; `None`: no TLS.
    pub ca_file: Option<PathBuf>,
    /// How many replicas answer for a queue that does not say so itself.
    pub consistency: Consistency,
    /// How long no queue can have the name of a deleted one, and for how long a queue cannot be purged again, in ms.
    pub cooldown_ms: u64,
    /// How long a request to Cassandra may take, in ms, its repetitions included.
    pub request_timeout_ms: u64,
    /// Where other front-ends reach this one, as `host:port`; `None`: at the address from which it reaches Cassandra, at any port.
    pub internal_listen: Option<String>,
    /// What is advertised to the others, as `host:port`; `None`: `internal_listen` itself.
    pub internal_address: Option<String>,
    /// Most connections of other front-ends there; further ones are closed at once.
    pub internal_connections_max: usize,
    /// Whether front-ends take messages as in the paper, without regard to each other.
    pub is_classic: bool,
    /// Duplicates in a million messages that `OrderHint=auto` aims at, at most.
    pub duplicates_ppm_max: u32,
    /// Rows a second that the sweep reads; 0: there is none.
    pub sweep_rows_per_s: u32,
    /// Bytes that all FIFO queues that are owned here may take of the memory, about.
    pub fifo_bytes_max: usize,
    /// Messages of one queue that may be in flight, roughly.
    pub in_flight_max: usize,
    /// Rows that a partition of the index should hold: [`crate::limits::BUCKET_ROWS_MAX`], save in tests.
    pub bucket_rows_max: u32,
}

impl CassandraSettings {
    /// Returns who signs in, in words.
    pub(crate) fn user_in_words(&self) -> String {
        match &self.user {
            Some(user) => format!("the user `{user}`"),
            None => "a client without a user".to_owned(),
        }
    }
}

impl Default for CassandraSettings {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            keyspace: "quelea".to_owned(),
            datacenter: None,
            replication: 3,
            user: None,
            password_file: None,
            ca_file: None,
            consistency: Consistency::LocalQuorum,
            cooldown_ms: 60_000,
            request_timeout_ms: 5_000,
            internal_listen: None,
            internal_address: None,
            internal_connections_max: 4_096,
            is_classic: false,
            duplicates_ppm_max: 5_000,
            sweep_rows_per_s: 200,
            fifo_bytes_max: OWNED_BYTES_MAX,
            in_flight_max: IN_FLIGHT_MAX,
            bucket_rows_max: BUCKET_ROWS_MAX,
        }
    }
}
