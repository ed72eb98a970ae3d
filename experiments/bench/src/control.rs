//! What the threads of a run share with the one that watches them. Each worker adds to counters
//! of its own once per batch; nothing here is touched per message.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::latency::Latencies;

/// Where a run is; only ever moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Warmup,
    Measure,
    Stopped,
}

/// The watcher's orders to all workers.
#[derive(Debug)]
pub(crate) struct Control {
    phase: AtomicU32,
    /// Workers hand over their latencies when they see another number.
    epoch: AtomicU32,
}

impl Control {
    pub(crate) const fn new(phase: Phase) -> Self {
        Self { phase: AtomicU32::new(phase as u32), epoch: AtomicU32::new(0) }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Warmup,
            1 => Phase::Measure,
            _ => Phase::Stopped,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
        self.next_epoch();
    }

    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }
}

/// Latencies of one worker over one interval.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// From (intended) sending to delivery; in ping-pong from sending to the reply.
    pub delivery: Latencies,
    /// From (intended) sending to the broker's confirm.
    pub confirm: Latencies,
    /// The phase in which they were recorded.
    pub phase: Phase,
}

impl Records {
    pub(crate) fn new(phase: Phase) -> Self {
        Self { delivery: Latencies::new(), confirm: Latencies::new(), phase }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.delivery.merge(&other.delivery);
        self.confirm.merge(&other.confirm);
    }

    pub(crate) fn clear(&mut self) {
        self.delivery.clear();
        self.confirm.clear();
    }
}

/// What one worker shows of itself. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Gauge {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub confirmed: AtomicU64,
    pub refused: AtomicU64,
    pub returned: AtomicU64,
    /// Time of the last message, confirm or delivery.
    pub last_ns: AtomicU64,
    /// How far its slowest publisher is behind its schedule.
    pub lag_ns: AtomicU64,
    /// Connections that the broker has blocked.
    pub blocked: AtomicU64,
    /// All its publishers have sent and seen confirmed what they had to.
    pub finished: AtomicBool,
    /// It ended by an error.
    pub failed: AtomicBool,
    records: Mutex<Handover>,
}

/// Full records wait for the watcher, cleared ones for the worker: the worker never merges or
/// clears a histogram itself.
#[derive(Debug, Default)]
struct Handover {
    full: Vec<Records>,
    spare: Vec<Records>,
}

impl Gauge {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        if count > 0 {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Swaps the worker's records for empty ones of the phase `next`.
    pub(crate) fn hand_over(&self, records: &mut Records, next: Phase) {
        let mut handover = self.lock();
        let mut empty = handover.spare.pop().unwrap_or_else(|| Records::new(next));
        empty.phase = next;
        handover.full.push(std::mem::replace(records, empty));
    }

    /// Hands every interval so far to `take`.
    pub(crate) fn collect(&self, mut take: impl FnMut(&Records)) {
        let full = std::mem::take(&mut self.lock().full);
        for mut records in full {
            take(&records);
            records.clear();
            self.lock().spare.push(records);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Handover> {
        // A worker that panicked leaves lists that are still lists.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters of all workers at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub sent: u64,
    pub received: u64,
    pub confirmed: u64,
    pub refused: u64,
    pub returned: u64,
}

impl Counts {
    pub(crate) fn read<'a>(gauges: impl IntoIterator<Item = &'a Gauge>) -> Self {
        gauges.into_iter().fold(Self::default(), |sum, gauge| Self {
            sent: sum.sent + gauge.sent.load(Ordering::Relaxed),
            received: sum.received + gauge.received.load(Ordering::Relaxed),
            confirmed: sum.confirmed + gauge.confirmed.load(Ordering::Relaxed),
            refused: sum.refused + gauge.refused.load(Ordering::Relaxed),
            returned: sum.returned + gauge.returned.load(Ordering::Relaxed),
        })
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            confirmed: self.confirmed + other.confirmed,
            refused: self.refused + other.refused,
            returned: self.returned + other.returned,
        }
    }

    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            confirmed: self.confirmed - earlier.confirmed,
            refused: self.refused - earlier.refused,
            returned: self.returned - earlier.returned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_reach_the_watcher_with_the_phase_they_were_made_in() {
        let gauge = Gauge::default();
        let mut records = Records::new(Phase::Warmup);
        records.delivery.record(5_000_000);
        gauge.hand_over(&mut records, Phase::Measure);
        assert_eq!(records.delivery.percentiles().count, 0);
        records.confirm.record(1_000_000);
        gauge.hand_over(&mut records, Phase::Stopped);
        assert_eq!(records.phase, Phase::Stopped);
        let mut found = Vec::new();
        gauge.collect(|r| {
            let (delivered, confirmed) = (r.delivery.percentiles(), r.confirm.percentiles());
            found.push((r.phase, delivered.count, confirmed.count));
        });
        assert_eq!(found, [(Phase::Warmup, 1, 0), (Phase::Measure, 0, 1)]);
    }

    #[test]
    fn collected_records_come_back_empty() {
        let gauge = Gauge::default();
        let mut records = Records::new(Phase::Measure);
        records.delivery.record(1_000_000);
        gauge.hand_over(&mut records, Phase::Measure);
        gauge.collect(|_| ());
        gauge.hand_over(&mut records, Phase::Measure);
        assert_eq!(records.delivery.percentiles().count, 0);
    }

    #[test]
    fn the_counts_of_all_workers_add_up() {
        let gauges = [Gauge::default(), Gauge::default()];
        Gauge::add(&gauges[0].sent, 3);
        Gauge::add(&gauges[1].sent, 4);
        Gauge::add(&gauges[1].received, 2);
        let first = Counts::read(&gauges);
        assert_eq!((first.sent, first.received), (7, 2));
        Gauge::add(&gauges[0].received, 5);
        assert_eq!(Counts::read(&gauges).since(first).received, 5);
    }
}
