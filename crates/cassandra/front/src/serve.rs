//! The server over one store, and over two.

use std::net::TcpListener;

use quelea_node::CoreHandle;
use quelea_sqs_embedded::EmbeddedStore;
use quelea_sqs_protocol::{
    AnyIdentity, AnyQueues, AnyService, ClassRouter, Service, ServiceSettings,
};
use quelea_sqs_server::{SqsServer, SqsSettings};

use crate::cluster::{Cluster, Store};
use crate::error::FrontError;
use crate::with_node::HeldNames;

/// Queues of whatever stores, and who may use them.
#[derive(Clone)]
pub struct FrontStore {
    queues: AnyQueues,
    identity: AnyIdentity,
}

/// A node's queues and replicated queues, for the users in the node's memory, which are Cassandra's.
#[derive(Clone)]
pub struct StoreOfBoth {
    core: CoreHandle,
    all: FrontStore,
}

impl FrontStore {
    /// Returns a store of replicated queues alone.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        let Store { queues, identity } = cluster.store().clone();
        Self { queues: AnyQueues::new(queues), identity: AnyIdentity::new(identity) }
    }

    /// Returns the service on them, for other fronts than [`serve_alone`].
    #[must_use]
    pub fn service(&self, settings: ServiceSettings) -> AnyService {
        Service::new(self.queues.clone(), self.identity.clone(), settings)
    }
}

impl StoreOfBoth {
    /// Returns a store of the queues of a node and of a cluster.
    #[must_use]
    pub fn new(cluster: &Cluster, node: EmbeddedStore, held: HeldNames) -> Self {
        let replicated = cluster.store().queues.clone();
        let queues = ClassRouter::holding(node.queues, replicated, held.0);
        let (queues, identity) = (AnyQueues::new(queues), AnyIdentity::new(node.identity));
        Self { core: node.core, all: FrontStore { queues, identity } }
    }

    /// Returns the service on them, for other fronts than [`serve_both`].
    #[must_use]
    pub fn service(&self, settings: ServiceSettings) -> AnyService {
        self.all.service(settings)
    }
}

/// Serves them without a node: with `threads` 0 on the thread that speaks with Cassandra.
///
/// # Errors
/// [`FrontError`] if the server does not start.
pub fn serve_alone(
    store: &FrontStore,
    cluster: &Cluster,
    listeners: Vec<TcpListener>,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let FrontStore { queues, identity } = store;
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, queues, identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, queues, identity, server)?;
    cluster.thread().spawn_local(move || run());
    Ok(server)
}

/// Serves them beside a node: with `threads` 0 on the node's own thread.
///
/// # Errors
/// [`FrontError`] if the server does not start, or the node has stopped.
pub async fn serve_both(
    store: &StoreOfBoth,
    listeners: Vec<TcpListener>,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let StoreOfBoth { core, all: FrontStore { queues, identity } } = store;
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, queues, identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, queues, identity, server)?;
    core.spawn_local(move || run()).await?;
    Ok(server)
}
