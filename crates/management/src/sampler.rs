//! Takes the samples of [`History`](crate::history::History), beside the requests.

use std::sync::PoisonError;
use std::time::Duration;

use quelea_broker::report::{QueueReport, VhostReport};
use quelea_node::Clock;
use tokio::time::{MissedTickBehavior, interval};

use crate::api::listing::fetch;
use crate::api::overview;
use crate::error::ApiError;
use crate::history::{Counts, Subject};
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
    let totals = overview::fetch(api).await?;
    let vhosts = fetch::<VhostReport>(api, None).await?;
    let queues = fetch::<QueueReport>(api, None).await?;
    let totals =
        Counts::new(totals.messages_ready, totals.messages_unacknowledged, &totals.counters);
    let vhosts = vhosts.iter().map(|vhost| {
        let waiting = vhost.messages_unacknowledged;
        let counts = Counts::new(vhost.messages_ready, waiting, &vhost.counters);
        (Subject::Vhost(vhost.name.to_string()), counts)
    });
    let queues = queues.iter().map(|queue| {
        let counts = Counts::new(queue.messages_ready, queue.unsettled(), &queue.counters);
        (Subject::Queue(queue.vhost.to_string(), queue.name.to_string()), counts)
    });
    let objects: Vec<_> = vhosts.chain(queues).collect();
    let mut history = api.history.lock().unwrap_or_else(PoisonError::into_inner);
    history.record(at_ms, totals, objects.into_iter());
    Ok(())
}
