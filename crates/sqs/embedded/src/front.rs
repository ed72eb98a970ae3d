//! The SQS server over these queues. The server is generic over its store, so whoever names the store compiles all
//! that serves a request: that is this crate, which is compiled for speed, and not the program, which is for size.

use std::net::TcpListener;

use quelea_node::{CoreHandle, CoreStopped};
use quelea_sqs_server::{SqsServer, SqsSettings, SqsStartError};

use crate::identity::EmbeddedIdentity;
use crate::queues::EmbeddedQueues;
use crate::settings::EmbeddedSettings;

/// Why the SQS server over a node's queues does not start.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// The server itself.
    #[error(transparent)]
    Start(#[from] SqsStartError),
    /// The node whose thread it was to run on.
    #[error("cannot start SQS: {0}")]
    Core(#[from] CoreStopped),
}

/// Serves a node's queues on these listeners, which must not block: with `threads` 0 on the node's own thread.
///
/// # Errors
/// [`FrontError`] if the server does not start, or the node has stopped.
pub async fn serve(
    core: &CoreHandle,
    listeners: Vec<TcpListener>,
    queues: EmbeddedSettings,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let identity = EmbeddedIdentity::new(core.clone(), queues.clone());
    let queues = EmbeddedQueues::new(core.clone(), queues);
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, &queues, &identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, &queues, &identity, server)?;
    core.spawn_local(move || run()).await?;
    Ok(server)
}
