//! Takes the samples of [`History`](crate::history::History) and [`Recent`](crate::recent::Recent), beside the requests.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use quelea_broker::report::{ChurnCounters, MessageCounters};
use quelea_broker::{QueueSample, SampleStart, SampledKeys, VhostId};
use quelea_node::{Clock, Core};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::ApiError;
use crate::history::{Counts, Subject};
use crate::limits::SAMPLED_OBJECTS_MAX;
use crate::paging::by_turns;
use crate::recent::{
    CHANNEL_STATS, CHURN_RATES, CONFIRM_STATS, ChannelCounters, EXCHANGE_STATS, TRAFFIC_STATS,
};
use crate::state::ApiState;

/// Takes samples until the broker stops.
pub(crate) async fn run(api: ApiState, every: Duration) {
    let clock = Clock::start();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if sample(&api, clock).await.is_err() {
            return;
        }
    }
}

async fn sample(api: &ApiState, clock: Clock) -> Result<(), ApiError> {
    let at_ms = clock.now().as_millis();
    let begin = |core: &mut Core| {
        (core.broker.begin_samples(SAMPLED_OBJECTS_MAX), core.counters().confirmed)
    };
    let (start, confirmed) = api.on_core(begin).await?;
    let SampleStart { counters, churn, vhosts, queues, exchanges, connections, channels } = start;
    record_totals(api, at_ms, &churn, confirmed);
    let queues = by_turns(api, queues, |core, keys| core.broker.sample_queues(keys)).await?;
    let mut totals = Sum::of(&counters);
    let mut of_vhosts: HashMap<VhostId, Sum> =
        vhosts.iter().map(|(vhost, gone)| (*vhost, Sum::of(gone))).collect();
    for queue in &queues {
        totals.add_lengths(queue);
        if let Some(vhost) = queue.vhost.and_then(|vhost| of_vhosts.get_mut(&vhost)) {
            vhost.add_lengths(queue);
            vhost.counters.add(&queue.counters);
        }
    }
    let of_vhosts = of_vhosts.iter().map(|(vhost, sum)| (Subject::Vhost(*vhost), sum.counts()));
    let of_queues = queues.iter().map(|queue| {
        let counts = Counts::new(queue.messages_ready, queue.unsettled, &queue.counters);
        (Subject::Queue(queue.id), counts)
    });
    let objects: Vec<_> = of_vhosts.chain(of_queues).collect();
    api.history.lock().unwrap_or_else(PoisonError::into_inner).record(
        at_ms,
        totals.counts(),
        objects.into_iter(),
    );
    sample_exchanges(api, at_ms, exchanges).await?;
    sample_connections(api, at_ms, connections).await?;
    sample_channels(api, at_ms, channels).await
}

fn record_totals(api: &ApiState, at_ms: u64, churn: &ChurnCounters, confirmed: u64) {
    let mut recent = api.recent();
    let counts = CHURN_RATES.map(|(_, of)| of(churn));
    recent.churn.record(at_ms, true, std::iter::once(((), counts)));
    let counts = CONFIRM_STATS.map(|(_, of)| of(&confirmed));
    recent.confirms.record(at_ms, true, std::iter::once(((), counts)));
}

async fn sample_exchanges(
    api: &ApiState,
    at_ms: u64,
    SampledKeys { keys, are_all }: SampledKeys,
) -> Result<(), ApiError> {
    let exchanges = by_turns(api, keys, |core, keys| core.broker.sample_exchanges(keys)).await?;
    let samples = exchanges.into_iter().map(|exchange| {
        let counts = EXCHANGE_STATS.map(|(_, of)| of(&exchange.counters));
        (exchange.id, counts)
    });
    let mut recent = api.recent();
    recent.exchanges.record(at_ms, are_all, samples);
    Ok(())
}

async fn sample_connections(
    api: &ApiState,
    at_ms: u64,
    SampledKeys { keys, are_all }: SampledKeys,
) -> Result<(), ApiError> {
    let connections = by_turns(api, keys, Core::sample_traffic).await?;
    let samples = connections.into_iter().map(|(id, traffic)| {
        let counts = TRAFFIC_STATS.map(|(_, of)| of(&traffic));
        (id, counts)
    });
    let mut recent = api.recent();
    recent.connections.record(at_ms, are_all, samples);
    Ok(())
}

async fn sample_channels(
    api: &ApiState,
    at_ms: u64,
    SampledKeys { keys, are_all }: SampledKeys,
) -> Result<(), ApiError> {
    let channels = by_turns(api, keys, Core::sample_channels).await?;
    let samples = channels.into_iter().map(|(channel, confirmed)| {
        let counters = ChannelCounters { messages: channel.counters, confirmed };
        (channel.id, CHANNEL_STATS.map(|(_, of)| of(&counters)))
    });
    let mut recent = api.recent();
    recent.channels.record(at_ms, are_all, samples);
    Ok(())
}

/// What queues add up to.
struct Sum {
    ready: u64,
    unacknowledged: u64,
    counters: MessageCounters,
}

impl Sum {
    const fn of(counters: &MessageCounters) -> Self {
        Self { ready: 0, unacknowledged: 0, counters: *counters }
    }

    const fn add_lengths(&mut self, queue: &QueueSample) {
        self.ready += queue.messages_ready;
        self.unacknowledged += queue.messages_unacknowledged;
    }

    fn counts(&self) -> Counts {
        Counts::new(self.ready, self.unacknowledged, &self.counters)
    }
}
