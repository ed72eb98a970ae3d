//! Who waits, and for what.

use std::sync::Arc;
use std::task::Waker;
use std::thread::Thread;

use quelea_cmq_proto::DestinationId;

use crate::replies::Slot;
use crate::ring::Ring;

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

/// One who waits, by a number that nobody else has.
#[derive(Debug)]
pub(crate) struct Sleeper {
    pub(crate) number: u64,
    pub(crate) who: Who,
}

/// How it is woken.
#[derive(Clone, Debug)]
pub(crate) enum Who {
    /// A thread that is parked.
    Thread(Thread),
    /// A future.
    Task(Waker),
}

impl Sleeper {
    /// Wakes it. Not under a lock: a task's executor may do anything.
    pub(crate) fn wake(self) {
        match self.who {
            Who::Thread(thread) => thread.unpark(),
            Who::Task(waker) => waker.wake(),
        }
    }
}
