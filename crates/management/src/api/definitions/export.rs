//! Definitions as RabbitMQ exports them.

use std::collections::{HashMap, HashSet};

use quelea_broker::access::TopicPermission;
use quelea_broker::report::{BindingReport, ExchangeReport, QueueReport, VhostReport};
use quelea_sqs_protocol::{IdentityDirectory as _, UserRecord};
use serde_json::{Value, json};

use super::document::OWN_HASH;
use super::existing::Place;
use super::sqs::{self, SqsAttributes};
use crate::api::overview::RABBITMQ_LEVEL;
use crate::api::{bindings, exchanges};
use crate::error::ApiError;
use crate::identity::permission_to_json;
use crate::json::from_table;
use crate::listed::Listed;
use crate::paging::fetch;
use crate::state::{ApiState, BrokerState};

/// Returns all definitions of the broker.
pub(super) async fn all(state: &impl BrokerState) -> Result<Value, ApiError> {
    let api = state.broker();
    let users = state.directory().users().await?;
    let permissions = state.directory().permissions().await?;
    let warnings: Vec<_> = users.iter().filter_map(warning).collect();
    let vhosts = fetch::<VhostReport>(api, None).await?;
    let mut topic_permissions = fetch::<TopicPermission>(api, None).await?;
    // Beside another store the broker keeps those of users who are gone: they may come again.
    let names: HashSet<_> = users.iter().map(|user| &user.name).collect();
    topic_permissions.retain(|permission| names.contains(&permission.user));
    let mut document = objects(api, None).await?;
    for (field, value) in [
        ("rabbit_version", json!(RABBITMQ_LEVEL)),
        ("rabbitmq_version", json!(RABBITMQ_LEVEL)),
        ("product_name", json!("Quelea")),
        ("product_version", json!(env!("CARGO_PKG_VERSION"))),
        ("users", users.iter().map(user).collect()),
        ("vhosts", vhosts.iter().map(|vhost| json!({ "name": vhost.name.as_str() })).collect()),
        ("permissions", permissions.iter().map(permission_to_json).collect()),
        ("topic_permissions", topic_permissions.iter().map(|one| one.to_json(api)).collect()),
        ("global_parameters", json!([])),
        ("warnings", json!(warnings)),
    ] {
        document[field] = value;
    }
    Ok(document)
}

/// Returns what is in one virtual host, without saying in which.
pub(super) async fn of_vhost(api: &ApiState, vhost: String) -> Result<Value, ApiError> {
    let mut document = objects(api, Some(vhost)).await?;
    for section in ["queues", "exchanges", "bindings"] {
        let objects = document[section].as_array_mut();
        objects.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|object| {
            object.remove("vhost");
        });
    }
    document["rabbit_version"] = json!(RABBITMQ_LEVEL);
    document["rabbitmq_version"] = json!(RABBITMQ_LEVEL);
    Ok(document)
}

/// Returns queues and exchanges that outlive their connections, and the bindings between them.
async fn objects(api: &ApiState, vhost: Option<String>) -> Result<Value, ApiError> {
    let mut queues = fetch::<QueueReport>(api, vhost.clone()).await?;
    queues.retain(|queue| !queue.exclusive);
    let all_exchanges = fetch::<ExchangeReport>(api, vhost.clone()).await?;
    let sqs = sqs::existing(api, vhost.clone()).await?;
    let mut all_bindings = fetch::<BindingReport>(api, vhost).await?;
    let kept: HashSet<_> = queues.iter().map(|queue| (&queue.vhost, queue.name.as_str())).collect();
    all_bindings.retain(|binding| {
        let is_kept = || kept.contains(&(&binding.vhost, binding.destination.as_str()));
        !binding.source.is_empty() && (!binding.to_queue || is_kept())
    });
    let made = all_exchanges.iter().filter(|exchange| {
        let name = exchange.name.as_str();
        // Every virtual host is made with these.
        !name.is_empty() && !name.starts_with("amq.")
    });
    Ok(json!({
        "policies": [],
        "parameters": [],
        "queues": queues.iter().map(|one| queue(one, &sqs)).collect::<Value>(),
        "exchanges": made.map(exchanges::definition).collect::<Value>(),
        "bindings": all_bindings.iter().map(bindings::definition).collect::<Value>(),
    }))
}

fn queue(queue: &QueueReport, sqs: &HashMap<Place, SqsAttributes>) -> Value {
    let mut shown = json!({
        "name": queue.name.as_str(),
        "vhost": queue.vhost.as_str(),
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": from_table(&queue.arguments),
    });
    if let Some(sqs) = sqs.get(&(queue.vhost.to_string(), queue.name.to_string())) {
        shown[sqs::FIELD] = sqs.to_json();
    }
    shown
}

/// Returns a user with a hash that RabbitMQ can read, or with an empty one, by which nobody signs
/// in there, and our own beside it.
fn user(user: &UserRecord) -> Value {
    let (hash, algorithm, own) = match quelea_node::to_rabbitmq(&user.password_hash) {
        Some((algorithm, hash)) => (hash, algorithm, None),
        None => ("", quelea_node::RABBITMQ_DEFAULT_ALGORITHM, Some(&*user.password_hash)),
    };
    let mut shown = json!({
        "name": &*user.name,
        "password_hash": hash,
        "hashing_algorithm": algorithm,
        "tags": user.tags,
        "limits": {},
    });
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        shown[OWN_HASH] = json!(own);
    }
    shown
}

fn warning(user: &UserRecord) -> Option<String> {
    let hash = &*user.password_hash;
    let is_ours = !hash.is_empty() && quelea_node::to_rabbitmq(hash).is_none();
    is_ours.then(|| {
        let name = &*user.name;
        format!(
            "user {name:?}: RabbitMQ cannot read the password's hash; there it has to be set anew"
        )
    })
}
