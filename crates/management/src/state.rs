//! What the handlers share.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use quelea_node::{Authenticator, CoreHandle};
use quelea_sqs_server::SqsCounters;

/// What every handler needs; cheap to clone.
#[derive(Clone)]
pub(crate) struct ApiState {
    pub(crate) core: CoreHandle,
    pub(crate) authenticator: Authenticator,
    /// Users that may log in from loopback only.
    pub(crate) loopback_users: Arc<[String]>,
    /// What `/api/overview` calls the node.
    pub(crate) node: Arc<str>,
    /// The account that virtual host `/` is.
    pub(crate) account_id: Arc<str>,
    /// What the SQS front counts, if there is one.
    pub(crate) sqs: Option<Arc<SqsCounters>>,
    /// What other fronts count.
    pub(crate) collectors: Arc<[Arc<dyn Collector>]>,
}
