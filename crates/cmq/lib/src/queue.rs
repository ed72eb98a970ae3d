//! A mailbox's messages.

use std::sync::Arc;
use std::time::Duration;

use quelea_cmq_proto::endpoint::DeliveryToken;
use quelea_cmq_proto::{Delivery, Mailbox, MailboxOptions, Time};

use crate::endpoint::{Endpoint, MailboxError};
use crate::message::{Message, MessageRef, Receipt};
use crate::ring::Ring;
use crate::state::Sink;
use crate::until::Until;
use crate::wait_future::WaitFuture;

/// An open mailbox of an [`Endpoint`]. Any number of threads and tasks may pop; each message goes to
/// one of them. Dropping it closes the mailbox.
#[derive(Debug)]
pub struct Queue {
    endpoint: Endpoint,
    mailbox: Option<Mailbox>,
    ring: Arc<Ring>,
}

impl Endpoint {
    /// Opens the mailbox `mailbox`: what peers push to (this address, `mailbox`) comes out there.
    ///
    /// # Errors
    /// [`MailboxError`]: open already, or too many.
    pub fn queue(&self, mailbox: u64, options: MailboxOptions) -> Result<Queue, MailboxError> {
        let mailbox = Mailbox(mailbox);
        let mut state = self.driver().lock();
        state.proto.open_mailbox(mailbox, options)?;
        let ring = Arc::new(Ring::default());
        state.open_sink(Some(mailbox), Sink::Ring(Arc::clone(&ring)));
        drop(state);
        Ok(Queue::new(self.clone(), Some(mailbox), ring))
    }

    /// Opens all mailboxes that are not opened by themselves, as one queue; messages say which one
    /// they were pushed to.
    ///
    /// # Errors
    /// [`MailboxError`]: open already.
    pub fn queue_of_others(&self, options: MailboxOptions) -> Result<Queue, MailboxError> {
        let mut state = self.driver().lock();
        if state.has_other() {
            return Err(MailboxError::OthersOpen);
        }
        state.proto.open_other_mailboxes(options)?;
        let ring = Arc::new(Ring::default());
        state.open_sink(None, Sink::Ring(Arc::clone(&ring)));
        drop(state);
        Ok(Queue::new(self.clone(), None, ring))
    }
}

impl Queue {
    pub(crate) const fn new(endpoint: Endpoint, mailbox: Option<Mailbox>, ring: Arc<Ring>) -> Self {
        Self { endpoint, mailbox, ring }
    }

    /// Takes the next message if one is here: the paper's `cwPop`.
    #[must_use]
    pub fn try_pop(&self) -> Option<Message> {
        let here = self.pop_here();
        if here.is_some() {
            return here;
        }
        self.endpoint.driver().poll_recv();
        self.pop_here()
    }

    /// Waits for the next message; none once the queue is closed and empty.
    #[must_use]
    pub fn pop(&self) -> Option<Message> {
        self.pop_until(None)
    }

    /// Waits for the next message at most so long.
    #[must_use]
    pub fn pop_timeout(&self, within: Duration) -> Option<Message> {
        let here = self.pop_here();
        if here.is_some() {
            return here;
        }
        self.pop_until(Some(self.endpoint.driver().clock.after(within)))
    }

    fn pop_until(&self, deadline: Option<Time>) -> Option<Message> {
        let until = Until::Ring(Arc::clone(&self.ring));
        let mut here = self.pop_here();
        while here.is_none() {
            // Popped under the lock that showed it, which returns its credit too.
            let waited = self.endpoint.driver().wait_then(&until, deadline, |state, now| {
                here = self.ring.pop(|mut done| {
                    for token in done.drain(..) {
                        state.proto.popped(token, now);
                    }
                    self.ring.reuse(done);
                });
                0
            });
            if here.is_none() && (!waited || self.ring.is_over()) {
                return None;
            }
        }
        here
    }

    /// Waits until something is here. Returns false if there will be nothing in that time, or ever.
    fn wait(&self, deadline: Option<Time>) -> bool {
        let until = Until::Ring(Arc::clone(&self.ring));
        self.endpoint.driver().wait(&until, deadline) && !self.ring.is_over()
    }

    #[inline]
    fn pop_here(&self) -> Option<Message> {
        self.ring.pop(|done| self.return_credit(done))
    }

    #[inline(never)]
    fn return_credit(&self, mut done: Vec<DeliveryToken>) {
        self.endpoint.driver().return_credit(&mut done);
        self.ring.reuse(done);
    }

    /// Waits for the next message at most so long, then gives it and those behind it that are here,
    /// at most `max`, to `each`, without a copy or an allocation per message; returns how many.
    /// `each` runs under no lock, so it may push, pop and acknowledge.
    pub fn pop_batch(
        &self,
        max: usize,
        within: Duration,
        mut each: impl FnMut(MessageRef<'_>),
    ) -> usize {
        let mut deadline = None;
        loop {
            let popped = self.pop_deliveries(max, &mut each);
            if popped > 0 || max == 0 {
                return popped;
            }
            let deadline =
                *deadline.get_or_insert_with(|| self.endpoint.driver().clock.after(within));
            if !self.wait(Some(deadline)) {
                return 0;
            }
        }
    }

    fn pop_deliveries(&self, max: usize, each: &mut impl FnMut(MessageRef<'_>)) -> usize {
        let mut popped = 0;
        while popped < max {
            let Some(delivery) = self.ring.take() else { break };
            let mut lent = Lent { queue: self, seen: 0, delivery: Some(delivery) };
            popped += lent.deliver(max - popped, each);
        }
        popped
    }

    /// Some of a delivery is left. Waiters did not see it while it was away.
    fn put_back(&self, delivery: Delivery) {
        self.ring.put_back(delivery);
        let driver = self.endpoint.driver();
        let mut state = driver.lock();
        state.wake_for_put_back(&self.ring);
        driver.release_and_transmit(state);
    }

    /// Waits for the next message, as a future of any runtime; none once the queue is closed and
    /// empty. Dropped before its end it has popped nothing.
    pub async fn pop_async(&self) -> Option<Message> {
        loop {
            if let Some(message) = self.pop_here() {
                return Some(message);
            }
            if self.ring.is_over() {
                return None;
            }
            WaitFuture::new(self.endpoint.driver(), Until::Ring(Arc::clone(&self.ring)), None)
                .await;
        }
    }

    /// For mailboxes with `acknowledged_by_application`: this message, and all before it of the same
    /// sender, are safe; the sender may forget them. Acknowledgements are for whole datagrams: that of
    /// a message in the middle of one goes out with its last message's.
    pub fn acknowledge(&self, receipt: Receipt) {
        if !receipt.is_last {
            return;
        }
        let driver = self.endpoint.driver();
        driver.change(|state, now| state.proto.acknowledge(receipt.token, now));
    }

    /// Closes the mailbox: pops of other threads end once it is empty, and what is pushed to it is
    /// refused.
    pub fn close(&self) {
        let driver = self.endpoint.driver();
        driver.return_credit(&mut self.ring.take_done());
        driver.flush_acknowledgements();
        let mut state = driver.lock();
        if !self.ring.is_closed() {
            match self.mailbox {
                Some(mailbox) => state.proto.close_mailbox(mailbox),
                None => state.proto.close_other_mailboxes(),
            }
            state.close_sink(self.mailbox);
        }
        driver.release_and_transmit(state);
    }

    /// Returns whether the queue, or its endpoint, was closed: what is still here can be popped,
    /// nothing more will come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// Returns the mailbox's number at this endpoint's address; none if it is the queue of all
    /// others.
    #[must_use]
    pub const fn mailbox(&self) -> Option<Mailbox> {
        self.mailbox
    }

    /// Returns the endpoint that it belongs to.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
    }
}

/// A delivery that was taken out of the ring. What was not given of it, since there was enough or the
/// function panicked, goes back.
struct Lent<'a> {
    queue: &'a Queue,
    seen: usize,
    delivery: Option<Delivery>,
}

impl Lent<'_> {
    /// Passes at most `max` messages to `each`; returns how many.
    fn deliver(&mut self, max: usize, each: &mut impl FnMut(MessageRef<'_>)) -> usize {
        let Some(delivery) = &self.delivery else { return 0 };
        let count = delivery.count as usize;
        for bytes in delivery.messages().take(max) {
            self.seen += 1;
            each(lend(delivery, bytes, self.seen == count));
        }
        self.seen
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(mut delivery) = self.delivery.take() else { return };
        if self.seen < delivery.count as usize {
            let there = (0..self.seen).all(|_| delivery.next_message().is_some());
            debug_assert!(there, "they were given before");
            self.queue.put_back(delivery);
        } else if let Some(done) = self.queue.ring.finish(delivery.token) {
            self.queue.return_credit(done);
        }
    }
}

const fn lend<'a>(delivery: &Delivery, bytes: &'a [u8], is_last: bool) -> MessageRef<'a> {
    MessageRef {
        from: delivery.from,
        session: delivery.session,
        mailbox: delivery.mailbox,
        mode: delivery.mode,
        bytes,
        receipt: Receipt { token: delivery.token, is_last },
    }
}
