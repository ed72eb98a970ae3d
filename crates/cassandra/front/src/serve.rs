//! The server over one store, and over two.

use std::net::TcpListener;

use quelea_node::CoreHandle;
use quelea_sqs_embedded::{EmbeddedIdentity, EmbeddedQueues, EmbeddedSettings};
use quelea_sqs_protocol::{AnyIdentity, AnyQueues, ClassRouter};
use quelea_sqs_server::{SqsServer, SqsSettings};

use crate::beside::HeldNames;
use crate::cluster::{Cluster, Store};
use crate::error::FrontError;

/// Serves replicated queues alone: with `threads` 0 on the thread that speaks with Cassandra.
///
/// # Errors
/// [`FrontError`] if the server does not start.
pub fn serve_alone(
    cluster: &Cluster,
    listeners: Vec<TcpListener>,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let Store { queues, identity } = cluster.store();
    let (queues, identity) = (AnyQueues::new(queues.clone()), AnyIdentity::new(identity.clone()));
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, &queues, &identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, &queues, &identity, server)?;
    cluster.thread().spawn_local(move || run());
    Ok(server)
}

/// Serves a node's queues and replicated queues, for the users in the node's memory, which are Cassandra's: with `threads` 0
/// on the node's own thread.
///
/// # Errors
/// [`FrontError`] if the server does not start, or the node has stopped.
pub async fn serve_beside(
    cluster: &Cluster,
    core: &CoreHandle,
    held: HeldNames,
    listeners: Vec<TcpListener>,
    embedded: EmbeddedSettings,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let identity = EmbeddedIdentity::new(core.clone(), embedded.clone());
    let ordered = EmbeddedQueues::new(core.clone(), embedded);
    let queues = ClassRouter::holding(ordered, cluster.store().queues.clone(), held.0);
    let (queues, identity) = (AnyQueues::new(queues), AnyIdentity::new(identity));
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, &queues, &identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, &queues, &identity, server)?;
    core.spawn_local(move || run()).await?;
    Ok(server)
}
