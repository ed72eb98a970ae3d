//! The names of queues in a topology that no broker holds: for whoever has to say of a log that does not open whose
//! messages are lost.

use std::collections::{BTreeMap, HashMap};

use quelea_model::{QueueId, QueueName, VhostName};

use super::Item;

/// Returns the virtual host and the name of each queue that can be made out.
#[must_use]
pub fn queue_names(
    topology: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> HashMap<QueueId, (VhostName, QueueName)> {
    let queues = topology.iter().filter_map(|(key, value)| match Item::decode(key, value) {
        Ok(Item::Queue(queue)) => Some((queue.id, (queue.vhost, queue.name))),
        _ => None,
    });
    queues.collect()
}
