//! Samples of all queues' counters, taken again and again: no more of each than they need.

use quelea_model::{QueueName, VhostName};

use super::Broker;
use super::listing::ListKey;
use crate::report::{MessageCounters, QueueReport};
use crate::work::STEPS_PER_SAMPLE;

/// A queue's counters.
#[derive(Clone, Debug)]
pub struct QueueSample {
    /// Its virtual host.
    pub vhost: VhostName,
    /// Its name.
    pub name: QueueName,
    /// Messages that wait for a consumer.
    pub messages_ready: u64,
    /// Messages that were delivered and not yet acknowledged.
    pub messages_unacknowledged: u64,
    /// The same, and those on their way to a dead-letter exchange.
    pub unsettled: u64,
    /// What passed.
    pub counters: MessageCounters,
}

/// What samples begin with.
#[derive(Clone, Debug)]
pub struct SampleStart {
    /// What passed in all.
    pub counters: MessageCounters,
    /// The virtual hosts, and what passed through queues of theirs that are gone.
    pub vhosts: Vec<(VhostName, MessageCounters)>,
    /// For [`Broker::sample_queues`].
    pub queues: Vec<ListKey>,
}

impl Broker {
    /// Begins samples.
    pub fn begin_samples(&mut self) -> SampleStart {
        let queues = self.list_keys::<QueueReport>(None);
        let vhosts = self.routing.vhosts().map(|(id, vhost)| {
            let known = self.messaging.queues.in_vhost(id);
            let gone = known.map_or_else(MessageCounters::default, |known| known.counters);
            (vhost.name.clone(), gone)
        });
        SampleStart { counters: self.messaging.counters, vhosts: vhosts.collect(), queues }
    }

    /// Samples of some of the queues, in the keys' order. Returns how many of the keys it has looked at, too; 1 at least.
    pub fn sample_queues(&mut self, keys: &[ListKey]) -> (Vec<QueueSample>, usize) {
        let looked_at = keys.len().min((self.work.per_turn() / STEPS_PER_SAMPLE).max(1) as usize);
        let samples = keys[..looked_at].iter().filter_map(|key| {
            let queue = self.messaging.queues.get(key.queue()?)?;
            let messages_unacknowledged = queue.in_flight();
            Some(QueueSample {
                vhost: queue.vhost_name.clone(),
                name: queue.name.clone(),
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
}
