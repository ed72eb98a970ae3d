//! What the handlers share.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::collector::Collector;
use quelea_node::{Authenticator, Core, CoreHandle};
use quelea_sqs_protocol::{AnyService, IdentityDirectory};
use quelea_sqs_server::SqsCounters;
use tokio::sync::Semaphore;

use crate::audit::AuditTrail;
use crate::counters::ApiCounters;
use crate::error::ApiError;
use crate::history::History;
use crate::recent::Recent;
use crate::tokens::Tokens;

/// An address that is listened at.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// As RabbitMQ calls it: `amqp`, `http`; or `sqs`, `elastic`, `zmtp` (an entry of elastic queues), `keep` (what keeps
    /// their messages) or `cmq`, which is UDP.
    pub protocol: &'static str,
    /// The address.
    pub address: SocketAddr,
}

/// The virtual host that has an account id of its own.
const DEFAULT_VHOST: &str = "/";

/// What handlers share that serve the API of a broker, or that of a front-end without one.
pub(crate) trait SharedState: Clone + Send + Sync + 'static {
    /// Who keeps users, and all that belongs to them.
    type Directory: IdentityDirectory;

    /// Returns the directory of users, permissions, virtual hosts and keys.
    fn directory(&self) -> &Self::Directory;

    /// Returns the authenticator, which verifies passwords.
    fn authenticator(&self) -> &Authenticator;

    /// Returns the users that may log in from loopback only.
    fn loopback_users(&self) -> &[String];

    /// Returns what makes and verifies tokens, if there are any.
    fn tokens(&self) -> Option<&Tokens>;

    /// Returns the SQS interface's service, if there is one.
    fn sqs_service(&self) -> Option<&AnyService>;

    /// Returns the audit trail, which knows who changed what.
    fn audit(&self) -> &AuditTrail;

    /// Returns the account that virtual host `/` is.
    fn account_id(&self) -> &str;

    /// Returns the virtual host that an account is.
    fn vhost_of<'a>(&self, account: &'a str) -> &'a str {
        if account == self.account_id() { DEFAULT_VHOST } else { account }
    }

    /// Returns the account that a virtual host is.
    fn account_of<'a>(&'a self, vhost: &'a str) -> &'a str {
        if vhost == DEFAULT_VHOST { self.account_id() } else { vhost }
    }
}

/// What handlers share that need a broker, whoever keeps its users.
pub(crate) trait BrokerState: SharedState {
    /// Returns the broker. As a [`SharedState`] it has the users that are in its memory.
    fn broker(&self) -> &ApiState;
}

impl BrokerState for ApiState {
    fn broker(&self) -> &ApiState {
        self
    }
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
    /// Where the log is.
    pub(crate) data_dir: Arc<Path>,
    /// What the SQS front counts, if there is one.
    pub(crate) sqs: Option<Arc<SqsCounters>>,
    /// The classes of queue that there are.
    pub(crate) queue_classes: Arc<[&'static str]>,
    /// The SQS interface's service, if there is one.
    pub(crate) sqs_service: Option<AnyService>,
    /// What the API's own sockets did.
    pub(crate) counters: Arc<ApiCounters>,
    /// Where the broker listens.
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) started: Instant,
    /// Who changed what.
    pub(crate) audit: Arc<AuditTrail>,
    /// What was counted lately.
    pub(crate) history: Arc<Mutex<History>>,
    /// What was counted last of what has rates alone.
    pub(crate) recent: Arc<Mutex<Recent>>,
    /// One permit: a page of figures of single objects holds all of them.
    pub(crate) object_pages: Arc<Semaphore>,
    /// A permit for each who gets messages.
    pub(crate) gets: Arc<Semaphore>,
    /// One permit: for who imports definitions.
    pub(crate) imports: Arc<Semaphore>,
    /// What other fronts count.
    pub(crate) collectors: Arc<[Arc<dyn Collector>]>,
}

impl ApiState {
    /// Returns what `question` finds out on the core thread.
    ///
    /// # Errors
    /// [`ApiError::Stopping`].
    pub(crate) async fn on_core<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.core.call(question).await.map_err(|_| ApiError::Stopping)
    }

    /// Locks what was counted last of what has rates alone, until the guard is dropped.
    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedState for ApiState {
    type Directory = Self;

    fn directory(&self) -> &Self {
        self
    }

    fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    fn loopback_users(&self) -> &[String] {
        &self.loopback_users
    }

    fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_deref()
    }

    fn sqs_service(&self) -> Option<&AnyService> {
        self.sqs_service.as_ref()
    }

    fn audit(&self) -> &AuditTrail {
        &self.audit
    }

    fn account_id(&self) -> &str {
        &self.account_id
    }
}
