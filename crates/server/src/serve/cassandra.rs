//! The Cassandra that holds replicated queues, as `serve` connects to it and lets go of it.

#[cfg(not(feature = "cassandra"))]
mod absent;
mod error;
mod settings;

#[cfg(feature = "cassandra")]
use std::sync::Arc;

#[cfg(feature = "cassandra")]
use quelea_cassandra_metadata::CassandraMetadata;
#[cfg(feature = "cassandra")]
use quelea_elastic_directory::{OpenMeta, meta::MetaStore};
use quelea_node::OtherStore;
use quelea_openapi::Route;

#[cfg(feature = "cassandra")]
pub(crate) use quelea_cassandra_front::{
    Bootstrap, Cluster, FrontStore, HeldNames, MirroredIdentity, NodeChannels, StoreOfBoth,
};

#[cfg(not(feature = "cassandra"))]
pub(crate) use self::absent::{Cluster, FrontError, HeldNames, MirroredIdentity, NodeChannels};
pub(crate) use self::error::CassandraError;
use super::connection_limits::ConnectionLimits;
use crate::config::Config;

/// Looks at the settings, before anything is opened.
///
/// # Errors
/// [`CassandraError`] of what does not go together.
pub(crate) fn check(config: &Config) -> Result<(), CassandraError> {
    settings::check(config)
}

/// Returns what a node beside that Cassandra is started with, and what serves it then.
pub(crate) fn node_parts(
    cluster: Option<&Cluster>,
    config: &Config,
) -> Option<(OtherStore, NodeChannels)> {
    #[cfg(feature = "cassandra")]
    return cluster.map(|cluster| {
        cluster.node_parts(Bootstrap {
            user: config.access.bootstrap_user.clone(),
            password: config.access.bootstrap_password.clone(),
        })
    });
    #[cfg(not(feature = "cassandra"))]
    cluster.map(|cluster| cluster.node_parts(config))
}

/// Returns what the management API shows of it.
pub(crate) fn routes(cluster: Option<&Cluster>, config: &Config) -> Vec<Route> {
    #[cfg(feature = "cassandra")]
    return quelea_cassandra_front::routes(cluster, &config.cassandra.keyspace);
    #[cfg(not(feature = "cassandra"))]
    {
        let (_, _) = (cluster, config);
        Vec::new()
    }
}

/// Connects, if nodes are named.
///
/// # Errors
/// [`CassandraError::Front`].
pub(crate) async fn connect(
    config: &Config,
    limits: ConnectionLimits,
) -> Result<Option<Cluster>, CassandraError> {
    if config.cassandra.nodes.is_empty() {
        return Ok(None);
    }
    #[cfg(feature = "cassandra")]
    let (mut settings, peers) = (settings::of(config), settings::peers(config));
    #[cfg(feature = "cassandra")]
    {
        settings.internal_connections_max = limits.front_ends;
    }
    #[cfg(feature = "cassandra")]
    let cluster = Cluster::connect(settings, peers, &config.sqs.account_id).await?;
    #[cfg(not(feature = "cassandra"))]
    let cluster = Cluster::connect(limits)?;
    Ok(Some(cluster))
}

/// Opens the metadata of elastic queues that is in it, on whichever runtime it is called.
#[cfg(feature = "cassandra")]
pub(crate) fn elastic_metadata(config: &Config) -> OpenMeta {
    let settings = settings::of(config);
    Box::new(move || {
        Box::pin(async move {
            let store = CassandraMetadata::connect(&settings).await?;
            Ok(Arc::new(store) as Arc<dyn MetaStore>)
        })
    })
}
