//! One line a second on standard error while a run goes on.

use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::control::{Counts, Phase, Records};
use crate::units::{milliseconds, thousands};
use crate::worker_pool::WorkerPool;

/// What the last line showed, and when the next is due.
#[derive(Debug)]
pub(crate) struct Progress {
    is_quiet: bool,
    start_ns: u64,
    last_ns: u64,
    last: Counts,
    /// Deliveries that a message causes: for the backlog.
    copies: u64,
    interval: Records,
}

impl Progress {
    pub(crate) fn new(is_quiet: bool, copies: u64) -> Self {
        let now = now_ns();
        Self {
            is_quiet,
            start_ns: now,
            last_ns: now,
            last: Counts::default(),
            copies,
            interval: Records::new(Phase::Measure),
        }
    }

    /// If a second has passed: collects latencies into `total` and prints the line.
    pub(crate) fn tick(&mut self, pools: &[&WorkerPool], total: &mut Records) {
        let now = now_ns();
        if now < self.last_ns + SECOND_NS {
            return;
        }
        // What the workers hand over now was asked for a second ago.
        self.interval.clear();
        let mut counts = Counts::default();
        for pool in pools {
            pool.collect(total, &mut self.interval);
            pool.control.next_epoch();
            counts = counts.plus(pool.counts());
        }
        if !self.is_quiet {
            eprintln!("{}", self.line(pools, counts, now));
        }
        self.last = counts;
        self.last_ns = now;
    }

    fn line(&self, pools: &[&WorkerPool], counts: Counts, now: u64) -> String {
        let delta = counts.since(self.last);
        let seconds = seconds_between(self.last_ns, now);
        let rate = |count: u64| thousands(count as f64 / seconds);
        let mut line = format!("{:5.0} s", seconds_between(self.start_ns, now));
        let mut add = |name: &str, text: String| line.push_str(&format!("  {name} {text}"));
        if counts.sent > 0 {
            add("sent", format!("{}/s", rate(delta.sent)));
        }
        if counts.confirmed > 0 {
            add("confirmed", format!("{}/s", rate(delta.confirmed)));
        }
        if counts.received > 0 {
            add("received", format!("{}/s", rate(delta.received)));
        }
        for (name, latencies) in
            [("latency", &self.interval.delivery), ("confirm", &self.interval.confirm)]
        {
            let found = latencies.percentiles();
            if found.count > 0 {
                let (p50, p99) = (milliseconds(found.p50_ms), milliseconds(found.p99_ms));
                add(name, format!("p50 {p50} p99 {p99}"));
            }
        }
        let backlog = (counts.sent * self.copies).saturating_sub(counts.received);
        if counts.sent > 0 && counts.received > 0 {
            add("on the way", thousands(backlog as f64));
        }
        let problems = [
            ("REFUSED", counts.refused),
            ("RETURNED", counts.returned),
            ("BLOCKED", pools.iter().map(|pool| pool.blocked()).sum()),
        ];
        for (name, count) in problems.into_iter().filter(|(_, count)| *count > 0) {
            add(name, count.to_string());
        }
        let lag_ns = pools.iter().map(|pool| pool.lag_ns()).max().unwrap_or(0);
        if lag_ns > SECOND_NS / 10 {
            add("behind schedule", milliseconds(lag_ns as f64 / 1e6));
        }
        line
    }
}
