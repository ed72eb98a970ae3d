//! The store of outstanding requests (paper, "Request - Response"): an answer goes to the one who
//! asked, at the moment at which it is read from the socket.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use quelea_cmq_proto::Delivery;

use crate::call_frame::Frame;
use crate::sync::{Mutex, MutexGuard};
use crate::waiter::Waiter;

/// What a requester's mailbox leads to.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    outstanding: HashMap<u64, Arc<Slot>>,
    closed: bool,
    /// Answers that nobody waited for any more: late, or to a request that was resent.
    unwanted: u64,
}

/// A queue that gets one message.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    inside: Mutex<SlotInside>,
}

#[derive(Debug, Default)]
struct SlotInside {
    answer: Option<Bytes>,
    /// Nothing will come.
    closed: bool,
    waiter: Option<Waiter>,
}

impl Replies {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Whole entries go in and out; a panic leaves none half.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits the answer to the request `id` in `slot`.
    pub(crate) fn expect(&self, id: u64, slot: &Arc<Slot>) {
        let mut inside = self.lock();
        if inside.closed {
            drop(slot.close());
        } else {
            inside.outstanding.insert(id, Arc::clone(slot));
        }
    }

    /// Does not await it any more.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().outstanding.remove(&id);
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.lock().outstanding.len()
    }

    pub(crate) fn unwanted(&self) -> u64 {
        self.lock().unwanted
    }

    /// Takes a delivery; gives `wake` whom to wake for it.
    pub(crate) fn put(&self, mut delivery: Delivery, mut wake: impl FnMut(Waiter)) {
        let mut inside = self.lock();
        while let Some(message) = delivery.next_message() {
            let slot = match Frame::read(&message) {
                Some(Frame::Answer { id }) => inside.outstanding.remove(&id),
                _ => None,
            };
            match slot {
                Some(slot) => {
                    slot.fill(message.slice(Frame::ANSWER_BYTES..)).map(&mut wake);
                }
                None => inside.unwanted += 1,
            }
        }
    }

    /// Closes them: nothing will come. Returns all who wait.
    pub(crate) fn close(&self) -> VecDeque<Waiter> {
        let mut inside = self.lock();
        inside.closed = true;
        inside.outstanding.drain().filter_map(|(_, slot)| slot.close()).collect()
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, SlotInside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, answer: Bytes) -> Option<Waiter> {
        let mut inside = self.lock();
        inside.answer = Some(answer);
        inside.waiter.take()
    }

    fn close(&self) -> Option<Waiter> {
        let mut inside = self.lock();
        inside.closed = true;
        inside.waiter.take()
    }

    /// Takes the answer, if it is here.
    pub(crate) fn take(&self) -> Option<Bytes> {
        self.lock().answer.take()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn is_ready(&self) -> bool {
        let inside = self.lock();
        inside.closed || inside.answer.is_some()
    }

    /// Its owner waits; there is only one. With the driver's state locked.
    pub(crate) fn set_waiter(&self, waiter: Waiter) {
        self.lock().waiter = Some(waiter);
    }

    /// Removes the waiter: it does not wait any more. Returns whether it had not been woken.
    pub(crate) fn remove_waiter(&self) -> bool {
        self.lock().waiter.take().is_some()
    }
}
