//! The log's threads: one for each lane of the store's jobs, so that neither reading nor housekeeping
//! holds up what promises wait for. Each takes jobs from a bounded channel and sends their results
//! back to the core, which it wakes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use quelea_store::{Disk, Job, JobDone, Lane};
use tokio::sync::Notify;

/// Jobs that wait in one lane. The store hands out at most one, for reads a few, at a time.
const WAITING_MAX: usize = 64;

/// Jobs encode, check and copy; none recurses.
const STACK_BYTES: usize = 512 * 1024;

/// The lanes, in the order of [`LogThreads::lanes`], and the names of their threads.
const LANES: [(Lane, &str); 3] =
    [(Lane::Write, "log-write"), (Lane::Read, "log-read"), (Lane::Background, "log-background")];

/// The threads, from the core's side.
pub(crate) struct LogThreads {
    /// Where each lane's jobs go; empty once the threads are to end.
    lanes: Vec<SyncSender<Job>>,
    done: Receiver<JobDone>,
    /// Taken from the store when its lane was full.
    held: Option<Job>,
    under_way: usize,
    threads: Vec<JoinHandle<()>>,
}

impl LogThreads {
    /// Starts the threads; each result wakes `wake`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(disk: &Arc<dyn Disk>, wake: &Arc<Notify>) -> io::Result<Self> {
        // Room for all that can be under way, so that no thread ever waits for the core.
        let (results, done) = sync_channel(LANES.len() * (WAITING_MAX + 1));
        let (mut lanes, mut threads) = (Vec::new(), Vec::new());
        for (_, name) in LANES {
            let (sender, jobs) = sync_channel(WAITING_MAX);
            let (disk, results, wake) = (Arc::clone(disk), results.clone(), Arc::clone(wake));
            let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
            threads.push(builder.spawn(move || serve(&jobs, &*disk, &results, &wake))?);
            lanes.push(sender);
        }
        Ok(Self { lanes, done, held: None, under_way: 0, threads })
    }

    /// Hands jobs over until `next` returns none or a lane is full.
    pub(crate) fn submit(&mut self, mut next: impl FnMut() -> Option<Job>) {
        while let Some(job) = self.held.take().or_else(&mut next) {
            let index = LANES.iter().position(|(lane, _)| *lane == job.lane());
            let index = index.expect("LANES lists every lane");
            match self.lanes[index].try_send(job) {
                Ok(()) => self.under_way += 1,
                Err(TrySendError::Full(job)) => {
                    self.held = Some(job);
                    return;
                }
                // The thread cannot end before its sender does: a panic there ends the process.
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }

    /// Takes the result of a job, if one is there.
    pub(crate) fn poll_done(&mut self) -> Option<JobDone> {
        let done = self.done.try_recv().ok()?;
        self.under_way -= 1;
        Some(done)
    }

    /// Returns whether no job is under way or waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way == 0 && self.held.is_none()
    }
}

impl Drop for LogThreads {
    fn drop(&mut self) {
        self.lanes.clear();
        if self.under_way > 0 {
            // A disk that hangs must not keep the process from ending; with it end the threads.
            return;
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended the process already.
            let _ = thread.join();
        }
    }
}

fn serve(jobs: &Receiver<Job>, disk: &dyn Disk, results: &SyncSender<JobDone>, wake: &Notify) {
    while let Ok(job) = jobs.recv() {
        let started = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| job.run(disk)));
        let Ok(mut done) = done else {
            // The core would wait for this result for ever, and what was promised with it.
            crate::panics::end_process("a log thread panicked");
        };
        done.elapsed_us = started.elapsed().as_micros() as u64;
        if results.send(done).is_err() {
            return;
        }
        wake.notify_one();
    }
}
