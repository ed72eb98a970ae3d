//! What stands when definitions are imported or exported.

use std::collections::{HashMap, HashSet};

use quelea_broker::access::TopicPermission;
use quelea_broker::report::{BindingReport, ExchangeReport, QueueReport, VhostReport};
use quelea_sqs_protocol::{IdentityDirectory as _, PermissionRecord, UserRecord};

use super::document::{BindingDefinition, BindingKey};
use super::sqs::{self, SqsAttributes};
use crate::error::ApiError;
use crate::paging::fetch;
use crate::state::BrokerState;

/// A virtual host and a name in it.
pub(super) type Place = (String, String);

/// All that stands, by names.
pub(super) struct ExistingTopology {
    pub(super) vhosts: HashSet<String>,
    pub(super) users: HashMap<String, UserRecord>,
    pub(super) permissions: HashMap<(String, String), PermissionRecord>,
    pub(super) topic_permissions: Vec<TopicPermission>,
    pub(super) exchanges: HashMap<Place, ExchangeReport>,
    pub(super) queues: HashMap<Place, QueueReport>,
    /// Those of queues of which SQS has set something.
    pub(super) sqs: HashMap<Place, SqsAttributes>,
    pub(super) bindings: HashSet<BindingKey>,
    /// Those of them that lead to exchanges which auto-delete.
    pub(super) bindings_to_auto_delete: Vec<BindingDefinition>,
}

/// Reads all of it, users from where they are kept.
pub(super) async fn read(state: &impl BrokerState) -> Result<ExistingTopology, ApiError> {
    let api = state.broker();
    let vhosts = fetch::<VhostReport>(api, None).await?;
    let exchanges = fetch::<ExchangeReport>(api, None).await?;
    let queues = fetch::<QueueReport>(api, None).await?;
    let bindings = fetch::<BindingReport>(api, None).await?;
    let exchanges: HashMap<Place, _> =
        exchanges.into_iter().map(|e| ((e.vhost.to_string(), e.name.to_string()), e)).collect();
    let bindings: Vec<_> = bindings.into_iter().map(definition).collect();
    let to_auto_delete = |binding: &&BindingDefinition| {
        let to = (binding.vhost.clone(), binding.destination.clone());
        !binding.to_queue && exchanges.get(&to).is_some_and(|to: &ExchangeReport| to.auto_delete)
    };
    let bindings_to_auto_delete = bindings.iter().filter(to_auto_delete).cloned().collect();
    let users = state.directory().users().await?;
    let permissions = state.directory().permissions().await?;
    Ok(ExistingTopology {
        vhosts: vhosts.into_iter().map(|vhost| vhost.name.to_string()).collect(),
        users: users.into_iter().map(|u| (u.name.to_string(), u)).collect(),
        permissions: permissions
            .into_iter()
            .map(|p| ((p.user.to_string(), p.vhost.to_string()), p))
            .collect(),
        topic_permissions: fetch::<TopicPermission>(api, None).await?,
        exchanges,
        queues: queues
            .into_iter()
            .map(|q| ((q.vhost.to_string(), q.name.to_string()), q))
            .collect(),
        sqs: sqs::existing(api, None).await?,
        bindings: bindings.iter().map(BindingDefinition::key).collect(),
        bindings_to_auto_delete,
    })
}

fn definition(binding: BindingReport) -> BindingDefinition {
    let BindingReport { vhost, source, destination, to_queue, routing_key, arguments } = binding;
    let vhost = vhost.to_string();
    BindingDefinition { vhost, source, destination, to_queue, routing_key, arguments }
}
