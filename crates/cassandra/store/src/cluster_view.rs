//! The cluster as one front-end sees it: the front-ends that it knows, and Cassandra's nodes.

use std::net::SocketAddr;

use quelea_sqs_protocol::{Fault, QueueFacts};
use uuid::Uuid;

use crate::peers::alive::FrontEndView;
use crate::shared::Shared;
use crate::standard::order_hint::HintView;
use crate::store::CassandraQueues;

/// A node of Cassandra, as the driver knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its id in Cassandra.
    pub host_id: Uuid,
    /// Where it is reached.
    pub address: SocketAddr,
    /// Its datacenter, if it says.
    pub datacenter: Option<String>,
    /// Its rack, if it says.
    pub rack: Option<String>,
    /// Whether this front-end has a connection to it. To nodes of other datacenters it need not.
    pub is_connected: bool,
}

impl CassandraQueues {
    /// Returns the front-ends that this one knows, itself first.
    #[must_use]
    pub fn front_ends(&self) -> Vec<FrontEndView> {
        self.shared.standard.peers.front_end_views()
    }

    /// Returns Cassandra's nodes, as the driver last heard of them.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeView> {
        let state = self.shared.database.session.get_cluster_state();
        let nodes = state.get_nodes_info().iter().map(|node| NodeView {
            host_id: node.host_id,
            address: SocketAddr::new(node.address.ip(), node.address.port()),
            datacenter: node.datacenter.clone(),
            rack: node.rack.clone(),
            is_connected: node.is_connected(),
        });
        nodes.collect()
    }

    /// Returns by how much this machine's clock is corrected to agree with Cassandra's, in µs.
    #[must_use]
    pub fn clock_correction_us(&self) -> i64 {
        self.shared.database.clock.correction_us()
    }

    /// Returns what `OrderHint=auto` makes of a queue at this front-end; `None`: the queue has not
    /// been polled here lately.
    ///
    /// # Errors
    /// [`Fault::Unavailable`]; [`Fault::NoSuchQueue`].
    pub async fn auto_hint(&self, facts: &QueueFacts) -> Result<Option<HintView>, Fault> {
        let Shared { queues, database, standard, .. } = &*self.shared;
        match queues.record(database, &facts.queue).await? {
            Some(record) if record.facts.key == facts.key => {
                let queue = standard.served.find(record.generation);
                Ok(queue.map(|queue| queue.auto_hint().view()))
            }
            _ => Err(Fault::NoSuchQueue),
        }
    }
}
