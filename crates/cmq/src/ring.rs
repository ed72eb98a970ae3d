//! What was delivered to a mailbox and not yet popped: whole datagrams, out of which messages are cut
//! one after the other.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quelea_cmq_proto::Delivery;
use quelea_cmq_proto::endpoint::DeliveryToken;

use crate::message::{Message, Receipt};
use crate::waiting::Sleeper;

/// Deliveries that are used up, before their room is given back under one lock.
const DONE_MAX: usize = 64;

/// A mailbox's ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    deliveries: VecDeque<Delivery>,
    /// Used up; the state machine has to hear of them.
    done: Vec<DeliveryToken>,
    /// Who waits for a delivery. Changed only while the driver's state is locked too, so that nobody
    /// falls asleep beside one.
    sleepers: VecDeque<Sleeper>,
    closed: bool,
}

/// What a look into the ring gave.
pub(crate) struct Taken<T> {
    /// What was there.
    pub(crate) value: Option<T>,
    /// Room to give back to the senders; often empty.
    pub(crate) done: Vec<DeliveryToken>,
}

impl Ring {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        // A thread that panicked inside left whole deliveries: there is no code of others in there.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a delivery; gives whom to wake for it.
    pub(crate) fn put(&self, delivery: Delivery) -> Option<Sleeper> {
        let mut inside = self.lock();
        inside.deliveries.push_back(delivery);
        inside.sleepers.pop_front()
    }

    /// The next message.
    pub(crate) fn pop(&self) -> Taken<Message> {
        let mut inside = self.lock();
        let value = inside.next_message();
        inside.taken(value)
    }

    /// The next delivery, or what is left of it, for [`Ring::finish`] or [`Ring::put_back`].
    pub(crate) fn take(&self) -> Option<Delivery> {
        self.lock().deliveries.pop_front()
    }

    /// The delivery was used up.
    pub(crate) fn finish(&self, token: DeliveryToken) -> Taken<()> {
        let mut inside = self.lock();
        inside.done.push(token);
        inside.taken(None)
    }

    /// Some of it is left.
    pub(crate) fn put_back(&self, delivery: Delivery) {
        self.lock().deliveries.push_front(delivery);
    }

    /// Gives back the list that was taken, for the next ones.
    pub(crate) fn keep(&self, list: Vec<DeliveryToken>) {
        debug_assert!(list.is_empty(), "the tokens were given back");
        let mut inside = self.lock();
        if inside.done.capacity() < list.capacity() && inside.done.is_empty() {
            inside.done = list;
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        let inside = self.lock();
        inside.closed || !inside.deliveries.is_empty()
    }

    /// Closed, and nothing left.
    pub(crate) fn is_over(&self) -> bool {
        let inside = self.lock();
        inside.closed && inside.deliveries.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Nothing comes any more; gives all who wait for it.
    pub(crate) fn close(&self) -> VecDeque<Sleeper> {
        let mut inside = self.lock();
        inside.closed = true;
        std::mem::take(&mut inside.sleepers)
    }

    /// Somebody waits. With the driver's state locked.
    pub(crate) fn sleep(&self, sleeper: Sleeper) {
        self.lock().sleepers.push_back(sleeper);
    }

    /// Somebody does not wait any more, woken or not; says whether it was still asleep. With the
    /// driver's state locked.
    pub(crate) fn leave(&self, number: u64) -> bool {
        let mut inside = self.lock();
        let before = inside.sleepers.len();
        inside.sleepers.retain(|sleeper| sleeper.number != number);
        inside.sleepers.len() < before
    }

    /// Another one to wake, if there are more than `messages` here. With the driver's state locked.
    pub(crate) fn next_sleeper(&self, messages: u32) -> Option<Sleeper> {
        let mut inside = self.lock();
        let here: u32 = inside.deliveries.iter().take(2).map(|delivery| delivery.count).sum();
        if here > messages { inside.sleepers.pop_front() } else { None }
    }
}

impl Inside {
    fn next_message(&mut self) -> Option<Message> {
        loop {
            let delivery = self.deliveries.front_mut()?;
            let bytes = delivery.next_message();
            let is_last = delivery.count == 0;
            let Delivery { from, session, mailbox, mode, token, .. } = *delivery;
            if is_last || bytes.is_none() {
                self.deliveries.pop_front();
                self.done.push(token);
            }
            if let Some(bytes) = bytes {
                let receipt = Receipt { token, is_last };
                return Some(Message { from, session, mailbox, mode, bytes, receipt });
            }
        }
    }

    fn taken<T>(&mut self, value: Option<T>) -> Taken<T> {
        let full = self.done.len() >= DONE_MAX || self.deliveries.is_empty();
        let done = if full { std::mem::take(&mut self.done) } else { Vec::new() };
        Taken { value, done }
    }
}
