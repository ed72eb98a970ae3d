//! What the receiver of a message does with it: deletes it, keeps it longer, gives it back. And what
//! happens when it does nothing: the message is visible again when its time has come.

use quelea_model::limits::VISIBILITY_TIMEOUT_MS_MAX;
use quelea_model::{QueueId, Timestamp};
use quelea_store::{LoadRequest, LoadWhat, Ticket};

use crate::Broker;
use crate::error::NoSuchQueueId;
use crate::queue::Hidden;
use crate::read_ahead::Purpose;
use crate::receive::Receipt;

/// Hidden messages of one queue that become visible before the others have their turn.
const SHOWN_PER_TURN: usize = 8_192;

/// What became of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// Done. A message that is gone, or that somebody else has received since, is left as it is.
    Done,
    /// It is a receipt of another queue.
    Foreign,
    /// The message is visible, or somebody else has received it since.
    NotInFlight,
    /// The message is gone.
    Gone,
    /// Its time is over, and the queue is a FIFO queue.
    Expired,
    /// It would be hidden for more than 12 hours in all.
    TooLong,
    /// The message has to be read first; try again.
    Busy,
}

impl Broker {
    /// Deletes messages; an outcome for each receipt. Whoever is told of a deletion waits for the
    /// ticket.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn delete_messages(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receipts: &[Receipt],
    ) -> Result<(Vec<ReceiptOutcome>, Ticket), NoSuchQueueId> {
        if !self.queues.contains_key(&id) {
            return Err(NoSuchQueueId { queue: id });
        }
        self.show_due(id, now);
        let outcomes = receipts.iter().map(|receipt| self.delete_one(now, id, *receipt)).collect();
        self.touch(id);
        self.follow_up(id);
        Ok((outcomes, self.ticket_of(id)))
    }

    /// Stands for what was done to a queue, as its durability means it.
    fn ticket_of(&mut self, id: QueueId) -> Ticket {
        let durability = self.queues.get(&id).map(|queue| queue.rules.durability);
        durability.map_or(Ticket::NONE, |durability| self.ticket(durability))
    }

    fn delete_one(&mut self, now: Timestamp, id: QueueId, receipt: Receipt) -> ReceiptOutcome {
        let Some(queue) = self.queues.get_mut(&id) else {
            return ReceiptOutcome::Gone;
        };
        if receipt.queue != id {
            return ReceiptOutcome::Foreign;
        }
        let seq = receipt.seq;
        let message = match queue.hidden.get(seq) {
            Some(hidden) if receipt.receive_count >= hidden.message.entry.delivery_count => {
                let Some(hidden) = queue.hidden.remove(seq) else {
                    return ReceiptOutcome::Gone;
                };
                if let Some(groups) = &mut queue.groups {
                    groups.remove_hidden(seq, now.since_ms(hidden.received_at), now);
                }
                hidden.message
            }
            // Somebody else has it now.
            Some(_) if queue.settings().fifo.is_some() => return ReceiptOutcome::Expired,
            Some(_) => return ReceiptOutcome::Done,
            None => match queue.ready.get(seq).map(|held| held.entry.delivery_count) {
                Some(_) if queue.settings().fifo.is_some() => return ReceiptOutcome::Expired,
                Some(count) if receipt.receive_count >= count => {
                    queue.left(seq);
                    match queue.ready.remove(seq) {
                        Some(message) => message,
                        None => return ReceiptOutcome::Busy,
                    }
                }
                Some(_) => return ReceiptOutcome::Done,
                None => return self.delete_absent(id, receipt),
            },
        };
        queue.settle(&message.entry);
        queue.counters.ack += 1;
        self.counters.ack += 1;
        ReceiptOutcome::Done
    }

    /// The message is gone, or it lies in a range that is paged out: then it is read.
    fn delete_absent(&mut self, id: QueueId, receipt: Receipt) -> ReceiptOutcome {
        let Some(queue) = self.queues.get_mut(&id) else {
            return ReceiptOutcome::Gone;
        };
        let Some(range) = queue.ready.paged_range_of(receipt.seq).copied() else {
            return ReceiptOutcome::Done;
        };
        if !queue.read_ahead.is_under_way() {
            queue.read_ahead.begin(1);
            let token = self.loads.begin(Purpose::Ready(id));
            self.store.load(LoadRequest { token, queue: id, what: LoadWhat::PagedRange(range) });
        }
        ReceiptOutcome::Busy
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
        if !self.queues.contains_key(&id) {
            return Err(NoSuchQueueId { queue: id });
        }
        self.show_due(id, now);
        let outcomes = changes
            .iter()
            .map(|(receipt, timeout_ms)| self.change_one(now, id, *receipt, *timeout_ms))
            .collect();
        self.touch(id);
        self.follow_up(id);
        Ok((outcomes, self.ticket_of(id)))
    }

    fn change_one(
        &mut self,
        now: Timestamp,
        id: QueueId,
        receipt: Receipt,
        timeout_ms: u64,
    ) -> ReceiptOutcome {
        let Some(queue) = self.queues.get_mut(&id) else {
            return ReceiptOutcome::Gone;
        };
        if receipt.queue != id {
            return ReceiptOutcome::Foreign;
        }
        let is_fifo = queue.settings().fifo.is_some();
        let until = now.plus_ms(timeout_ms);
        let Some(hidden) = queue.hidden.get(receipt.seq) else {
            return match queue.ready.get(receipt.seq) {
                // Nobody has received it since: its receiver takes it up again.
                Some(held) if !is_fifo && held.entry.delivery_count > 0 => {
                    self.hide_again(id, receipt, until, now)
                }
                Some(_) => ReceiptOutcome::NotInFlight,
                None if queue.ready.paged_range_of(receipt.seq).is_some() => {
                    ReceiptOutcome::NotInFlight
                }
                None => ReceiptOutcome::Gone,
            };
        };
        // A standard queue takes any receipt of a message that is in flight.
        let is_stale = receipt.receive_count < hidden.message.entry.delivery_count;
        if hidden.is_delayed() || (is_fifo && is_stale) {
            return ReceiptOutcome::NotInFlight;
        }
        if until.since_ms(hidden.received_at) > VISIBILITY_TIMEOUT_MS_MAX {
            return ReceiptOutcome::TooLong;
        }
        if let Some(hidden) = queue.hidden.set_visible_at(receipt.seq, until) {
            let entry = &hidden.message.entry;
            if entry.is_durable() && entry.is_stored() {
                self.store.append_visibility(id, &hidden.visibility());
            }
        }
        if timeout_ms == 0 {
            self.show_due(id, now);
        }
        ReceiptOutcome::Done
    }

    /// Hides a message that has become visible, for the one who received it last.
    fn hide_again(
        &mut self,
        id: QueueId,
        receipt: Receipt,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> ReceiptOutcome {
        let Some(queue) = self.queues.get_mut(&id) else {
            return ReceiptOutcome::Gone;
        };
        let Some(mut message) = queue.ready.remove(receipt.seq) else {
            return ReceiptOutcome::Busy;
        };
        if message.entry.is_stored() {
            message.body = None;
        }
        self.put_away(id, message, visible_at, now);
        self.show_due(id, now);
        ReceiptOutcome::Done
    }

    /// Undoes receptions of which nobody heard: the messages are visible again, and were not
    /// received that time.
    pub fn give_back(&mut self, now: Timestamp, receipts: &[Receipt]) {
        for receipt in receipts {
            let Some(queue) = self.queues.get_mut(&receipt.queue) else {
                continue;
            };
            let count = queue.hidden.get(receipt.seq).map(|h| h.message.entry.delivery_count);
            if count != Some(receipt.receive_count) {
                continue;
            }
            if let Some(mut hidden) = queue.hidden.remove(receipt.seq) {
                hidden.visible_at = now;
                let entry = &mut hidden.message.entry;
                entry.delivery_count = entry.delivery_count.saturating_sub(1);
                if entry.is_durable() && entry.is_stored() {
                    self.store.append_visibility(receipt.queue, &hidden.visibility());
                }
                self.show(receipt.queue, hidden);
            }
            self.touch(receipt.queue);
            self.follow_up(receipt.queue);
        }
    }

    /// Makes visible what is due.
    pub(crate) fn show_due(&mut self, id: QueueId, now: Timestamp) {
        for _ in 0..SHOWN_PER_TURN {
            let Some(queue) = self.queues.get_mut(&id) else {
                return;
            };
            match queue.hidden.pop_due(now) {
                Some(hidden) => self.show(id, hidden),
                None => return,
            }
        }
        self.touch(id);
    }

    /// A hidden message goes to its place among the visible ones: that of its publication.
    fn show(&mut self, id: QueueId, hidden: Hidden) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let visibility = hidden.visibility();
        let Hidden { message, first_received_at, .. } = hidden;
        let entry = &message.entry;
        if entry.delivery_count > 0 {
            queue.hidden.remember(entry.seq, first_received_at);
        }
        if let Some(groups) = &mut queue.groups {
            groups.show(entry.seq);
        }
        if self.store.checkpoint_under_way() && entry.is_durable() && entry.is_stored() {
            self.store.append_requeue(id, entry, message.expires_at);
            if visibility.receive_count > 0 {
                self.store.append_visibility(id, &visibility);
            }
        }
        queue.ready.insert(message);
    }
}
