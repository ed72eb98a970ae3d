//! What the handlers share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use prometheus_client::collector::Collector;
use quelea_node::{Authenticator, Core, CoreHandle};
use quelea_sqs_server::SqsCounters;
use tokio::sync::Semaphore;

use crate::audit::AuditTrail;
use crate::counters::ApiCounters;
use crate::error::ApiError;
use crate::history::History;
use crate::tokens::Tokens;

/// An address that is listened at.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// As RabbitMQ calls it: `amqp`, `http`; or `sqs`.
    pub protocol: &'static str,
    /// The address.
    pub address: SocketAddr,
}

/// What every handler needs; cheap to clone.
#[derive(Clone)]
pub(crate) struct ApiState {
    pub(crate) core: CoreHandle,
    pub(crate) authenticator: Authenticator,
    /// Who makes and verifies tokens.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// Users that may log in from loopback only.
    pub(crate) loopback_users: Arc<[String]>,
    /// What `/api/overview` calls the node.
    pub(crate) node: Arc<str>,
    /// The account that virtual host `/` is.
    pub(crate) account_id: Arc<str>,
    /// What the SQS front counts, if there is one.
    pub(crate) sqs: Option<Arc<SqsCounters>>,
    /// What the API's own sockets did.
    pub(crate) counters: Arc<ApiCounters>,
    /// Where the broker listens.
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) started: Instant,
    /// Who changed what.
    pub(crate) audit: Arc<AuditTrail>,
    /// What was counted lately.
    pub(crate) history: Arc<Mutex<History>>,
    /// A permit for each who gets messages.
    pub(crate) gets: Arc<Semaphore>,
    /// One permit: for who imports definitions.
    pub(crate) imports: Arc<Semaphore>,
    /// What other fronts count.
    pub(crate) collectors: Arc<[Arc<dyn Collector>]>,
}

impl ApiState {
    /// What `question` finds out on the core thread.
    ///
    /// # Errors
    /// [`ApiError::Stopping`].
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.core.call(question).await.map_err(|_| ApiError::Stopping)
    }
}
