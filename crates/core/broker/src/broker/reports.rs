//! Filling the reports in.

use quelea_model::VhostName;

use super::Broker;
use crate::clients::consumer::ConsumerState;
use crate::ids::{ConnectionId, ConsumerId, VhostId};
use crate::queues::queue::Queue;
use crate::report::{
    BindingReport, ChannelReport, ConnectionReport, ConsumerReport, ExchangeReport,
    MessageCounters, Overview, QueueReport, QueueState, VhostReport,
};
use crate::routing::binding::Destination;
use crate::routing::vhost::Vhost;

impl Broker {
    /// Totals. Costs time in proportion to the number of queues.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let (unreadable, unreadable_last) = self.messaging.queues.unreadable();
        Overview {
            queues: self.messaging.queues.len(),
            exchanges: self.routing.vhosts().map(|(_, v)| v.router.exchange_count()).sum(),
            bindings: self.routing.vhosts().map(|(_, v)| v.router.binding_count()).sum(),
            connections: self.messaging.clients.connections.len(),
            channels: self.messaging.clients.channels.len(),
            consumers: self.messaging.clients.consumers.len(),
            messages_ready: self
                .messaging
                .queues
                .iter()
                .map(|queue| queue.ready.len() as u64)
                .sum(),
            messages_unacknowledged: self
                .messaging
                .queues
                .iter()
                .map(|queue| queue.in_flight())
                .sum(),
            counters: self.messaging.counters,
            resident_bytes: self.messaging.queues.memory.bodies(),
            index_bytes: self.messaging.queues.memory.index,
            messages_unreadable: self.messaging.queues.iter().map(Queue::unreadable).sum(),
            unreadable,
            unreadable_last: unreadable_last.map(str::to_owned),
            publishers_blocked: self.blocked.clone(),
            store: self.messaging.log.store.stats(),
        }
    }

    /// Whether there is a virtual host of that name.
    #[must_use]
    pub fn has_vhost(&self, name: &str) -> bool {
        self.routing.vhost_id(name).is_some()
    }

    /// All virtual hosts, by name.
    #[must_use]
    pub fn vhosts(&self) -> Vec<VhostReport> {
        let mut reports: Vec<_> =
            self.routing.vhosts().map(|(id, vhost)| self.vhost_report(id, vhost)).collect();
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// All queues, or those of one virtual host, by vhost and name.
    #[must_use]
    pub fn queues(&self, vhost: Option<&str>) -> Vec<QueueReport> {
        let queues = self.messaging.queues.iter().filter(|q| is_in(&q.vhost_name, vhost));
        let mut reports: Vec<_> = queues.map(|queue| self.queue_report(queue)).collect();
        reports.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
        reports
    }

    /// One queue.
    #[must_use]
    pub fn queue(&self, vhost: &str, name: &str) -> Option<QueueReport> {
        let queues = &self.messaging.queues;
        let queue = queues.get(queues.find(self.routing.vhost_id(vhost)?, name)?)?;
        Some(self.queue_report(queue))
    }

    /// All exchanges, or those of one virtual host, by vhost and name.
    #[must_use]
    pub fn exchanges(&self, vhost: Option<&str>) -> Vec<ExchangeReport> {
        let mut reports = Vec::new();
        for (_, host) in self.routing.vhosts().filter(|(_, host)| is_in(&host.name, vhost)) {
            reports.extend(host.router.exchanges().map(|spec| ExchangeReport {
                vhost: host.name.clone(),
                name: spec.name.clone(),
                kind: spec.kind.as_str(),
                durable: spec.durable,
                auto_delete: spec.auto_delete,
                internal: spec.internal,
                arguments: spec.arguments.clone(),
            }));
        }
        reports.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
        reports
    }

    /// All bindings, or those of one virtual host, those by which the default exchange reaches
    /// every queue included, by vhost, source, destination and key.
    #[must_use]
    pub fn bindings(&self, vhost: Option<&str>) -> Vec<BindingReport> {
        let mut reports = Vec::new();
        for (id, host) in self.routing.vhosts().filter(|(_, host)| is_in(&host.name, vhost)) {
            let queues = self.messaging.queues.in_vhost(id);
            reports.extend(queues.iter().flat_map(|queues| queues.by_name.keys()).map(|queue| {
                BindingReport {
                    vhost: host.name.clone(),
                    source: String::new(),
                    destination: queue.to_string(),
                    to_queue: true,
                    routing_key: queue.to_string(),
                    arguments: quelea_model::Table::new(),
                }
            }));
            reports.extend(host.router.bindings().map(|binding| {
                let (destination, to_queue) = match binding.destination {
                    Destination::Queue(_, name) => (name.to_string(), true),
                    Destination::Exchange(name) => (name.to_string(), false),
                };
                BindingReport {
                    vhost: host.name.clone(),
                    source: binding.source.to_string(),
                    destination,
                    to_queue,
                    routing_key: binding.key.into(),
                    arguments: binding.arguments,
                }
            }));
        }
        reports.sort_by(|a, b| {
            let key = |r: &BindingReport| {
                (r.vhost.clone(), r.source.clone(), r.destination.clone(), r.routing_key.clone())
            };
            key(a).cmp(&key(b))
        });
        reports
    }

    /// All connections.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionReport> {
        let connections = self.messaging.clients.connections.iter();
        connections
            .map(|(id, connection)| ConnectionReport {
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
            })
            .collect()
    }

    /// All channels.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelReport> {
        let channels = self.messaging.clients.channels.iter();
        channels
            .map(|(id, channel)| ChannelReport {
                id,
                connection: channel.connection,
                connection_name: self.connection_name(channel.connection),
                number: channel.number,
                user: channel.user.to_string(),
                vhost: channel.vhost_name.clone(),
                consumers: channel.consumers.len() as u32,
                messages_unacknowledged: channel.unacked.len() as u32,
                prefetch_count: channel.prefetch,
                global_prefetch_count: channel.global_prefetch,
                flow_stopped: channel.flow_stopped,
                counters: channel.counters,
            })
            .collect()
    }

    /// All consumers, or those of one virtual host's queues.
    #[must_use]
    pub fn consumers(&self, vhost: Option<&str>) -> Vec<ConsumerReport> {
        let consumers = self.messaging.clients.consumers.iter();
        consumers
            .filter_map(|(_, consumer)| {
                let queue = self.messaging.queues.get(consumer.queue)?;
                is_in(&queue.vhost_name, vhost).then(|| ConsumerReport {
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
                    priority: consumer.priority,
                    arguments: consumer.arguments.clone(),
                })
            })
            .collect()
    }

    fn connection_name(&self, connection: ConnectionId) -> String {
        let state = self.messaging.clients.connections.get(connection);
        state.map_or_else(String::new, |state| state.info.name.clone())
    }

    fn consumer_tag_of(&self, consumer: ConsumerId) -> Option<std::sync::Arc<str>> {
        self.messaging.clients.consumers.get(consumer).map(|consumer| consumer.tag.clone())
    }

    fn queue_report(&self, queue: &Queue) -> QueueReport {
        let is_idle =
            queue.ready.is_empty() && queue.in_flight() == 0 && queue.dead_letters.is_empty();
        QueueReport {
            vhost: queue.vhost_name.clone(),
            name: queue.name.clone(),
            kind: queue.rules.kind.as_str(),
            durable: queue.durable,
            exclusive: queue.is_exclusive(),
            auto_delete: queue.auto_delete,
            arguments: queue.table.clone(),
            state: if is_idle { QueueState::Idle } else { QueueState::Running },
            messages_ready: queue.ready.len() as u64,
            messages_unacknowledged: queue.in_flight(),
            messages_delayed: queue.invisible.delayed() as u64,
            messages_in_transit: queue.dead_letters.len() as u64,
            messages_unreadable: queue.unreadable(),
            message_bytes_ready: queue.ready.body_bytes(),
            consumers: queue.consumers.len() as u32,
            consumers_with_credit: queue.consumers.with_credit() as u32,
            single_active_consumer_tag: queue
                .consumers
                .single_active
                .and_then(|consumer| self.consumer_tag_of(consumer)),
            owner: queue.owner,
            memory_bytes: queue.ready.index_bytes() + queue.ready.resident_bytes(),
            resident_bytes: queue.ready.resident_bytes(),
            counters: queue.counters,
        }
    }

    fn vhost_report(&self, id: VhostId, vhost: &Vhost) -> VhostReport {
        let mut report = VhostReport {
            name: vhost.name.clone(),
            queues: 0,
            messages_ready: 0,
            messages_unacknowledged: 0,
            counters: MessageCounters::default(),
        };
        let queues = &self.messaging.queues;
        let Some(known) = queues.in_vhost(id) else {
            return report;
        };
        report.queues = known.by_name.len();
        report.counters = known.counters;
        for queue in known.by_name.values().filter_map(|id| queues.get(*id)) {
            report.messages_ready += queue.ready.len() as u64;
            report.messages_unacknowledged += queue.in_flight();
            report.counters.add(&queue.counters);
        }
        report
    }
}

fn is_in(name: &VhostName, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted == name.as_str())
}
