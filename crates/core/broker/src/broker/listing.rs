//! Lists of reports, page by page: a page is one turn's work, so that whoever asks for all of very many objects has
//! others served in between.

use std::ops::Range;

use quelea_model::{QueueId, QueueName, Table, VhostName};

use super::Broker;
use crate::access::TopicPermission;
use crate::ids::{ChannelId, ConnectionId, ConsumerId, ExchangeId, VhostId};
use crate::queues::queue::attributes::QueueAttributes;
use crate::report::{
    BindingReport, ChannelReport, ConnectionReport, ConsumerReport, ExchangeReport,
    MessageCounters, QueueReport, VhostReport,
};
use crate::routing::binding::{Binding, Destination};
use crate::routing::vhost::Vhost;
use crate::work::{STEPS_PER_NAME, STEPS_PER_REPORT, STEPS_PER_TOTAL};

/// Places of exchanges or bindings that one key stands for.
pub(super) const PLACES_PER_KEY: u32 = 16;

/// Keys that are collected in a step.
pub(super) const KEYS_PER_STEP: u64 = 16;

/// What a list has to look at. It may be gone by then.
#[derive(Clone, Copy, Debug)]
pub struct ListKey(Key);

#[derive(Clone, Copy, Debug)]
enum Key {
    Vhost(VhostId),
    Queue(QueueId),
    /// A queue that is added to the totals of its virtual host.
    TotalsOf(VhostId, QueueId),
    /// The exchanges of a virtual host from this place on.
    Exchanges(VhostId, u32),
    Bindings(VhostId, u32),
    Connection(ConnectionId),
    Channel(ChannelId),
    Consumer(ConsumerId),
    /// All of them: they have no places that stay theirs.
    TopicPermissions,
}

impl ListKey {
    pub(super) const fn queue(self) -> Option<QueueId> {
        match self.0 {
            Key::Queue(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the queue that is added to the totals of its virtual host.
    pub(super) const fn queue_of_vhost(self) -> Option<QueueId> {
        match self.0 {
            Key::TotalsOf(_, id) => Some(id),
            _ => None,
        }
    }

    pub(super) const fn connection(self) -> Option<ConnectionId> {
        match self.0 {
            Key::Connection(id) => Some(id),
            _ => None,
        }
    }

    pub(super) const fn channel(self) -> Option<ChannelId> {
        match self.0 {
            Key::Channel(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the virtual host and the places of the exchanges that the key stands for, if it is
    /// of those.
    pub(super) const fn exchanges(self) -> Option<(VhostId, Range<u32>)> {
        match self.0 {
            Key::Exchanges(vhost, first) => Some((vhost, first..first + PLACES_PER_KEY)),
            _ => None,
        }
    }

    const fn steps(self) -> u64 {
        match self.0 {
            Key::Exchanges(..) | Key::Bindings(..) => STEPS_PER_REPORT * PLACES_PER_KEY as u64,
            Key::TotalsOf(..) => STEPS_PER_TOTAL,
            _ => STEPS_PER_REPORT,
        }
    }
}

/// What a queue is called.
#[derive(Clone, Debug)]
pub struct ListedName {
    /// By which its report is had.
    pub key: ListKey,
    /// Its virtual host.
    pub vhost: VhostName,
    /// Its own name.
    pub name: QueueName,
}

/// A report that there are many of.
pub trait Listable: Sized {
    /// Returns what a list of those of one virtual host, or of all, has to look at.
    #[doc(hidden)]
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey>;

    /// Adds the reports of a key.
    #[doc(hidden)]
    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>);

    /// Brings a list into its order, and parts of one report together.
    fn sort(reports: &mut Vec<Self>) {
        let _ = reports;
    }
}

impl Broker {
    /// Begins a list. Of what does not belong to virtual hosts all is listed.
    pub fn list_keys<R: Listable>(&mut self, vhost: Option<&str>) -> Vec<ListKey> {
        let keys = R::keys(self, vhost);
        self.work.spend(1 + keys.len() as u64 / KEYS_PER_STEP);
        keys
    }

    /// Returns a page of a list, in no order, and how many of the keys it has looked at; 1 at
    /// least.
    pub fn list_page<R: Listable>(&mut self, keys: &[ListKey]) -> (Vec<R>, usize) {
        let (mut reports, mut steps, mut looked_at) = (Vec::new(), 0, 0);
        for key in keys {
            if looked_at > 0 && steps + key.steps() > self.work.per_turn() {
                break;
            }
            R::add(self, *key, &mut reports);
            steps += key.steps();
            looked_at += 1;
        }
        self.work.spend(steps);
        (reports, looked_at)
    }

    /// Returns the first consumers of a queue, at most so many: by priority, then by age.
    pub fn consumers_of_queue(&mut self, id: QueueId, max: usize) -> Vec<ListKey> {
        let queue = self.messaging.queues.get(id);
        let consumers = queue.into_iter().flat_map(|queue| queue.consumers.iter().take(max));
        let keys: Vec<_> = consumers.map(|id| ListKey(Key::Consumer(id))).collect();
        self.work.spend(1 + keys.len() as u64 / KEYS_PER_STEP);
        keys
    }

    /// Returns the consumers of a channel, at most so many, in no order.
    pub fn consumers_of_channel(&mut self, id: ChannelId, max: usize) -> Vec<ListKey> {
        let channel = self.messaging.clients.channels.get(id);
        let consumers = channel.into_iter().flat_map(|channel| channel.consumers.values());
        let keys: Vec<_> = consumers.take(max).map(|id| ListKey(Key::Consumer(*id))).collect();
        self.work.spend(1 + keys.len() as u64 / KEYS_PER_STEP);
        keys
    }

    /// Returns a whole list, in its order.
    pub(super) fn list<R: Listable>(&self, vhost: Option<&str>) -> Vec<R> {
        let mut reports = Vec::new();
        R::keys(self, vhost).into_iter().for_each(|key| R::add(self, key, &mut reports));
        R::sort(&mut reports);
        reports
    }

    fn vhosts_listed<'a>(
        &'a self,
        vhost: Option<&'a str>,
    ) -> impl Iterator<Item = (VhostId, &'a Vhost)> {
        let is_in = move |name: &str| vhost.is_none_or(|wanted| wanted == name);
        self.routing.vhosts().filter(move |(_, vhost)| is_in(vhost.name.as_str()))
    }

    /// Returns the keys of the queues, by the names of virtual hosts, and the queues' own within
    /// them.
    fn queue_keys<'a>(&'a self, vhost: Option<&'a str>) -> impl Iterator<Item = ListKey> + 'a {
        let mut vhosts: Vec<_> = self.vhosts_listed(vhost).collect();
        vhosts.sort_by_key(|(_, vhost)| &vhost.name);
        let known = vhosts.into_iter().filter_map(|(id, _)| self.messaging.queues.in_vhost(id));
        known.flat_map(|known| known.in_order.values()).map(|id| ListKey(Key::Queue(*id)))
    }

    /// Returns the queues of a virtual host, for its totals.
    pub(super) fn totals_keys(&self, id: VhostId) -> impl Iterator<Item = ListKey> + '_ {
        let known = self.messaging.queues.in_vhost(id);
        let queues = known.into_iter().flat_map(|known| known.by_name.values());
        queues.map(move |queue| ListKey(Key::TotalsOf(id, *queue)))
    }

    /// Returns the names of queues by their keys, in the keys' order: enough to find a page of
    /// them; and how many of the keys it has looked at, 1 at least.
    pub fn list_queue_names(&mut self, keys: &[ListKey]) -> (Vec<ListedName>, usize) {
        let looked_at = keys.len().min((self.work.per_turn() / STEPS_PER_NAME).max(1) as usize);
        let names = keys[..looked_at].iter().filter_map(|key| {
            let queue = self.messaging.queues.get(key.queue()?)?;
            let (vhost, name) = (queue.vhost_name.clone(), queue.name.clone());
            Some(ListedName { key: *key, vhost, name })
        });
        let names = names.collect();
        self.work.spend(looked_at as u64 * STEPS_PER_NAME);
        (names, looked_at)
    }

    /// Returns the attributes of queues by their keys, of those that have any, and how many of the
    /// keys it has looked at; 1 at least.
    pub fn list_queue_attributes(
        &mut self,
        keys: &[ListKey],
    ) -> (Vec<(ListedName, QueueAttributes)>, usize) {
        let looked_at = keys.len().min((self.work.per_turn() / STEPS_PER_REPORT).max(1) as usize);
        let found = keys[..looked_at].iter().filter_map(|key| {
            let queue = self.messaging.queues.get(key.queue()?)?;
            let attributes = queue.attributes.as_deref()?.clone();
            let (vhost, name) = (queue.vhost_name.clone(), queue.name.clone());
            Some((ListedName { key: *key, vhost, name }, attributes))
        });
        let found = found.collect();
        self.work.spend(looked_at as u64 * STEPS_PER_REPORT);
        (found, looked_at)
    }
}

/// Returns the first place of each key, for so many places.
fn places(count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).step_by(PLACES_PER_KEY as usize)
}

impl Listable for QueueReport {
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.queue_keys(vhost).collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Key::Queue(id) = key.0 else { return };
        reports.extend(broker.messaging.queues.get(id).map(|queue| broker.queue_report(queue)));
    }

    fn sort(reports: &mut Vec<Self>) {
        reports.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
    }
}

impl Listable for VhostReport {
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey> {
        let vhosts = broker.vhosts_listed(vhost);
        let keys = vhosts.flat_map(|(id, _)| {
            [ListKey(Key::Vhost(id))].into_iter().chain(broker.totals_keys(id))
        });
        keys.collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let (Key::Vhost(id) | Key::TotalsOf(id, _)) = key.0 else { return };
        let (queues, routing) = (&broker.messaging.queues, &broker.routing);
        let Some(name) = routing.vhost(id).map(|vhost| &vhost.name) else { return };
        if reports.last().is_none_or(|last| last.name != *name) {
            reports.push(empty_report(id, name));
        }
        let Some(report) = reports.last_mut() else { return };
        match key.0 {
            Key::TotalsOf(_, queue) => {
                let Some(queue) = queues.get(queue) else { return };
                report.messages_ready += queue.ready.len() as u64;
                report.messages_unacknowledged += queue.in_flight();
                report.counters.add(&queue.counters);
            }
            _ => {
                let Some(known) = queues.in_vhost(id) else { return };
                report.queues += known.by_name.len();
                report.counters.add(&known.counters);
            }
        }
    }

    fn sort(reports: &mut Vec<Self>) {
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports.dedup_by(|more, report| {
            let is_same = more.name == report.name;
            if is_same {
                report.queues += more.queues;
                report.messages_ready += more.messages_ready;
                report.messages_unacknowledged += more.messages_unacknowledged;
                report.counters.add(&more.counters);
            }
            is_same
        });
    }
}

fn empty_report(id: VhostId, name: &VhostName) -> VhostReport {
    VhostReport {
        id,
        name: name.clone(),
        queues: 0,
        messages_ready: 0,
        messages_unacknowledged: 0,
        counters: MessageCounters::default(),
    }
}

impl Listable for ExchangeReport {
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey> {
        let vhosts = broker.vhosts_listed(vhost);
        let keys = vhosts.flat_map(|(id, vhost)| {
            let places = places(vhost.router.exchange_places());
            places.map(move |place| ListKey(Key::Exchanges(id, place)))
        });
        keys.collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Some((id, places)) = key.exchanges() else { return };
        let Some(vhost) = broker.routing.vhost(id) else { return };
        let exchanges = vhost.router.exchanges_at(places);
        reports.extend(exchanges.map(|(spec, number, counters)| Self {
            id: ExchangeId { vhost: id, number },
            vhost: vhost.name.clone(),
            name: spec.name.clone(),
            kind: spec.kind.as_str(),
            durable: spec.durable,
            auto_delete: spec.auto_delete,
            internal: spec.internal,
            arguments: spec.arguments.clone(),
            counters,
        }));
    }

    fn sort(reports: &mut Vec<Self>) {
        reports.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
    }
}

impl Listable for BindingReport {
    /// Returns the keys of bindings: those by which the default exchange reaches every queue are
    /// among them.
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey> {
        let vhosts = broker.vhosts_listed(vhost);
        let bindings = vhosts.flat_map(|(id, vhost)| {
            let places = places(vhost.router.binding_places());
            places.map(move |place| ListKey(Key::Bindings(id, place)))
        });
        broker.queue_keys(vhost).chain(bindings).collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        match key.0 {
            Key::Queue(id) => reports.extend(broker.messaging.queues.get(id).map(|queue| Self {
                vhost: queue.vhost_name.clone(),
                source: String::new(),
                destination: queue.name.to_string(),
                to_queue: true,
                routing_key: queue.name.to_string(),
                arguments: Table::new(),
            })),
            Key::Bindings(id, first) => {
                let Some(vhost) = broker.routing.vhost(id) else { return };
                let bindings = vhost.router.bindings_at(first..first + PLACES_PER_KEY);
                reports.extend(bindings.map(|binding| binding_report(vhost, binding)));
            }
            _ => {}
        }
    }

    fn sort(reports: &mut Vec<Self>) {
        reports.sort_by(|a, b| {
            (&a.vhost, &a.source, &a.destination, &a.routing_key).cmp(&(
                &b.vhost,
                &b.source,
                &b.destination,
                &b.routing_key,
            ))
        });
    }
}

fn binding_report(vhost: &Vhost, binding: Binding) -> BindingReport {
    let (destination, to_queue) = match binding.destination {
        Destination::Queue(_, name) => (name.to_string(), true),
        Destination::Exchange(name) => (name.to_string(), false),
    };
    BindingReport {
        vhost: vhost.name.clone(),
        source: binding.source.to_string(),
        destination,
        to_queue,
        routing_key: binding.key.into(),
        arguments: binding.arguments,
    }
}

impl Listable for ConnectionReport {
    fn keys(broker: &Broker, _vhost: Option<&str>) -> Vec<ListKey> {
        let connections = broker.messaging.clients.connections.keys();
        connections.map(|id| ListKey(Key::Connection(id))).collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Key::Connection(id) = key.0 else { return };
        reports.extend(broker.connection_report(id));
    }
}

impl Listable for ChannelReport {
    fn keys(broker: &Broker, _vhost: Option<&str>) -> Vec<ListKey> {
        let channels = broker.messaging.clients.channels.keys();
        channels.map(|id| ListKey(Key::Channel(id))).collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Key::Channel(id) = key.0 else { return };
        reports.extend(broker.channel_report(id));
    }
}

impl Listable for ConsumerReport {
    fn keys(broker: &Broker, vhost: Option<&str>) -> Vec<ListKey> {
        let Broker { messaging, .. } = broker;
        let consumers = messaging.clients.consumers.iter().filter(|(_, consumer)| {
            let queue = messaging.queues.get(consumer.queue);
            queue.is_some_and(|q| vhost.is_none_or(|v| v == q.vhost_name.as_str()))
        });
        consumers.map(|(id, _)| ListKey(Key::Consumer(id))).collect()
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Key::Consumer(id) = key.0 else { return };
        reports.extend(broker.consumer_report(id));
    }
}

impl Listable for TopicPermission {
    fn keys(_broker: &Broker, _vhost: Option<&str>) -> Vec<ListKey> {
        vec![ListKey(Key::TopicPermissions)]
    }

    fn add(broker: &Broker, key: ListKey, reports: &mut Vec<Self>) {
        let Key::TopicPermissions = key.0 else { return };
        reports.extend(broker.access().accounts().topic_permissions().cloned());
    }
}
