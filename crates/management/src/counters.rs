//! What the API's own sockets did, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quelea_model::{LatencyHistogram, SharedLatencyHistogram};

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct ApiCounters {
    connections_refused: AtomicU64,
    connections_evicted: AtomicU64,
    slow_clients: AtomicU64,
    rate_limited: AtomicU64,
    web_pages: AtomicU64,
    requests: SharedLatencyHistogram,
}

impl ApiCounters {
    /// Returns each cause of a refusal with its count.
    pub(crate) fn refused(&self) -> [(&'static str, u64); 5] {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("too_many_connections", get(&self.connections_refused)),
            ("gave_way", get(&self.connections_evicted)),
            ("too_slow", get(&self.slow_clients)),
            ("too_many_requests", get(&self.rate_limited)),
            ("web_page", get(&self.web_pages)),
        ]
    }

    /// Returns how long requests took that were not refused at once.
    pub(crate) fn requests(&self) -> LatencyHistogram {
        self.requests.snapshot()
    }

    pub(crate) fn count_request(&self, time: Duration) {
        self.requests.record(time.as_micros() as u64);
    }

    pub(crate) fn count_refused_connection(&self) {
        add(&self.connections_refused);
    }

    pub(crate) fn count_evicted_connection(&self) {
        add(&self.connections_evicted);
    }

    pub(crate) fn count_slow_client(&self) {
        add(&self.slow_clients);
    }

    pub(crate) fn count_rate_limited(&self) {
        add(&self.rate_limited);
    }

    pub(crate) fn count_web_page(&self) {
        add(&self.web_pages);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
