//! Samples of the counters of all queues and exchanges, taken again and again: no more of each than they need.

use quelea_model::QueueId;

use super::Broker;
use super::listing::{ListKey, Listable, PLACES_PER_KEY};
use crate::ids::{ChannelId, ConnectionId, ExchangeId, VhostId};
use crate::report::{
    ChannelReport, ChurnCounters, ConnectionReport, ExchangeCounters, ExchangeReport,
    MessageCounters, QueueReport,
};
use crate::work::{STEPS_PER_COUNTERS, STEPS_PER_SAMPLE};

/// A queue's counters.
#[derive(Clone, Debug)]
pub struct QueueSample {
    /// Tells it from earlier ones of its name.
    pub id: QueueId,
    /// Its virtual host, if that is not being deleted.
    pub vhost: Option<VhostId>,
    /// Messages that wait for a consumer.
    pub messages_ready: u64,
    /// Messages that were delivered and not yet acknowledged.
    pub messages_unacknowledged: u64,
    /// The same, and those on their way to a dead-letter exchange.
    pub unsettled: u64,
    /// What passed.
    pub counters: MessageCounters,
}

/// An exchange's counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeSample {
    /// Tells it from earlier ones of its name.
    pub id: ExchangeId,
    /// What passed.
    pub counters: ExchangeCounters,
}

/// A channel's counters.
#[derive(Clone, Debug)]
pub struct ChannelSample {
    /// Its number in this run of the broker.
    pub id: ChannelId,
    /// Its connection.
    pub connection: ConnectionId,
    /// Its number on the wire.
    pub number: u16,
    /// What passed.
    pub counters: MessageCounters,
}

/// What is sampled of a kind of object.
#[derive(Clone, Debug)]
pub struct SampledKeys {
    /// What has to be looked at.
    pub keys: Vec<ListKey>,
    /// Whether those are all there are.
    pub are_all: bool,
}

/// What samples begin with.
#[derive(Clone, Debug)]
pub struct SampleStart {
    /// What passed in all.
    pub counters: MessageCounters,
    /// What came and went.
    pub churn: ChurnCounters,
    /// The virtual hosts, and what passed through queues of theirs that are gone.
    pub vhosts: Vec<(VhostId, MessageCounters)>,
    /// For [`Broker::sample_queues`].
    pub queues: Vec<ListKey>,
    /// For [`Broker::sample_exchanges`].
    pub exchanges: SampledKeys,
    /// For [`Broker::sample_connections`].
    pub connections: SampledKeys,
    /// For [`Broker::sample_channels`].
    pub channels: SampledKeys,
}

impl Broker {
    /// Begins samples: of all queues, and of at most so many objects of each other kind.
    pub fn begin_samples(&mut self, objects_max: usize) -> SampleStart {
        let exchanges = self.sampled_keys::<ExchangeReport>(objects_max / PLACES_PER_KEY as usize);
        let queues = self.list_keys::<QueueReport>(None);
        let vhosts = self.routing.vhosts().map(|(id, _)| {
            let known = self.messaging.queues.in_vhost(id);
            let gone = known.map_or_else(MessageCounters::default, |known| known.counters);
            (id, gone)
        });
        let (counters, churn, vhosts) = (self.messaging.counters, self.churn, vhosts.collect());
        let connections = self.sampled_keys::<ConnectionReport>(objects_max);
        let channels = self.sampled_keys::<ChannelReport>(objects_max);
        SampleStart { counters, churn, vhosts, queues, exchanges, connections, channels }
    }

    fn sampled_keys<R: Listable>(&mut self, keys_max: usize) -> SampledKeys {
        let mut keys = self.list_keys::<R>(None);
        let are_all = keys.len() <= keys_max;
        keys.truncate(keys_max);
        SampledKeys { keys, are_all }
    }

    /// Returns samples of some of the queues, in the keys' order, and how many of the keys it has
    /// looked at; 1 at least.
    pub fn sample_queues(&mut self, keys: &[ListKey]) -> (Vec<QueueSample>, usize) {
        let looked_at = keys.len().min((self.work.per_turn() / STEPS_PER_SAMPLE).max(1) as usize);
        let samples = keys[..looked_at].iter().filter_map(|key| {
            let queue = self.messaging.queues.get(key.queue()?)?;
            let messages_unacknowledged = queue.in_flight();
            Some(QueueSample {
                id: queue.id,
                vhost: self.routing.vhost_id(queue.vhost_name.as_str()),
                messages_ready: queue.ready.len() as u64,
                messages_unacknowledged,
                unsettled: messages_unacknowledged + queue.dead_letters.len() as u64,
                counters: queue.counters,
            })
        });
        let samples = samples.collect();
        self.work.spend(looked_at as u64 * STEPS_PER_SAMPLE);
        (samples, looked_at)
    }

    /// Returns samples of some of the exchanges, but of those that nothing was published to, and
    /// how many of the keys it has looked at; 1 at least.
    pub fn sample_exchanges(&mut self, keys: &[ListKey]) -> (Vec<ExchangeSample>, usize) {
        let steps_per_key = STEPS_PER_COUNTERS * u64::from(PLACES_PER_KEY);
        let looked_at = keys.len().min((self.work.per_turn() / steps_per_key).max(1) as usize);
        let mut samples = Vec::new();
        for (id, places) in keys[..looked_at].iter().filter_map(|key| key.exchanges()) {
            let Some(vhost) = self.routing.vhost(id) else { continue };
            let published = vhost.router.exchanges_at(places).filter(|(.., c)| c.publish_in > 0);
            samples.extend(published.map(|(_, number, counters)| ExchangeSample {
                id: ExchangeId { vhost: id, number },
                counters,
            }));
        }
        self.work.spend(looked_at as u64 * steps_per_key);
        (samples, looked_at)
    }

    /// Returns some of the connections that are still there, and how many of the keys it has looked
    /// at; 1 at least. What the connections' sockets did is known to whoever has these.
    pub fn sample_connections(&mut self, keys: &[ListKey]) -> (Vec<ConnectionId>, usize) {
        let keys = self.some_counters(keys);
        let connections = &self.messaging.clients.connections;
        let ids = keys.iter().filter_map(|key| key.connection());
        (ids.filter(|id| connections.contains_key(*id)).collect(), keys.len())
    }

    /// Returns samples of some of the channels, and how many of the keys it has looked at; 1 at
    /// least.
    pub fn sample_channels(&mut self, keys: &[ListKey]) -> (Vec<ChannelSample>, usize) {
        let keys = self.some_counters(keys);
        let samples = keys.iter().filter_map(|key| {
            let id = key.channel()?;
            let channel = self.messaging.clients.channels.get(id)?;
            let (connection, number) = (channel.connection, channel.number);
            Some(ChannelSample { id, connection, number, counters: channel.counters })
        });
        (samples.collect(), keys.len())
    }

    /// Returns as many keys as one call may look at, if each stands for one object, and counts the
    /// steps for them.
    fn some_counters<'a>(&mut self, keys: &'a [ListKey]) -> &'a [ListKey] {
        let max = (self.work.per_turn() / STEPS_PER_COUNTERS).max(1) as usize;
        let keys = &keys[..keys.len().min(max)];
        self.work.spend(keys.len() as u64 * STEPS_PER_COUNTERS);
        keys
    }
}
