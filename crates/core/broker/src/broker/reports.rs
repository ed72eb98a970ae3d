//! Filling the reports in.

use quelea_store::{SegmentReport, StoreState};
use rustc_hash::FxHashSet;

use super::Broker;
use super::listing::{KEYS_PER_STEP, ListKey};
use crate::clients::consumer::ConsumerState;
use crate::ids::{ChannelId, ConnectionId, ConsumerId};
use crate::queues::queue::Queue;
use crate::report::{
    BindingReport, ChannelReport, ConnectionReport, ConnectionState, ConsumerReport,
    ExchangeReport, Overview, QueueReport, VhostReport,
};
use crate::routing::router::Router;
use crate::work::STEPS_PER_TOTAL;

impl Broker {
    /// Returns totals. Costs time in proportion to the number of queues.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let mut overview = self.overview_without_queues();
        self.messaging.queues.iter().for_each(|queue| add_queue(&mut overview, queue));
        overview
    }

    /// Returns totals but for what the queues add up to, and the queues, for
    /// [`Broker::add_to_overview`].
    pub fn begin_overview(&mut self) -> (Overview, Vec<ListKey>) {
        (self.overview_without_queues(), self.list_keys::<QueueReport>(None))
    }

    /// Returns the same as [`Broker::begin_overview`], of some virtual hosts alone: what is of the
    /// whole broker, such as memory, is nothing.
    pub fn begin_overview_of<'a>(
        &mut self,
        vhosts: impl Iterator<Item = &'a str>,
    ) -> (Overview, Vec<ListKey>) {
        let (mut overview, mut keys) = (Overview::default(), Vec::new());
        let ids: FxHashSet<_> = vhosts.filter_map(|name| self.routing.vhost_id(name)).collect();
        for id in &ids {
            let router = self.routing.vhost(*id).map(|vhost| &vhost.router);
            overview.exchanges += router.map_or(0, Router::exchange_count);
            overview.bindings += router.map_or(0, Router::binding_count);
            if let Some(known) = self.messaging.queues.in_vhost(*id) {
                overview.queues += known.by_name.len();
                overview.counters.add(&known.counters);
            }
            keys.extend(self.totals_keys(*id));
        }
        let clients = &self.messaging.clients;
        let connections = clients.connections.values().filter(|c| ids.contains(&c.vhost));
        overview.connections = connections.count();
        let channels = clients.channels.values().filter(|c| ids.contains(&c.vhost));
        overview.channels = channels.count();
        let looked_at = clients.connections.len() + clients.channels.len() + keys.len();
        self.work.spend(1 + looked_at as u64 / KEYS_PER_STEP);
        (overview, keys)
    }

    /// Adds as many queues as one call may look at. Returns how many; 1 at least.
    pub fn add_to_overview(&mut self, overview: &mut Overview, keys: &[ListKey]) -> usize {
        let max = (self.work.per_turn() / STEPS_PER_TOTAL).max(1) as usize;
        let keys = &keys[..keys.len().min(max)];
        let queues = &self.messaging.queues;
        for key in keys {
            if let Some(queue) = key.queue().and_then(|id| queues.get(id)) {
                add_queue(overview, queue);
            }
            // Of the whole broker both are known already.
            if let Some(queue) = key.queue_of_vhost().and_then(|id| queues.get(id)) {
                add_queue(overview, queue);
                overview.consumers += queue.consumers.len();
                overview.counters.add(&queue.counters);
            }
        }
        self.work.spend(keys.len() as u64 * STEPS_PER_TOTAL);
        keys.len()
    }

    fn overview_without_queues(&self) -> Overview {
        let (unreadable, unreadable_last) = self.messaging.queues.unreadable();
        Overview {
            queues: self.messaging.queues.len(),
            exchanges: self.routing.vhosts().map(|(_, v)| v.router.exchange_count()).sum(),
            bindings: self.routing.vhosts().map(|(_, v)| v.router.binding_count()).sum(),
            connections: self.messaging.clients.connections.len(),
            channels: self.messaging.clients.channels.len(),
            consumers: self.messaging.clients.consumers.len(),
            messages_ready: 0,
            messages_unacknowledged: 0,
            counters: self.messaging.counters,
            churn: self.churn,
            resident_bytes: self.messaging.queues.memory.bodies(),
            index_bytes: self.messaging.queues.memory.index,
            messages_unreadable: 0,
            unreadable,
            unreadable_last: unreadable_last.map(str::to_owned),
            publishers_blocked: self.blocked.clone(),
            blocked_by_memory: self.is_blocked_by_memory(),
            log_failed: match self.messaging.log.store.state() {
                StoreState::Failed { reason } => Some(reason.clone()),
                StoreState::Healthy | StoreState::Full { .. } => None,
            },
            store: self.messaging.log.store.stats(),
        }
    }

    /// Returns segments of the log behind that number, at most so many.
    #[must_use]
    pub fn log_segments(&self, after: u32, max: usize) -> Vec<SegmentReport> {
        self.messaging.log.store.segments(after, max)
    }

    /// Returns whether there is a virtual host of that name.
    #[must_use]
    pub fn has_vhost(&self, name: &str) -> bool {
        self.routing.vhost_id(name).is_some()
    }

    /// Returns all virtual hosts, by name.
    #[must_use]
    pub fn vhosts(&self) -> Vec<VhostReport> {
        self.list(None)
    }

    /// Returns all queues, or those of one virtual host, by vhost and name.
    #[must_use]
    pub fn queues(&self, vhost: Option<&str>) -> Vec<QueueReport> {
        self.list(vhost)
    }

    /// Returns one queue.
    #[must_use]
    pub fn queue(&self, vhost: &str, name: &str) -> Option<QueueReport> {
        let queues = &self.messaging.queues;
        let queue = queues.get(queues.find(self.routing.vhost_id(vhost)?, name)?)?;
        Some(self.queue_report(queue))
    }

    /// Returns all exchanges, or those of one virtual host, by vhost and name.
    #[must_use]
    pub fn exchanges(&self, vhost: Option<&str>) -> Vec<ExchangeReport> {
        self.list(vhost)
    }

    /// Returns all bindings, or those of one virtual host, those by which the default exchange
    /// reaches every queue included, by vhost, source, destination and key.
    #[must_use]
    pub fn bindings(&self, vhost: Option<&str>) -> Vec<BindingReport> {
        self.list(vhost)
    }

    /// Returns all connections.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionReport> {
        self.list(None)
    }

    /// Returns all channels.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelReport> {
        self.list(None)
    }

    /// Returns all consumers, or those of one virtual host's queues.
    #[must_use]
    pub fn consumers(&self, vhost: Option<&str>) -> Vec<ConsumerReport> {
        self.list(vhost)
    }

    pub(super) fn connection_report(&self, id: ConnectionId) -> Option<ConnectionReport> {
        let connection = self.messaging.clients.connections.get(id)?;
        Some(ConnectionReport {
            id,
            name: connection.info.name.clone(),
            user: connection.user.to_string(),
            vhost: connection.vhost_name.clone(),
            peer: connection.info.peer.clone(),
            local: connection.info.local.clone(),
            protocol: connection.info.protocol,
            mechanism: connection.info.mechanism.clone(),
            client_properties: connection.info.client_properties.clone(),
            connected_at: connection.connected_at,
            channels: connection.channels.len() as u32,
            channel_max: connection.info.channel_max,
            frame_max: connection.info.frame_max,
            heartbeat_s: connection.info.heartbeat_s,
            output_waiting_bytes: connection.output_waiting,
            state: match (&self.blocked, connection.is_publisher) {
                (Some(_), true) => ConnectionState::Blocked,
                (Some(_), false) => ConnectionState::Blocking,
                (None, _) if connection.is_held => ConnectionState::Flow,
                (None, _) => ConnectionState::Running,
            },
        })
    }

    pub(super) fn channel_report(&self, id: ChannelId) -> Option<ChannelReport> {
        let channel = self.messaging.clients.channels.get(id).filter(|c| !c.is_closing)?;
        let connection = self.messaging.clients.connections.get(channel.connection);
        Some(ChannelReport {
            id,
            connection: channel.connection,
            connection_name: self.connection_name(channel.connection),
            peer: connection.map(|connection| connection.info.peer.clone()).unwrap_or_default(),
            number: channel.number,
            user: channel.user.to_string(),
            vhost: channel.vhost_name.clone(),
            consumers: channel.consumers.len() as u32,
            messages_unacknowledged: channel.unacked.len() as u32,
            prefetch_count: channel.prefetch,
            global_prefetch_count: channel.global_prefetch,
            counters: channel.counters,
        })
    }

    pub(super) fn consumer_report(&self, id: ConsumerId) -> Option<ConsumerReport> {
        let consumer = self.messaging.clients.consumers.get(id)?;
        let queue = self.messaging.queues.get(consumer.queue)?;
        Some(ConsumerReport {
            vhost: queue.vhost_name.clone(),
            queue: queue.name.clone(),
            tag: consumer.tag.clone(),
            connection: consumer.connection,
            connection_name: self.connection_name(consumer.connection),
            channel: consumer.channel,
            channel_number: consumer.channel_number,
            ack_required: !consumer.no_ack,
            exclusive: consumer.exclusive,
            active: consumer.state != ConsumerState::Standby,
            prefetch_count: consumer.prefetch,
            messages_unacknowledged: consumer.unacked,
            messages_delivered: consumer.delivered,
            priority: consumer.priority,
            arguments: consumer.arguments.clone(),
        })
    }

    fn connection_name(&self, connection: ConnectionId) -> String {
        let state = self.messaging.clients.connections.get(connection);
        state.map_or_else(String::new, |state| state.info.name.clone())
    }

    fn consumer_tag_of(&self, consumer: ConsumerId) -> Option<std::sync::Arc<str>> {
        self.messaging.clients.consumers.get(consumer).map(|consumer| consumer.tag.clone())
    }

    pub(super) fn queue_report(&self, queue: &Queue) -> QueueReport {
        QueueReport {
            id: queue.id,
            vhost: queue.vhost_name.clone(),
            name: queue.name.clone(),
            kind: queue.rules.kind.as_str(),
            durable: queue.durable,
            exclusive: queue.is_exclusive(),
            auto_delete: queue.auto_delete,
            arguments: queue.table.clone(),
            messages_ready: queue.ready.len() as u64,
            messages_unacknowledged: queue.in_flight(),
            messages_delayed: queue.invisible.delayed() as u64,
            messages_in_transit: queue.dead_letters.len() as u64,
            messages_unreadable: queue.unreadable(),
            message_bytes_ready: queue.ready.body_bytes(),
            oldest_ready_at: self.messaging.queues.oldest_arrived_at(queue),
            consumers: queue.consumers.len() as u32,
            consumers_with_credit: queue.consumers.with_credit() as u32,
            single_active_consumer_tag: queue
                .consumers
                .single_active
                .and_then(|consumer| self.consumer_tag_of(consumer)),
            owner: queue.owner,
            memory_bytes: queue.ready.index_bytes() + queue.ready.resident().all,
            resident_bytes: queue.ready.resident().all,
            counters: queue.counters,
        }
    }
}

fn add_queue(overview: &mut Overview, queue: &Queue) {
    overview.messages_ready += queue.ready.len() as u64;
    overview.messages_unacknowledged += queue.in_flight();
    overview.messages_unreadable += queue.unreadable();
}
