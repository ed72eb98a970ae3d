//! The audit trail of what clients change of the topology.

use std::collections::VecDeque;

use quelea_broker::TopologyChange;

/// What lines of it are of, for filters of the log's level; the management API's are of it too.
pub const AUDIT_LOG_TARGET: &str = "quelea::audit";

/// Where changes go beside the log.
#[derive(Default)]
pub(crate) struct Audit(pub(crate) Option<Box<dyn Fn(TopologyChange) + Send>>);

impl Audit {
    pub(crate) fn note(&self, changes: VecDeque<TopologyChange>) {
        for change in changes {
            log(&change);
            if let Some(keep) = &self.0 {
                keep(change);
            }
        }
    }
}

/// Private queues come and go with connections: a line of each is for who looks for it.
fn log(change: &TopologyChange) {
    let TopologyChange { user, peer, protocol, vhost, action, is_private } = change;
    let method = action.method();
    if *is_private {
        tracing::debug!(target: AUDIT_LOG_TARGET, user = &**user, %peer, protocol, vhost = vhost.as_str(), method, "{action}");
    } else {
        tracing::info!(target: AUDIT_LOG_TARGET, user = &**user, %peer, protocol, vhost = vhost.as_str(), method, "{action}");
    }
}
