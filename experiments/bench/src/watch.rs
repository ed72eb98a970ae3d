//! Watches a running pool: warm-up, measurement, a line every second, and the end.

use std::time::Duration;

use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::control::{Counts, Phase, Records};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::observer::{BrokerCost, DeviceCost, Observer, Snapshot};
use crate::progress::Progress;
use crate::worker_pool::WorkerPool;

/// How often the end of a counted run is looked for.
const STEP: Duration = Duration::from_millis(5);
/// Without any movement for so long a counted run has failed.
const STALL_S: u64 = 60;
/// A drained queue: nothing for so long.
const IDLE_NS: u64 = SECOND_NS;

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// After a warm-up and a measured time, ns.
    Time { warmup_ns: u64, measure_ns: u64 },
    /// When all publishers are finished and so many deliveries have arrived.
    Messages { deliveries: u64 },
    /// When the queues have been silent for a second, or after so many ns.
    Drained { at_most_ns: u64 },
}

/// What was seen between the two ends of the measurement.
#[derive(Debug)]
pub(crate) struct Measured {
    pub seconds: f64,
    pub counts: Counts,
    pub records: Records,
    pub broker: Option<BrokerCost>,
    pub device: Option<DeviceCost>,
    pub own_cpu_us: u64,
    pub interrupted: bool,
}

/// The watcher.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    pub pool: &'a mut WorkerPool,
    pub observer: &'a Observer,
    pub interrupt: &'a Interrupt,
    pub progress: Progress,
    /// Taken before the pool started: where a run without warm-up counts from.
    pub at_start: Snapshot,
}

/// The beginning of the measurement.
#[derive(Debug)]
struct Origin {
    ns: u64,
    counts: Counts,
    snapshot: Snapshot,
}

impl Watch<'_> {
    /// Watches until `end`, then stops the pool.
    pub(crate) fn run(mut self, end: End) -> Result<Measured, BenchError> {
        let start = now_ns();
        let mut total = Records::new(Phase::Measure);
        let warmup_ns = if let End::Time { warmup_ns, .. } = end { warmup_ns } else { 0 };
        let mut interrupted = false;
        if warmup_ns > 0 {
            interrupted = self.watch_until(start + warmup_ns, &mut total)?;
        }
        let origin = if warmup_ns > 0 {
            let (snapshot, counts) = (self.observer.begin(), self.pool.counts());
            Origin { snapshot, counts, ns: now_ns() }
        } else {
            Origin {
                snapshot: self.at_start,
                counts: Counts::default(),
                ns: self.pool.started_ns(),
            }
        };
        self.pool.control.enter(Phase::Measure);
        if !interrupted {
            interrupted = match end {
                End::Time { measure_ns, .. } => {
                    self.watch_until(origin.ns + measure_ns, &mut total)?
                }
                End::Messages { deliveries } => self.watch_messages(deliveries, &mut total)?,
                End::Drained { at_most_ns } => {
                    self.watch_drained(origin.ns + at_most_ns, &mut total)?
                }
            };
        }
        let ended = match end {
            End::Time { .. } => now_ns(),
            End::Messages { .. } | End::Drained { .. } => self.pool.last_ns().max(origin.ns + 1),
        };
        let counts = self.pool.counts().since(origin.counts);
        let snapshot = self.observer.snapshot();
        self.pool.stop()?;
        self.pool.collect(&mut total, &mut Records::new(Phase::Measure));
        Ok(Measured {
            seconds: seconds_between(origin.ns, ended),
            counts,
            records: total,
            broker: self.observer.broker_cost(&origin.snapshot, &snapshot),
            device: self.observer.device_cost(&origin.snapshot, &snapshot),
            own_cpu_us: Observer::own_cpu_us(&origin.snapshot, &snapshot),
            interrupted,
        })
    }

    /// Watches until a time. Returns true if the user ended it.
    fn watch_until(&mut self, until: u64, total: &mut Records) -> Result<bool, BenchError> {
        loop {
            let now = now_ns();
            if now >= until {
                return Ok(false);
            }
            if self.step(total)? {
                return Ok(true);
            }
            let rest = Duration::from_nanos(until.saturating_sub(now_ns()));
            std::thread::sleep(rest.min(STEP));
        }
    }

    fn watch_messages(&mut self, deliveries: u64, total: &mut Records) -> Result<bool, BenchError> {
        let mut since = (now_ns(), Counts::default());
        loop {
            let counts = self.pool.counts();
            if self.pool.is_finished() && counts.received >= deliveries {
                return Ok(false);
            }
            if self.step(total)? {
                return Ok(true);
            }
            let now = now_ns();
            if counts != since.1 {
                since = (now, counts);
            } else if now > since.0 + STALL_S * SECOND_NS {
                return Err(BenchError::Stalled {
                    seconds: STALL_S,
                    state: format!(
                        "{} sent, {} confirmed, {} refused, {} returned, {} of {deliveries} delivered",
                        counts.sent,
                        counts.confirmed,
                        counts.refused,
                        counts.returned,
                        counts.received
                    ),
                });
            }
            std::thread::sleep(STEP);
        }
    }

    fn watch_drained(&mut self, until: u64, total: &mut Records) -> Result<bool, BenchError> {
        loop {
            let now = now_ns();
            let last = self.pool.last_ns();
            if now >= until || (last > 0 && now > last + IDLE_NS) {
                return Ok(false);
            }
            if self.step(total)? {
                return Ok(true);
            }
            std::thread::sleep(STEP);
        }
    }

    /// Shows a line and the latencies so far once a second. Returns true if the user wants the end.
    fn step(&mut self, total: &mut Records) -> Result<bool, BenchError> {
        if self.pool.has_failed() {
            // The only way for a thread to end before it is stopped is an error.
            return self.pool.stop().map(|()| true);
        }
        self.progress.tick(&[self.pool], total);
        Ok(self.interrupt.is_set())
    }
}
