//! The end of the interpreter. A thread that wants the GIL once it is being finalized is ended, or crashes the process. So
//! before that, tasks that call Python are stopped: none is polled any more when `atexit` has called the last function.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long the end of a poll is waited for: it needs the GIL for microseconds.
const POLLS_END: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_micros(100);

/// Lets tasks call Python until it is shut.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_shut: AtomicBool,
    /// Threads that are within.
    within: AtomicUsize,
}

impl Gate {
    /// Runs `call`, which calls Python, unless the gate is shut; returns what it returned.
    pub(crate) fn pass<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        // Both are ordered among all threads: either the one that shuts sees this, or this sees that it is shut.
        self.within.fetch_add(1, Ordering::SeqCst);
        let _leaves = Leaves(self);
        (!self.is_shut.load(Ordering::SeqCst)).then(call)
    }

    /// Lets nobody in any more, and waits until nobody is within.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + POLLS_END;
        while self.within.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

/// Leaves the gate when it is dropped, also in a panic.
struct Leaves<'a>(&'a Gate);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.within.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A future that is polled, and dropped when it is ready, only while the gate is open.
pub(crate) struct Gated<F> {
    pub(crate) gate: &'static Gate,
    pub(crate) future: Option<Pin<Box<F>>>,
}

impl<F: Future<Output = ()>> Future for Gated<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let gate = self.gate;
        let polled = gate.pass(|| {
            let Some(future) = &mut self.future else { return Poll::Ready(()) };
            let polled = future.as_mut().poll(cx);
            if polled.is_ready() {
                self.future = None;
            }
            polled
        });
        // Behind a shut gate it waits for the end of the process.
        polled.unwrap_or(Poll::Pending)
    }
}
