//! The SQS server over these queues. The server is generic over its store, so whoever names the store compiles all
//! that serves a request: that is this crate, which is compiled for speed, and not the program, which is for size.

use std::net::TcpListener;

use quelea_node::{CoreHandle, CoreStopped};
use quelea_sqs_protocol::{AnyIdentity, AnyQueues, AnyService, Service, ServiceSettings};
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

/// A node's queues, and who may use them. Its clones see at once what is done by one of them.
#[derive(Clone)]
pub struct EmbeddedStore {
    /// The node's thread.
    pub core: CoreHandle,
    /// The queues.
    pub queues: EmbeddedQueues,
    /// Who may use them.
    pub identity: EmbeddedIdentity,
}

impl EmbeddedStore {
    /// Returns the store of that node.
    #[must_use]
    pub fn new(core: &CoreHandle, settings: EmbeddedSettings) -> Self {
        Self {
            core: core.clone(),
            identity: EmbeddedIdentity::new(core.clone(), settings.clone()),
            queues: EmbeddedQueues::new(core.clone(), settings),
        }
    }

    /// Returns the service on this store, for other fronts than [`serve`].
    #[must_use]
    pub fn service(&self, settings: ServiceSettings) -> AnyService {
        let queues = AnyQueues::new(self.queues.clone());
        Service::new(queues, AnyIdentity::new(self.identity.clone()), settings)
    }
}

/// Serves a node's queues on these listeners, which must not block: with `threads` 0 on the node's own thread.
///
/// # Errors
/// [`FrontError`] if the server does not start, or the node has stopped.
pub async fn serve(
    store: &EmbeddedStore,
    listeners: Vec<TcpListener>,
    server: &SqsSettings,
) -> Result<SqsServer, FrontError> {
    let EmbeddedStore { core, queues, identity } = store;
    if server.threads > 0 {
        return Ok(SqsServer::start(listeners, queues, identity, server)?);
    }
    let (server, run) = SqsServer::on_other_thread(listeners, queues, identity, server)?;
    core.spawn_local(move || run()).await?;
    Ok(server)
}
