//! Who waits, and for what.

use std::sync::Arc;
use std::task::Waker;

use quelea_cmq_proto::DestinationId;

use crate::replies::Slot;
use crate::ring::Ring;
use crate::sync::thread::Thread;

/// What a caller waits for.
#[derive(Clone, Debug)]
pub(crate) enum Until {
    /// A delivery in this ring, or its end.
    Ring(Arc<Ring>),
    /// The answer to a request, or the end of hoping for one.
    Reply(Arc<Slot>),
    /// Room for a push of so many bytes.
    Writable(DestinationId, usize),
    /// All that was pushed to it has left, or is acknowledged.
    Settled(DestinationId),
    /// The same, for all destinations.
    AllSettled,
    /// An event.
    Event,
    /// More addresses are proven than so many.
    Proven(u64),
}

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
