//! Messages of a queue that become visible and invisible: when their time has come, and when their
//! receiver deletes them, keeps them longer or gives them back.

use quelea_model::limits::VISIBILITY_TIMEOUT_MS_MAX;
use quelea_model::{QueueId, Timestamp};
use quelea_store::QueuedMessage;

use super::Queues;
use super::queue::InvisibleMessage;
use crate::log::Log;
use crate::reply::{Receipt, ReceiptOutcome};
use crate::report::MessageCounters;

/// Invisible messages of one queue that become visible before the others have their turn.
const SHOWN_PER_TURN: usize = 8_192;

impl Queues {
    /// Makes visible what is due.
    pub(crate) fn make_due_visible(&mut self, log: &mut Log, id: QueueId, now: Timestamp) {
        for _ in 0..SHOWN_PER_TURN {
            let Some(queue) = self.get_mut(id) else {
                return;
            };
            match queue.invisible.pop_due(now) {
                Some(message) => {
                    if let Some(groups) = &mut queue.groups {
                        groups.mark_returned(message.message.entry.seq);
                    }
                    self.make_visible(log, id, message);
                }
                None => return,
            }
        }
        self.wake(id);
    }

    /// An invisible message goes to its place among the visible ones: that of its publication.
    fn make_visible(&mut self, log: &mut Log, id: QueueId, invisible: InvisibleMessage) {
        let Some(queue) = self.get_mut(id) else {
            return;
        };
        let visibility = invisible.visibility();
        let InvisibleMessage { message, first_received_at, .. } = invisible;
        let entry = &message.entry;
        if entry.delivery_count > 0 {
            queue.invisible.remember(entry.seq, first_received_at);
        }
        if let Some(groups) = &mut queue.groups {
            groups.mark_visible(entry.seq);
        }
        if log.note_requeue(id, &message) && visibility.receive_count > 0 {
            log.store.append_visibility(id, &visibility);
        }
        queue.ready.insert(message);
    }

    /// Puts a message that was visible among the invisible ones, and notes it. Returns when it was
    /// first received.
    pub(crate) fn make_invisible(
        &mut self,
        log: &mut Log,
        id: QueueId,
        mut message: QueuedMessage,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        log.spill_invisible(id, &mut message, now);
        let queue = self.get_mut(id)?;
        let entry = &message.entry;
        let seq = entry.seq;
        let is_logged = entry.is_durable() && entry.is_stored();
        let first_received_at = queue.invisible.received_before(seq).unwrap_or(now);
        let invisible =
            InvisibleMessage { message, visible_at, received_at: now, first_received_at };
        if is_logged {
            log.store.append_visibility(id, &invisible.visibility());
        }
        queue.invisible.insert(invisible);
        if let Some(groups) = &mut queue.groups {
            groups.mark_in_flight(seq);
        }
        Some(first_received_at)
    }

    /// Deletes a message that was received.
    pub(crate) fn delete_received(
        &mut self,
        log: &mut Log,
        counters: &mut MessageCounters,
        id: QueueId,
        receipt: Receipt,
        now: Timestamp,
    ) -> ReceiptOutcome {
        let Some(queue) = self.get_mut(id) else {
            return ReceiptOutcome::Gone;
        };
        if receipt.queue != id {
            return ReceiptOutcome::Foreign;
        }
        let seq = receipt.seq;
        let message = match queue.invisible.get(seq) {
            Some(invisible) if receipt.receive_count >= invisible.message.entry.delivery_count => {
                let Some(invisible) = queue.invisible.remove(seq) else {
                    return ReceiptOutcome::Gone;
                };
                if let Some(groups) = &mut queue.groups {
                    groups.remove_in_flight(seq, now.since_ms(invisible.received_at), now);
                }
                invisible.message
            }
            // Somebody else has it now.
            Some(_) if queue.settings().fifo.is_some() => return ReceiptOutcome::Expired,
            Some(_) => return ReceiptOutcome::Done,
            None => match queue.ready.get(seq).map(|held| held.entry.delivery_count) {
                Some(_) if queue.settings().fifo.is_some() => return ReceiptOutcome::Expired,
                Some(count) if receipt.receive_count >= count => {
                    queue.forget_visible(seq);
                    match queue.ready.remove(seq) {
                        Some(message) => message,
                        None => return ReceiptOutcome::Busy,
                    }
                }
                Some(_) => return ReceiptOutcome::Done,
                None => {
                    // It is gone, or it lies in a range that is paged out: then it is read.
                    let is_read = self.read_range_of(log, id, seq);
                    return if is_read { ReceiptOutcome::Busy } else { ReceiptOutcome::Done };
                }
            },
        };
        queue.settle(&message.entry);
        queue.counters.ack += 1;
        counters.ack += 1;
        ReceiptOutcome::Done
    }

    /// Sets for how long from now others will not see a message that was received; 0: they see it at
    /// once.
    pub(crate) fn change_visibility(
        &mut self,
        log: &mut Log,
        id: QueueId,
        (receipt, timeout_ms): (Receipt, u64),
        now: Timestamp,
    ) -> ReceiptOutcome {
        let Some(queue) = self.get_mut(id) else {
            return ReceiptOutcome::Gone;
        };
        if receipt.queue != id {
            return ReceiptOutcome::Foreign;
        }
        let is_fifo = queue.settings().fifo.is_some();
        let until = now.plus_ms(timeout_ms);
        let Some(invisible) = queue.invisible.get(receipt.seq) else {
            return match queue.ready.get(receipt.seq) {
                // Nobody has received it since: its receiver takes it up again.
                Some(held) if !is_fifo && held.entry.delivery_count > 0 => {
                    self.make_invisible_again(log, id, receipt, until, now)
                }
                Some(_) => ReceiptOutcome::NotInFlight,
                None if queue.ready.paged_range_of(receipt.seq).is_some() => {
                    ReceiptOutcome::NotInFlight
                }
                None => ReceiptOutcome::Gone,
            };
        };
        // A standard queue takes any receipt of a message that is in flight.
        let is_stale = receipt.receive_count < invisible.message.entry.delivery_count;
        if invisible.is_delayed() || (is_fifo && is_stale) {
            return ReceiptOutcome::NotInFlight;
        }
        if until.since_ms(invisible.received_at) > VISIBILITY_TIMEOUT_MS_MAX {
            return ReceiptOutcome::TooLong;
        }
        if let Some(invisible) = queue.invisible.set_visible_at(receipt.seq, until) {
            let entry = &invisible.message.entry;
            if entry.is_durable() && entry.is_stored() {
                log.store.append_visibility(id, &invisible.visibility());
            }
        }
        if timeout_ms == 0 {
            self.make_due_visible(log, id, now);
        }
        ReceiptOutcome::Done
    }

    /// Makes a message invisible again that has become visible, for the one who received it last.
    fn make_invisible_again(
        &mut self,
        log: &mut Log,
        id: QueueId,
        receipt: Receipt,
        visible_at: Timestamp,
        now: Timestamp,
    ) -> ReceiptOutcome {
        let Some(queue) = self.get_mut(id) else {
            return ReceiptOutcome::Gone;
        };
        let Some(mut message) = queue.ready.remove(receipt.seq) else {
            return ReceiptOutcome::Busy;
        };
        if message.entry.is_stored() {
            message.body = None;
        }
        self.make_invisible(log, id, message, visible_at, now);
        self.make_due_visible(log, id, now);
        ReceiptOutcome::Done
    }

    /// Undoes receives of which nobody heard: the messages are visible again, and were not
    /// received that time.
    pub(crate) fn undo_receives(&mut self, log: &mut Log, receipts: &[Receipt], now: Timestamp) {
        for receipt in receipts {
            let Some(queue) = self.get_mut(receipt.queue) else {
                continue;
            };
            let count = queue.invisible.get(receipt.seq).map(|h| h.message.entry.delivery_count);
            if count != Some(receipt.receive_count) {
                continue;
            }
            if let Some(mut invisible) = queue.invisible.remove(receipt.seq) {
                invisible.visible_at = now;
                let entry = &mut invisible.message.entry;
                entry.delivery_count = entry.delivery_count.saturating_sub(1);
                if entry.is_durable() && entry.is_stored() {
                    log.store.append_visibility(receipt.queue, &invisible.visibility());
                }
                self.make_visible(log, receipt.queue, invisible);
            }
            self.wake(receipt.queue);
            self.reschedule(receipt.queue);
        }
    }
}
