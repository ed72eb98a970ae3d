//! What was delivered to a mailbox and not yet popped: whole datagrams, out of which messages are cut
//! one after the other.

use std::collections::VecDeque;
use std::sync::PoisonError;

use quelea_cmq_proto::Delivery;
use quelea_cmq_proto::endpoint::DeliveryToken;

use crate::message::{Message, Receipt};
use crate::sync::{Mutex, MutexGuard};
use crate::waiter::Waiter;

/// Deliveries that are used up, before their credit is returned under one lock.
const DONE_MAX: usize = 64;

/// A mailbox's ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    deliveries: VecDeque<Delivery>,
    /// Used up; to be reported to the state machine.
    done: Vec<DeliveryToken>,
    /// Waiters for a delivery. Changed only while the driver's state is locked too, so that nobody
    /// falls asleep beside one.
    waiters: VecDeque<Waiter>,
    closed: bool,
}

impl Ring {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        // A thread that panicked inside left whole deliveries: there is no code of others in there.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a delivery; returns whom to wake for it.
    pub(crate) fn put(&self, delivery: Delivery) -> Option<Waiter> {
        let mut inside = self.lock();
        inside.deliveries.push_back(delivery);
        inside.waiters.pop_front()
    }

    /// Takes the next message. Now and then there is credit to return to the senders, once the ring
    /// is free again.
    #[inline]
    pub(crate) fn pop(&self, return_credit: impl FnOnce(Vec<DeliveryToken>)) -> Option<Message> {
        let mut inside = self.lock();
        let message = inside.next_message();
        let done = inside.done_now();
        drop(inside);
        if let Some(done) = done {
            return_credit(done);
        }
        message
    }

    /// Takes the next delivery, or what is left of it, for [`Ring::finish`] or [`Ring::put_back`].
    pub(crate) fn take(&self) -> Option<Delivery> {
        self.lock().deliveries.pop_front()
    }

    /// Takes down that the delivery was used up; returns those whose credit is to be returned.
    pub(crate) fn finish(&self, token: DeliveryToken) -> Option<Vec<DeliveryToken>> {
        let mut inside = self.lock();
        inside.done.push(token);
        inside.done_now()
    }

    /// Takes what is used up, though more like it may follow soon.
    pub(crate) fn take_done(&self) -> Vec<DeliveryToken> {
        std::mem::take(&mut self.lock().done)
    }

    /// Some of it is left.
    pub(crate) fn put_back(&self, delivery: Delivery) {
        self.lock().deliveries.push_front(delivery);
    }

    /// Takes back the list of [`pop`](Self::pop), for the next ones.
    pub(crate) fn reuse(&self, list: Vec<DeliveryToken>) {
        debug_assert!(list.is_empty(), "their credit was returned");
        let mut inside = self.lock();
        if inside.done.capacity() < list.capacity() && inside.done.is_empty() {
            inside.done = list;
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        let inside = self.lock();
        inside.closed || !inside.deliveries.is_empty()
    }

    /// Returns whether it is closed, and nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        let inside = self.lock();
        inside.closed && inside.deliveries.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes it: nothing comes any more. Returns all who wait for it.
    pub(crate) fn close(&self) -> VecDeque<Waiter> {
        let mut inside = self.lock();
        inside.closed = true;
        std::mem::take(&mut inside.waiters)
    }

    /// `waiter` waits for a delivery. With the driver's state locked.
    pub(crate) fn add_waiter(&self, waiter: Waiter) {
        self.lock().waiters.push_back(waiter);
    }

    /// Removes a waiter, woken or not: it does not wait any more. Returns whether it had not been
    /// woken. With the driver's state locked.
    pub(crate) fn remove_waiter(&self, number: u64) -> bool {
        let mut inside = self.lock();
        let before = inside.waiters.len();
        inside.waiters.retain(|waiter| waiter.number != number);
        inside.waiters.len() < before
    }

    /// Takes out another one to wake, if there are more than `messages` here. With the driver's
    /// state locked.
    pub(crate) fn next_waiter(&self, messages: u32) -> Option<Waiter> {
        let mut inside = self.lock();
        let here: u32 = inside.deliveries.iter().take(2).map(|delivery| delivery.count).sum();
        if here > messages { inside.waiters.pop_front() } else { None }
    }
}

impl Inside {
    #[inline]
    fn next_message(&mut self) -> Option<Message> {
        loop {
            let delivery = self.deliveries.front_mut()?;
            let bytes = delivery.next_message();
            let is_last = delivery.count == 0;
            let message = bytes.map(|bytes| Message {
                from: delivery.from,
                session: delivery.session,
                mailbox: delivery.mailbox,
                mode: delivery.mode,
                bytes,
                receipt: Receipt { token: delivery.token, is_last },
            });
            if is_last || message.is_none() {
                let token = delivery.token;
                self.deliveries.pop_front();
                self.done.push(token);
            }
            if message.is_some() {
                return message;
            }
        }
    }

    /// Takes what is used up, once that is worth locking the state or nothing else is here.
    #[inline]
    fn done_now(&mut self) -> Option<Vec<DeliveryToken>> {
        let full = self.done.len() >= DONE_MAX || self.deliveries.is_empty();
        (full && !self.done.is_empty()).then(|| std::mem::take(&mut self.done))
    }
}
