//! Whether a front-end's process runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Whether a front-end's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Runs,
    Stopped,
    Killed,
}

/// What a process does, it does while it runs: it asks for nothing else, and takes in no answer. (Those who wait at
/// tokio's own `watch` go on in an order of its choice, which no seed repeats.)
#[derive(Clone)]
pub(super) struct Gate(Arc<(Mutex<Process>, Notify)>);

impl Gate {
    pub(super) fn open() -> Self {
        Self(Arc::new((Mutex::new(Process::Runs), Notify::new())))
    }

    pub(super) async fn pass(&self) {
        loop {
            let changed = self.0.1.notified();
            if self.process() == Process::Runs {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn process(&self) -> Process {
        *lock(&self.0.0)
    }

    /// One that was killed stays so.
    pub(super) fn set(&self, process: Process) {
        let mut now = lock(&self.0.0);
        if *now != Process::Killed {
            *now = process;
        }
        drop(now);
        self.0.1.notify_waiters();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
