//! The start: reach Cassandra, look at its datacenters, bring its tables up to date. Each thing that can be wrong is an
//! error of its own.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, MetadataError,
    NewSessionError,
};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::{Consistency, SerialConsistency};

use crate::database::connect_error::ConnectError;
use crate::database::settings::CassandraSettings;
use crate::database::tls;
use crate::limits::GRACE_MS;

/// How long to wait for one node's answer to a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for a session with any of them.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// When another node is asked too, though the first has not answered: it may be frozen.
const SECOND_ATTEMPT_AFTER: Duration = Duration::from_millis(400);

/// A connected session, and the datacenter whose nodes it asks.
pub(crate) struct Connected {
    pub(crate) session: Session,
    pub(crate) datacenter: String,
    pub(crate) nodes_in_datacenter: usize,
}

/// Connects, and looks at what is there.
pub(crate) async fn connect(settings: &CassandraSettings) -> Result<Connected, ConnectError> {
    if settings.nodes.is_empty() {
        return Err(ConnectError::NoNodes);
    }
    if let Some(node) = settings.nodes.iter().find(|node| !is_node(node)) {
        return Err(ConnectError::Node(node.clone()));
    }
    if !is_plain_name(&settings.keyspace) {
        return Err(ConnectError::Keyspace(settings.keyspace.clone()));
    }
    check_request_timeout(settings.request_timeout_ms)?;
    let builder = SessionBuilder::new()
        .known_nodes(&settings.nodes)
        .connection_timeout(CONNECT_TIMEOUT)
        // The schema's own steps wait for longer: `schema.rs`.
        .auto_await_schema_agreement(false)
        .keyspaces_to_fetch([&settings.keyspace]);
    let mut builder = tls::secured(builder, settings)?;
    if let Some(user) = &settings.user {
        builder = builder.user(user, password(settings)?);
    }
    // A node that is frozen takes a connection, and answers nothing on it.
    let Ok(built) = tokio::time::timeout(SESSION_TIMEOUT, builder.build()).await else {
        let reason = format!("nothing came within {} s", SESSION_TIMEOUT.as_secs());
        return Err(ConnectError::NoAnswer { nodes: settings.nodes.join(", "), reason });
    };
    let session = built.map_err(|error| unreachable(settings, &error))?;
    let (datacenter, nodes_in_datacenter) = datacenter(settings, &session)?;
    let profile = profile(settings, &datacenter);
    session.get_default_execution_profile_handle().clone().map_to_another_profile(profile);
    Ok(Connected { session, datacenter, nodes_in_datacenter })
}

/// Returns whether `text` can be a node: a host, or a host and a port. What cannot must not be
/// waited for.
fn is_node(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "9042"));
    let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Returns whether a name needs no quotes in CQL, and is no part of another statement.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=48).contains(&name.len())
        && name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Checks the request timeout: a message and its entry are written at the same time, and an entry
/// whose message does not come is dropped.
fn check_request_timeout(timeout_ms: u64) -> Result<(), ConnectError> {
    let limit_ms = GRACE_MS / 2;
    if timeout_ms > limit_ms {
        return Err(ConnectError::RequestTimeout { timeout_ms, limit_ms });
    }
    Ok(())
}

fn password(settings: &CassandraSettings) -> Result<String, ConnectError> {
    let Some(path) = &settings.password_file else { return Ok(String::new()) };
    let text = std::fs::read_to_string(path).map_err(|error| ConnectError::PasswordFile {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn unreachable(settings: &CassandraSettings, error: &NewSessionError) -> ConnectError {
    let (nodes, reason) = (settings.nodes.join(", "), error.to_string());
    match is_unanswered(error) {
        true => ConnectError::NoAnswer { nodes, reason },
        false => ConnectError::Unreachable { user: settings.user_in_words(), nodes, reason },
    }
}

/// Returns whether the last node that was tried gave no answer, or one that says that it cannot
/// yet; not whether it refused.
fn is_unanswered(error: &NewSessionError) -> bool {
    let last = match error {
        NewSessionError::FailedToResolveAnyHostname(_) => return true,
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken { last_connection_error },
        )) => last_connection_error,
        _ => return false,
    };
    match last {
        ConnectionError::ConnectTimeout | ConnectionError::BrokenConnection(_) => true,
        ConnectionError::IoError(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::TimedOut
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::UnexpectedEof
                | ErrorKind::BrokenPipe
        ),
        ConnectionError::ConnectionSetupRequestError(error) => match &error.error {
            ConnectionSetupRequestErrorKind::BrokenConnection(_) => true,
            ConnectionSetupRequestErrorKind::DbError(error, said) => match error {
                DbError::Overloaded
                | DbError::IsBootstrapping
                | DbError::ServerError
                | DbError::Unavailable { .. } => true,
                // It has to read the user's password from the others.
                DbError::AuthenticationError => said.contains("Cannot achieve consistency level"),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

/// Returns the datacenter to use, and how many nodes it has, those that are down included.
fn datacenter(
    settings: &CassandraSettings,
    session: &Session,
) -> Result<(String, usize), ConnectError> {
    let state = session.get_cluster_state();
    let of_nodes: Vec<String> =
        state.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect();
    let there: BTreeSet<&String> = of_nodes.iter().collect();
    if there.is_empty() {
        return Err(ConnectError::NotYet {
            what: "read which nodes there are".to_owned(),
            reason: "the first node that was asked did not say".to_owned(),
        });
    }
    let named = || there.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let datacenter = match (&settings.datacenter, there.first()) {
        (Some(wanted), _) if there.contains(wanted) => wanted,
        (Some(wanted), _) => {
            return Err(ConnectError::WrongDatacenter { wanted: wanted.clone(), there: named() });
        }
        (None, Some(only)) if there.len() == 1 => only,
        (None, _) => return Err(ConnectError::SeveralDatacenters { there: named() }),
    };
    let nodes = of_nodes.iter().filter(|of_node| *of_node == datacenter).count();
    Ok((datacenter.clone(), nodes))
}

/// Returns the profile by which requests go to replicas in the datacenter, and to a second one if
/// the first takes long.
fn profile(settings: &CassandraSettings, datacenter: &str) -> ExecutionProfile {
    let balancing = DefaultPolicy::builder()
        .prefer_datacenter(datacenter.to_owned())
        .token_aware(true)
        .permit_dc_failover(false)
        .build();
    let speculation = SimpleSpeculativeExecutionPolicy {
        max_retry_count: 1,
        retry_interval: SECOND_ATTEMPT_AFTER,
    };
    ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .serial_consistency(Some(SerialConsistency::LocalSerial))
        .load_balancing_policy(balancing)
        .speculative_execution_policy(Some(Arc::new(speculation)))
        .request_timeout(Some(Duration::from_millis(settings.request_timeout_ms)))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_host_with_or_without_a_port() {
        for node in ["127.0.0.1:9042", "127.0.0.1", "[::1]:9042", "::1", "cassandra", "a.b.c:1"] {
            assert!(is_node(node), "{node}");
        }
        for node in ["", ":9042", "http://cassandra", "cassandra:", "cassandra:cql", "a b:1", "a:0"]
        {
            assert!(!is_node(node), "{node}");
        }
    }

    #[test]
    fn a_keyspace_is_a_plain_name() {
        for name in ["quelea", "q", "a_1"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", "Q", "1a", "_a", "a-b", "a; DROP", "a\"", &"a".repeat(49)] {
            assert!(!is_plain_name(name), "{name}");
        }
    }

    #[test]
    fn a_request_timeout_beyond_half_of_the_grace_is_refused() {
        assert!(check_request_timeout(5_000).is_ok());
        let error = check_request_timeout(5_001).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cassandra.request_timeout_ms is 5001, and can be 5000 at most"
        );
    }
}
