//! Notes who changed what of the topology.

use std::collections::VecDeque;

use quelea_model::{ExchangeName, QueueId, VhostName};

use super::Broker;
use crate::ids::ChannelId;
use crate::routing::BindRequest;
use crate::routing::binding::Destination;
use crate::topology_changes::{AUTO_DELETE, ChangedBinding, TopologyAction, TopologyChange};

impl Broker {
    /// Takes what clients changed since this was asked last, the oldest first.
    pub fn take_topology_changes(&mut self) -> VecDeque<TopologyChange> {
        self.topology_changes.take()
    }

    /// Notes that a channel's client changed this, of a queue that only its connection sees or of
    /// what others see too.
    pub(super) fn note_change(
        &mut self,
        channel: ChannelId,
        is_private: bool,
        action: impl FnOnce() -> TopologyAction,
    ) {
        let clients = &self.messaging.clients;
        let Ok(state) = clients.channel(channel) else { return };
        let Some(connection) = clients.connections.get(state.connection) else { return };
        if connection.info.is_audited {
            return;
        }
        self.topology_changes.add(TopologyChange {
            user: state.user.clone(),
            peer: connection.info.peer.clone(),
            protocol: connection.info.protocol,
            vhost: state.vhost_name.clone(),
            action: action(),
            is_private,
        });
    }

    /// The broker deletes a queue by itself.
    pub(super) fn note_queue_end(&mut self, queue: QueueId, why: &'static str) {
        let Some(queue) = self.messaging.queues.get(queue) else { return };
        let (vhost, action) =
            (queue.vhost_name.clone(), TopologyAction::DeleteQueue(queue.name.to_string()));
        self.topology_changes.add(by_itself(why, vhost, action, queue.is_exclusive()));
    }

    /// The broker deleted an exchange by itself.
    pub(super) fn note_exchange_end(&mut self, vhost: VhostName, name: &ExchangeName) {
        let action = TopologyAction::DeleteExchange(name.as_str().to_owned());
        self.topology_changes.add(by_itself(AUTO_DELETE, vhost, action, false));
    }

    /// Notes the same as [`Broker::note_change`], of a queue that is there.
    pub(super) fn note_queue_change(
        &mut self,
        channel: ChannelId,
        queue: QueueId,
        action: fn(String) -> TopologyAction,
    ) {
        let Some(queue) = self.messaging.queues.get(queue) else { return };
        let (name, is_private) = (queue.name.clone(), queue.is_exclusive());
        self.note_change(channel, is_private, || action(name.to_string()));
    }

    /// Notes the same of a binding.
    pub(super) fn note_binding_change(
        &mut self,
        channel: ChannelId,
        request: &BindRequest<'_>,
        action: fn(ChangedBinding) -> TopologyAction,
    ) {
        let queue = match &request.destination {
            Destination::Queue(id, _) => self.messaging.queues.get(*id),
            Destination::Exchange(_) => None,
        };
        let is_private = queue.is_some_and(|queue| queue.is_exclusive());
        let (destination, to_queue) = match &request.destination {
            Destination::Queue(_, name) => (name.to_string(), true),
            Destination::Exchange(name) => (name.to_string(), false),
        };
        self.note_change(channel, is_private, || {
            let (source, routing_key) = (request.source.to_owned(), request.key.to_string());
            action(ChangedBinding { source, destination, to_queue, routing_key })
        });
    }
}

fn by_itself(
    why: &'static str,
    vhost: VhostName,
    action: TopologyAction,
    is_private: bool,
) -> TopologyChange {
    let (user, peer) = ("".into(), String::new());
    TopologyChange { user, peer, protocol: why, vhost, action, is_private }
}
