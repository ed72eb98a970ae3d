//! The threads of a run: started, watched, stopped together.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::clock::now_ns;
use crate::control::{Control, Counts, Gauge, Phase, Records};
use crate::error::BenchError;
use crate::peer::Peer;
use crate::worker::Worker;

/// Workers under one control.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    pub control: Arc<Control>,
    gauges: Vec<Arc<Gauge>>,
    threads: Vec<JoinHandle<Result<(), BenchError>>>,
    started_ns: u64,
}

impl WorkerPool {
    pub(crate) fn new(first: Phase) -> Self {
        let control = Arc::new(Control::new(first));
        Self { control, gauges: Vec::new(), threads: Vec::new(), started_ns: now_ns() }
    }

    /// Spreads `peers` over `threads` new threads and starts them.
    pub(crate) fn start(&mut self, peers: Vec<Peer>, threads: usize) -> Result<(), BenchError> {
        for group in spread(peers, threads) {
            let mut worker = Worker::new(group);
            let control = Arc::clone(&self.control);
            self.gauges.push(Arc::clone(&worker.gauge));
            let name = format!("bench-{}", self.threads.len());
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || {
                    worker.run(&control, false)?;
                    worker.close()
                })
                .map_err(BenchError::Socket)?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Returns when it was made: just before the first message.
    pub(crate) const fn started_ns(&self) -> u64 {
        self.started_ns
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::read(self.gauges.iter().map(Arc::as_ref))
    }

    /// Returns the time of the last message, confirm or delivery.
    pub(crate) fn last_ns(&self) -> u64 {
        self.gauges.iter().map(|gauge| gauge.last_ns.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Returns how far the slowest publisher is behind its schedule, ns.
    pub(crate) fn lag_ns(&self) -> u64 {
        self.gauges.iter().map(|gauge| gauge.lag_ns.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Returns how many connections the broker has blocked.
    pub(crate) fn blocked(&self) -> u64 {
        self.gauges.iter().map(|gauge| gauge.blocked.load(Ordering::Relaxed)).sum()
    }

    /// Returns whether all publishers have sent, and seen confirmed, all they had to.
    pub(crate) fn is_finished(&self) -> bool {
        self.gauges.iter().all(|gauge| gauge.finished.load(Ordering::Relaxed))
    }

    /// Returns whether a thread ended by itself: [`WorkerPool::stop`] returns why.
    pub(crate) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Takes what was measured since the last call: everything into `interval`, and what belongs
    /// to the measured phase into `total`.
    pub(crate) fn collect(&self, total: &mut Records, interval: &mut Records) {
        for gauge in &self.gauges {
            gauge.collect(|records| {
                interval.merge(records);
                if records.phase == Phase::Measure {
                    total.merge(records);
                }
            });
        }
    }

    /// Stops all threads and waits for them.
    ///
    /// # Errors
    /// The first error of a thread.
    pub(crate) fn stop(&mut self) -> Result<(), BenchError> {
        self.control.enter(Phase::Stopped);
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            // A panic has been printed by the thread; passing it on ends the program with it.
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(ended);
        }
        result
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.control.enter(Phase::Stopped);
    }
}

/// Deals peers out in turn, so that each thread gets its share of producers and of consumers.
fn spread<T>(things: Vec<T>, groups: usize) -> Vec<Vec<T>> {
    let groups = groups.min(things.len()).max(1);
    let mut dealt: Vec<Vec<T>> = (0..groups).map(|_| Vec::new()).collect();
    for (index, thing) in things.into_iter().enumerate() {
        dealt[index % groups].push(thing);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_dealt_out_in_turn_and_no_thread_is_idle() {
        assert_eq!(spread(vec![1, 2, 3, 4, 5], 2), [vec![1, 3, 5], vec![2, 4]]);
        assert_eq!(spread(vec![1, 2], 8), [vec![1], vec![2]]);
        assert_eq!(spread(vec![1, 2, 3], 1), [vec![1, 2, 3]]);
    }
}
