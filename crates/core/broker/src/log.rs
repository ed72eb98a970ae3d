//! The log as the broker uses it: the store, and what an open transaction in it is worth.

use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::{
    Durability, EntryFlags, Location, NewMessage, QueuedMessage, Store, StoreState,
};

use crate::topology::Item;

/// The store, and how durable what was appended within a transaction has to be.
pub(crate) struct Log {
    pub(crate) store: Box<dyn Store>,
    /// Within a transaction: the strictest durability of what was appended.
    transaction: Option<Durability>,
}

impl Log {
    pub(crate) const fn new(store: Box<dyn Store>) -> Self {
        Self { store, transaction: None }
    }

    /// Writes a part of the topology.
    pub(crate) fn persist(&mut self, item: &Item) {
        self.store.put_topology(&item.key(), &item.value());
        self.note_durability(Durability::Fsync);
    }

    /// Deletes a part of the topology.
    pub(crate) fn unpersist(&mut self, item: &Item) {
        self.store.delete_topology(&item.key());
        self.note_durability(Durability::Fsync);
    }

    /// What was just appended, or will be before the transaction ends, has to be that durable; within a transaction its end promises it.
    pub(crate) fn note_durability(&mut self, durability: Durability) {
        if let Some(strictest) = &mut self.transaction {
            *strictest = (*strictest).max(durability);
        }
    }

    pub(crate) const fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    pub(crate) fn begin_transaction(&mut self) {
        self.transaction = Some(Durability::None);
        self.store.begin_atomic();
    }

    /// Returns how durable the transaction has to be.
    pub(crate) fn end_transaction(&mut self) -> Durability {
        self.store.end_atomic();
        self.transaction.take().unwrap_or(Durability::None)
    }

    /// Returns whether the store has neither failed nor run out of space.
    pub(crate) fn is_healthy(&self) -> bool {
        *self.store.state() == StoreState::Healthy
    }

    /// Returns whether what waits to be written is within its bound and has its place on the disk.
    pub(crate) fn has_room(&self, pending_bytes_max: usize) -> bool {
        self.has_room_for(0, pending_bytes_max)
    }

    /// Returns the same as [`Log::has_room`], with so many bytes more.
    pub(crate) fn has_room_for(&self, bytes: usize, pending_bytes_max: usize) -> bool {
        self.store.pending_bytes() < pending_bytes_max && self.store.has_room(bytes)
    }

    /// Returns whether a message that is here already may be appended to another queue. Memory does not matter: what was
    /// read to be moved would only be read again.
    pub(crate) fn takes_moved(&self, pending_bytes_max: usize) -> bool {
        self.is_healthy() && self.has_room(pending_bytes_max)
    }

    /// Returns whether the store can take messages that need not be in it.
    pub(crate) fn may_spill(&self, pending_bytes_max: usize) -> bool {
        self.takes_moved(pending_bytes_max) && !self.is_in_transaction()
    }

    /// Writes a message that only memory has, to make room: it need not survive a restart. Returns
    /// where it lies.
    pub(crate) fn spill(
        &mut self,
        queue: QueueId,
        (seq, priority): (Seq, u8),
        expires_at: Option<Timestamp>,
        message: &Message,
        now: Timestamp,
    ) -> Location {
        self.store.append_message(NewMessage {
            seq,
            queues: &[queue],
            durable: false,
            enqueued_at: now,
            visible_at: None,
            expiries: expires_at.as_slice(),
            priority,
            message,
        })
    }

    /// A message is invisible for up to twelve hours: if only memory has it, it is written to the log
    /// like any that has to make room, so that invisible bodies do not stop the publishers.
    pub(crate) fn spill_invisible(
        &mut self,
        queue: QueueId,
        message: &mut QueuedMessage,
        now: Timestamp,
    ) {
        let entry = &mut message.entry;
        if entry.is_stored() || !self.is_healthy() || !self.store.has_room(0) {
            return;
        }
        if let Some(body) = message.body.take() {
            let id = (entry.seq, entry.priority);
            entry.location = self.spill(queue, id, message.expires_at, &body, now);
            entry.flags = entry.flags.with(EntryFlags::STORED);
        }
    }

    /// Notes that a message becomes visible in a place that a checkpoint under way may have passed.
    /// Returns whether that had to be noted.
    pub(crate) fn note_requeue(&mut self, queue: QueueId, message: &QueuedMessage) -> bool {
        let entry = &message.entry;
        let is_noted = self.store.checkpoint_under_way() && entry.is_durable() && entry.is_stored();
        if is_noted {
            self.store.append_requeue(queue, entry, message.expires_at);
        }
        is_noted
    }
}
