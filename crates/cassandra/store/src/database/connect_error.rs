//! Why a front-end cannot use Cassandra.

use scylla::errors::PrepareError;

use crate::database::fault::lasting_attempt;

/// Why Cassandra cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No node was named.
    #[error("cassandra.nodes names no node")]
    NoNodes,
    /// What is named as a node can be none.
    #[error("cassandra.nodes: `{0}` is neither HOST nor HOST:PORT")]
    Node(String),
    /// The keyspace's name would have to be quoted.
    #[error(
        "the keyspace `{0}` has to be 1 to 48 lower-case letters, digits and underscores, with a letter first"
    )]
    Keyspace(String),
    /// A request may take longer than readers wait for the message of an entry.
    #[error("cassandra.request_timeout_ms is {timeout_ms}, and can be {limit_ms} at most")]
    RequestTimeout {
        /// What was asked for.
        timeout_ms: u64,
        /// The most.
        limit_ms: u64,
    },
    /// The password cannot be read.
    #[error("the password file {path}: {reason}")]
    PasswordFile {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The certificates cannot be read.
    #[error("the certificates in {path}: {reason}")]
    Certificates {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// This build of Quelea has no TLS for Cassandra.
    #[error(
        "cassandra.ca_file = {path}: this build has no TLS for Cassandra, which the feature `cassandra-tls` brings"
    )]
    NoTls {
        /// Which file.
        path: String,
    },
    /// Other front-ends cannot reach this one where they should.
    #[error(
        "cannot listen for other front-ends at {address} (cassandra.internal_listen): {reason}"
    )]
    InternalListen {
        /// Where.
        address: String,
        /// Why.
        reason: String,
    },
    /// Nobody is there, or not yet.
    #[error("none of the nodes {nodes} answers: {reason}")]
    NoAnswer {
        /// Those that were named.
        nodes: String,
        /// What the last attempt ended with.
        reason: String,
    },
    /// Some nodes are there, and too few for a request that a start takes.
    #[error("cannot {what} yet: {reason}")]
    NotYet {
        /// What was tried.
        what: String,
        /// What became of it.
        reason: String,
    },
    /// None of the nodes lets this user in, or speaks as it should.
    #[error("none of the nodes {nodes} can be used by {user}: {reason}")]
    Unreachable {
        /// Who signs in.
        user: String,
        /// Those that were named.
        nodes: String,
        /// What the last attempt ended with.
        reason: String,
    },
    /// There is no such datacenter.
    #[error("there is no datacenter `{wanted}` in this cluster, which has {there}")]
    WrongDatacenter {
        /// The one that was named.
        wanted: String,
        /// Those that are there.
        there: String,
    },
    /// There are several, and none was named.
    #[error("the cluster has several datacenters, {there}: cassandra.datacenter has to name one")]
    SeveralDatacenters {
        /// Those that are there.
        there: String,
    },
    /// A keyspace that is to be made would have more replicas than nodes.
    #[error(
        "cassandra.replication is {replication}, but the datacenter `{datacenter}` has only {nodes} nodes"
    )]
    TooFewNodes {
        /// What was asked for.
        replication: usize,
        /// Where.
        datacenter: String,
        /// How many there are.
        nodes: usize,
    },
    /// Tables are missing, and the user may not make them.
    #[error("{user} may not {what}: {reason}")]
    NoRight {
        /// Who.
        user: String,
        /// What was tried.
        what: String,
        /// Cassandra's words.
        reason: String,
    },
    /// The tables were made by a later Quelea.
    #[error(
        "the keyspace has the schema's version {found}, and this Quelea knows versions up to {known}"
    )]
    SchemaTooNew {
        /// What stands there.
        found: i32,
        /// What is known here.
        known: i32,
    },
    /// Messages are sorted by time, and no node has said what time it is.
    #[error("the clock cannot be compared with Cassandra's: {0}")]
    Clocks(String),
    /// The front-ends' own key could neither be made nor read.
    #[error("the key of the front-ends cannot be had: {0}")]
    ClusterKey(String),
    /// The tables could not be brought up to date.
    #[error("the schema could not be brought to version {version}: {reason}")]
    Schema {
        /// Which version.
        version: i32,
        /// Why not.
        reason: String,
    },
}

impl ConnectError {
    /// Returns whether another attempt may succeed though nothing that was configured changes.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NoAnswer { .. } | Self::NotYet { .. } | Self::Clocks(_) | Self::ClusterKey(_)
        )
    }

    /// Returns why a statement of these tables could not be prepared.
    pub(crate) fn of_statement(error: &PrepareError, version: i32) -> Self {
        let reason = error.to_string();
        match error {
            PrepareError::AllAttemptsFailed { first_attempt }
                if lasting_attempt(first_attempt).is_some() =>
            {
                Self::Schema { version, reason }
            }
            _ => Self::NotYet { what: "prepare the statements".to_owned(), reason },
        }
    }
}
