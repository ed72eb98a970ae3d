//! The worker loop, BDQS's client protocol from end to end (§III-A.2): receive, process, delete, in
//! this order. A message is in nobody else's hands while its handler works, since its visibility is
//! extended; it comes back if the handler fails, and also if the whole process dies.

mod handling;
mod task;
mod task_queue;
mod visibility_extender;

use std::time::Duration;

use crate::cancel::Canceller;
use crate::client::Client;
use crate::error::Error;
use crate::message::Receive;
use crate::retry::Retry;

use handling::Settler;
pub use task::Task;
use task_queue::TaskQueue;

/// Messages that one call receives at most.
const RECEIVE_MAX: usize = 10;
/// Longest wait of a long poll.
const WAIT_MAX_S: u32 = 20;
/// Longest visibility timeout, 12 hours.
const VISIBILITY_MAX_S: u32 = 43_200;
/// Most handlers of a worker; each is a thread with a connection of its own.
const CONCURRENCY_MAX: usize = 1_024;

/// What became of a message in its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Processed: it is deleted.
    Done,
    /// Not processed: it becomes visible again, after the back-off.
    Failed,
}

/// A loop over one queue.
#[derive(Debug)]
pub struct Worker {
    client: Client,
    queue_url: String,
    concurrency: usize,
    wait_seconds: u32,
    visibility_timeout_seconds: u32,
    back_off: Retry,
    patience: Retry,
    stop: Stop,
}

/// Ends a worker in order, from any thread: nothing more is received, what is being handled is
/// finished, the rest is given back.
#[derive(Debug, Clone, Default)]
pub struct Stop(Canceller);

/// What a worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages received, repeated ones included.
    pub received: u64,
    /// Messages processed and deleted.
    pub done: u64,
    /// Messages whose handler failed.
    pub failed: u64,
    /// Messages that had been processed before, when their deletion could not be confirmed: they
    /// were deleted without being processed again.
    pub repeated: u64,
    /// Messages processed whose deletion could not be confirmed.
    pub not_deleted: u64,
    /// Messages that somebody else may have received while they were handled here.
    pub lost: u64,
}

/// Why a worker ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A setting out of its range.
    #[error("{0}")]
    Setting(String),
    /// The service refuses for good: the queue is gone, say, or the key is not known.
    #[error("cannot receive from {queue_url}: {source}")]
    Receive {
        /// The queue.
        queue_url: String,
        /// What the service says.
        source: Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Worker {
    /// Returns a worker with one handler, long polls of 20 seconds, a visibility timeout of 30
    /// seconds, and no back-off.
    #[must_use]
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        Self {
            client,
            queue_url: queue_url.into(),
            concurrency: 1,
            wait_seconds: WAIT_MAX_S,
            visibility_timeout_seconds: 30,
            back_off: Retry::never(),
            patience: Retry {
                attempts: u32::MAX,
                first: Duration::from_millis(100),
                longest: Duration::from_secs(20),
            },
            stop: Stop::default(),
        }
    }

    /// Sets how many messages are handled at once, 1 to 1,024. No more are received than can be
    /// handled, so that none waits here while another worker has time.
    #[must_use]
    pub const fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// Sets the seconds of a long poll, 0 to 20.
    #[must_use]
    pub const fn wait_seconds(mut self, seconds: u32) -> Self {
        self.wait_seconds = seconds;
        self
    }

    /// Sets after how many seconds a message comes back if this process dies, 1 to 43,200. While
    /// the process lives, it is extended every third of that time, however long the handler takes.
    #[must_use]
    pub const fn visibility_timeout_seconds(mut self, seconds: u32) -> Self {
        self.visibility_timeout_seconds = seconds;
        self
    }

    /// Sets how long a message stays away when its handler failed: `first` after the first time,
    /// twice as long after each further time, at most `longest`. Without it: not at all.
    #[must_use]
    pub const fn back_off(mut self, first: Duration, longest: Duration) -> Self {
        self.back_off = Retry { attempts: u32::MAX, first, longest };
        self
    }

    /// Returns a handle that ends the worker.
    #[must_use]
    pub fn stop_handle(&self) -> Stop {
        self.stop.clone()
    }

    /// Runs until it is stopped. A handler that panics has failed.
    ///
    /// # Errors
    /// [`WorkerError`] if a setting is out of its range or the service refuses for good. What may
    /// pass (the service restarts, the network is away) is waited for.
    pub fn run(self, handler: impl Fn(&Task) -> Verdict + Sync) -> Result<Tally, WorkerError> {
        self.check()?;
        let tasks = TaskQueue::new(self.concurrency, self.queue_url.ends_with(".fifo"));
        let settler = || {
            let (client, stop) = (self.client.clone(), self.stop.clone());
            Settler::new(client, &self.queue_url, &tasks, self.back_off, stop)
        };
        let ended = std::thread::scope(|scope| {
            // However this ends, the threads must be stopped, or the scope would wait for ever.
            let _closing = tasks.close_on_drop();
            for number in 0..self.concurrency {
                let (mut settler, handler) = (settler(), &handler);
                std::thread::Builder::new()
                    .name(format!("worker-{number}"))
                    .spawn_scoped(scope, move || settler.run(handler))?;
            }
            let lease = Duration::from_secs(self.visibility_timeout_seconds.into());
            let (client, queue_url, tasks) = (self.client.clone(), &self.queue_url, &tasks);
            std::thread::Builder::new()
                .name("worker-keeper".to_owned())
                .spawn_scoped(scope, move || {
                    visibility_extender::run(client, queue_url, tasks, lease)
                })?;
            let ended = self.receive(tasks);
            settler().give_back_waiting();
            ended
        });
        ended.map(|()| tasks.tally())
    }

    fn check(&self) -> Result<(), WorkerError> {
        let refuse = |text: String| Err(WorkerError::Setting(text));
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return refuse(format!("a worker has 1 to {CONCURRENCY_MAX} handlers"));
        }
        if self.wait_seconds > WAIT_MAX_S {
            return refuse(format!("a long poll waits 0 to {WAIT_MAX_S} seconds"));
        }
        if !(1..=VISIBILITY_MAX_S).contains(&self.visibility_timeout_seconds) {
            return refuse(format!("a visibility timeout has 1 to {VISIBILITY_MAX_S} seconds"));
        }
        Ok(())
    }

    /// Receives for as many as have time, until it is stopped.
    fn receive(&self, tasks: &TaskQueue) -> Result<(), WorkerError> {
        // This loop has its own view of failures: it never gives up.
        let mut client = self.client.clone().with_retry(Retry::never());
        client.watch_canceller(&self.stop.0);
        let mut failures = 0;
        let mut most = RECEIVE_MAX;
        while let Some(room) = tasks.wait_for_room(&self.stop) {
            let how = Receive {
                max: u32::try_from(room.min(most)).unwrap_or(1),
                wait_seconds: self.wait_seconds,
                visibility_timeout_seconds: Some(self.visibility_timeout_seconds),
            };
            match client.receive(&self.queue_url, &how) {
                Ok(messages) => {
                    (failures, most) = (0, RECEIVE_MAX);
                    tasks.put(messages, self.visibility_timeout_seconds);
                }
                Err(Error::Cancelled) => return Ok(()),
                Err(error) if error.is_transient() || error.is_too_long() => {
                    if error.is_too_long() {
                        // One by one, so that what is too long does not hide the rest. It comes
                        // back by its visibility timeout, until it is redriven.
                        most = 1;
                    }
                    failures += 1;
                    let wait = self.patience.wait(failures, &mut client.random);
                    tracing::warn!(queue = self.queue_url, %error, ?wait, "cannot receive");
                    if self.stop.0.sleep(wait) {
                        return Ok(());
                    }
                }
                Err(source) => {
                    return Err(WorkerError::Receive { queue_url: self.queue_url.clone(), source });
                }
            }
        }
        Ok(())
    }
}

impl Stop {
    /// Ends the worker; returns at once.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Returns whether the worker is to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_cancelled()
    }
}
