//! What SQS asks: sending straight to a queue, receiving for a time, and what becomes of a receipt.

use quelea_model::{QueueId, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use crate::error::{NoSuchQueueId, ReceiveError, SendError};
use crate::ids::ReceiveId;
use crate::messaging::Messaging;
use crate::reply::{Receipt, ReceiptOutcome, SentMessage};
use crate::request::{Receive, Send};

impl Broker {
    /// Sends messages to a queue, in order; an outcome for each. Who reports that they were sent
    /// waits for the ticket.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn send(
        &mut self,
        now: Timestamp,
        id: QueueId,
        messages: Vec<Send>,
    ) -> Result<(Vec<Result<SentMessage, SendError>>, Ticket), NoSuchQueueId> {
        let sent = self.messaging.send(now, id, messages);
        self.work.spend(self.messaging.take_steps());
        sent
    }

    /// Receives messages. The answer is an [`Effect::Received`](crate::Effect::Received) with the
    /// same id: at once if there are messages, else when there are some, or when it has waited for
    /// as long as it may.
    ///
    /// # Errors
    /// [`ReceiveError`]; there is no answer then.
    pub fn receive(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receive: Receive,
    ) -> Result<ReceiveId, ReceiveError> {
        let received = self.messaging.receive(now, id, receive);
        self.work.spend(self.messaging.take_steps());
        received
    }

    /// Ends a receive without an answer. Nothing happens if it has been answered.
    pub fn cancel_receive(&mut self, id: QueueId, receive: ReceiveId) {
        self.messaging.cancel_receive(id, receive);
    }

    /// Deletes messages; an outcome for each receipt. Who reports a deletion waits for the ticket.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn delete_messages(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receipts: &[Receipt],
    ) -> Result<(Vec<ReceiptOutcome>, Ticket), NoSuchQueueId> {
        self.settle_receipts(now, id, receipts, |messaging, receipt| {
            let Messaging { queues, log, counters, .. } = messaging;
            queues.delete_received(log, counters, id, *receipt, now)
        })
    }

    /// Sets for how long from now others will not see messages; 0: they see them at once.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn change_visibility(
        &mut self,
        now: Timestamp,
        id: QueueId,
        changes: &[(Receipt, u64)],
    ) -> Result<(Vec<ReceiptOutcome>, Ticket), NoSuchQueueId> {
        self.settle_receipts(now, id, changes, |messaging, change| {
            messaging.queues.change_visibility(&mut messaging.log, id, *change, now)
        })
    }

    /// Undoes receives of which nobody heard: the messages are visible again, and were not
    /// received that time.
    pub fn undo_receives(&mut self, now: Timestamp, receipts: &[Receipt]) {
        let Messaging { queues, log, .. } = &mut self.messaging;
        queues.undo_receives(log, receipts, now);
    }

    /// Settles each receipt of a queue by `settle`. Returns the outcomes and a ticket for all.
    fn settle_receipts<R>(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receipts: &[R],
        mut settle: impl FnMut(&mut Messaging, &R) -> ReceiptOutcome,
    ) -> Result<(Vec<ReceiptOutcome>, Ticket), NoSuchQueueId> {
        let messaging = &mut self.messaging;
        let queue = messaging.queues.get(id).ok_or(NoSuchQueueId { queue: id })?;
        let durability = queue.rules.durability;
        messaging.queues.make_due_visible(&mut messaging.log, id, now);
        let outcomes = receipts.iter().map(|receipt| settle(messaging, receipt)).collect();
        messaging.queues.wake(id);
        messaging.queues.reschedule(id);
        Ok((outcomes, messaging.ticket(durability)))
    }
}
