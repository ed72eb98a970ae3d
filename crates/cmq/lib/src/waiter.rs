//! A waiting thread or task, and how it is woken.

use std::task::Waker;

use crate::sync::thread::Thread;

/// A thread or a future that waits, by a number that no other has.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) number: u64,
    pub(crate) handle: Handle,
}

/// How it is woken.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    /// A thread that is parked.
    Thread(Thread),
    /// A future.
    Task(Waker),
}

impl Waiter {
    /// Wakes it. Not under a lock: a task's executor may do anything.
    pub(crate) fn wake(self) {
        match self.handle {
            Handle::Thread(thread) => thread.unpark(),
            Handle::Task(waker) => waker.wake(),
        }
    }
}
