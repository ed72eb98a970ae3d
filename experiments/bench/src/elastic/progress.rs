//! How far the threads of a fan-out are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;
use crate::elastic::error::ElasticError;

/// How often a wait looks whether there is something new.
const STEP: Duration = Duration::from_millis(20);

/// How far the threads of a run are, for one another.
#[derive(Debug)]
pub(crate) struct Shared {
    /// A number that no other run has.
    pub run: u64,
    pub producers: usize,
    pub end_sending: AtomicBool,
    pub end: AtomicBool,
    pub measuring: AtomicBool,
    failed: AtomicBool,
    /// Messages of all producers so far.
    pub sent: AtomicU64,
    /// Distinct messages, by listener.
    delivered: Vec<AtomicU64>,
    /// What the slowest listener of a thread has reached, by thread and producer.
    reached: Vec<AtomicU64>,
}

impl Shared {
    pub(crate) fn new(producers: usize, listeners: usize, threads: usize) -> Self {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            run: fastrand::u64(..),
            producers,
            end_sending: AtomicBool::new(false),
            end: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            delivered: zeros(listeners),
            reached: zeros(threads * producers),
        }
    }

    pub(crate) fn note(&self, listener: usize, distinct: u64) {
        self.delivered[listener].store(distinct, Ordering::Relaxed);
    }

    pub(crate) fn note_reached(&self, thread: usize, producer: usize, next: u64) {
        self.reached[thread * self.producers + producer].store(next, Ordering::Relaxed);
    }

    /// Returns what every listener has of this producer.
    pub(crate) fn reached(&self, producer: usize) -> u64 {
        let threads = self.reached.iter().skip(producer).step_by(self.producers);
        threads.map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn delivered(&self) -> Vec<u64> {
        self.delivered.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Runs a thread's work; the others learn if it fails.
    pub(crate) fn watched<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, ElasticError>,
    ) -> Result<T, ElasticError> {
        let done = work(self);
        if done.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        done
    }

    pub(crate) fn wait_for(&self, sent: u64, patience_ns: u64) {
        let (mut last, mut moved_at) = (self.delivered(), now_ns());
        while last.iter().any(|count| *count < sent) && !self.has_failed() {
            thread::sleep(STEP);
            let found = self.delivered();
            if found != last {
                (last, moved_at) = (found, now_ns());
            } else if now_ns() > moved_at + patience_ns {
                return;
            }
        }
    }
}
