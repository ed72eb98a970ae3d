//! The bounds of the outbox's memory, and what a push does at them.

use super::Outbox;
use crate::classic;
use crate::config::WhenFull;
use crate::destination_id::DestinationId;
use crate::error::PushError;
use crate::limits;
use crate::wire::data::framed_bytes;

/// What one push may take beyond its message: a new train's buffer of the largest class.
const PUSH_BYTES_MAX: usize = 64 << 10;

impl Outbox {
    /// Returns whether a push of `bytes` to the destination stays within all bounds.
    pub(super) fn has_room(&self, slot: u32, bytes: usize) -> bool {
        let waiting = self.destinations.at(slot).busy.as_ref().map_or(0, |busy| busy.waiting_bytes);
        waiting < limits::WAITING_BYTES_MAX
            && self.held_bytes + PUSH_BYTES_MAX + bytes <= self.config.outbox_bytes_max
    }

    /// Returns whether a push of so many bytes to it may succeed, or would say why it never will.
    pub(crate) fn writable(&self, id: DestinationId, message_bytes: usize) -> bool {
        let Some(destination) = self.destinations.get(id) else { return true };
        if destination.closing || destination.is_dead() {
            return true;
        }
        let bytes = if self.element().is_some() {
            classic::framed_bytes(message_bytes)
        } else {
            match self.cut(message_bytes, &self.shape(destination)) {
                Ok(Some(cut)) => cut.bytes_from(0),
                Ok(None) => framed_bytes(message_bytes),
                Err(_) => return true,
            }
        };
        self.has_room(id.slot, bytes)
    }

    /// Makes room as the destination wants it to be done where there is none: returns true if there
    /// is room now, false if the message was dropped.
    pub(super) fn make_room(&mut self, slot: u32, bytes: usize) -> Result<bool, PushError> {
        self.press();
        match self.profiles.get(self.destinations.at(slot).profile).when_full {
            WhenFull::Block | WhenFull::Refuse => Err(PushError::WouldBlock),
            WhenFull::DropNew => {
                self.counters.dropped_messages += 1;
                Ok(false)
            }
            WhenFull::DropOldest => {
                while !self.has_room(slot, bytes) {
                    if !self.drop_oldest(slot) {
                        self.counters.dropped_messages += 1;
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Lets the oldest batches leave before their time, about a train's worth, if all batches together
    /// are too much.
    fn press(&mut self) {
        if self.held_bytes + 2 * PUSH_BYTES_MAX <= self.config.outbox_bytes_max {
            return;
        }
        let mut pressed = 0;
        while pressed < limits::DATAGRAM_BYTES_MAX
            && let Some((_, slot)) = self.deadlines.oldest()
        {
            let train = self.destinations.at(slot).train.as_ref();
            pressed += train.expect("a deadline is that of an open train").capacity();
            self.flush(slot);
        }
    }

    /// Drops the destination's oldest batch, with what belongs to the same message; false if it has
    /// none.
    fn drop_oldest(&mut self, slot: u32) -> bool {
        if !self.has_waiting(slot) {
            self.close_train(slot);
        }
        let Some(dropped) = self.take_waiting(slot) else { return false };
        self.counters.dropped_messages += u64::from(dropped.messages);
        self.recycle(dropped.bytes);
        while self.first_waiting(slot).is_some_and(|train| train.continues && train.messages == 0) {
            self.take_waiting(slot);
        }
        true
    }

    /// Drops all that the destination has not sent yet; returns how many messages.
    pub(super) fn drop_all(&mut self, slot: u32) -> u64 {
        self.close_train(slot);
        let mut messages = 0;
        while let Some(dropped) = self.take_waiting(slot) {
            messages += u64::from(dropped.messages);
            self.recycle(dropped.bytes);
        }
        messages
    }
}
