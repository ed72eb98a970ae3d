//! The mailboxes that are open here, and how much room each has.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use slotmap::SlotMap;

use crate::config::MailboxOptions;
use crate::error::MailboxError;
use crate::inbox::credit::KERNEL_BYTES;
use crate::inbox::flow_ref::FlowRef;
use crate::inbox::unacknowledged::{UNACKNOWLEDGED_MAX, Unacknowledged};
use crate::key::Mailbox;
use crate::limits::MAILBOXES_MAX;
use crate::mailbox_ref::MailboxRef;

/// A mailbox's room, in bytes of datagrams and [`DELIVERY_BYTES`] for each.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes_max: usize,
    pub(super) by_application: bool,
    /// Delivered and not yet popped.
    pub(super) used: usize,
    /// Taken in, but waiting for what is missing before it.
    pub(super) waiting: usize,
    /// What the senders with credit may still send.
    pub(super) promised: u64,
    /// Flows that were granted less than they could use.
    pub(super) starved: Vec<FlowRef>,
}

/// What a delivery costs beside its bytes, so that many small ones are bounded too.
pub(super) const DELIVERY_BYTES: usize = 128;

impl Room {
    /// Returns whether there is room for a datagram. What others wait for (`awaited`) is let in as
    /// long as the application pops: they would else fill the room and wait for ever.
    #[inline]
    pub(super) const fn admits(&self, bytes: usize, awaited: bool) -> bool {
        let held = self.used + self.waiting;
        held + bytes <= self.bytes_max || held == 0 || awaited && self.used < self.bytes_max
    }

    /// Returns what a flow may send, as the smallest datagrams are charged, until too many of its
    /// deliveries wait for the application to acknowledge them. Those that it has popped take no
    /// room here, but memory in the books.
    pub(super) fn may_wait(&self, unacknowledged: &Unacknowledged) -> u32 {
        if !self.by_application {
            return u32::MAX;
        }
        let more = UNACKNOWLEDGED_MAX.saturating_sub(unacknowledged.len());
        u32::try_from(more * KERNEL_BYTES).unwrap_or(u32::MAX)
    }

    /// Returns what may be granted to a flow that was granted `own` before, above all that others
    /// may send.
    pub(super) fn free_for(&self, own: u32) -> u64 {
        let others = self.promised.saturating_sub(u64::from(own));
        (self.bytes_max as u64)
            .saturating_sub((self.used + self.waiting) as u64)
            .saturating_sub(others)
    }
}

/// All mailboxes of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Mailboxes {
    rooms: SlotMap<MailboxRef, Room>,
    by_number: HashMap<Mailbox, MailboxRef, FxBuildHasher>,
    /// Takes what is for a mailbox that is not opened by itself.
    others: Option<MailboxRef>,
}

impl Mailboxes {
    pub(super) fn open(
        &mut self,
        mailbox: Mailbox,
        options: &MailboxOptions,
    ) -> Result<(), MailboxError> {
        if self.by_number.contains_key(&mailbox) {
            return Err(MailboxError::Open(mailbox));
        }
        let at = self.make(options)?;
        self.by_number.insert(mailbox, at);
        Ok(())
    }

    /// Opens one for all numbers that are not opened by themselves.
    pub(super) fn open_others(&mut self, options: &MailboxOptions) -> Result<(), MailboxError> {
        if self.others.is_some() {
            return Err(MailboxError::OthersOpen);
        }
        self.others = Some(self.make(options)?);
        Ok(())
    }

    fn make(&mut self, options: &MailboxOptions) -> Result<MailboxRef, MailboxError> {
        if self.rooms.len() >= MAILBOXES_MAX {
            return Err(MailboxError::TooMany { limit: MAILBOXES_MAX });
        }
        Ok(self.rooms.insert(Room {
            bytes_max: options.bytes_max,
            by_application: options.acknowledged_by_application,
            used: 0,
            waiting: 0,
            promised: 0,
            starved: Vec::new(),
        }))
    }

    /// Closes one, or with none the one of all others, and says which it was. Tokens of its deliveries
    /// mean nothing from now on.
    pub(super) fn close(&mut self, mailbox: Option<Mailbox>) -> Option<MailboxRef> {
        let at = match mailbox {
            Some(mailbox) => self.by_number.remove(&mailbox)?,
            None => self.others.take()?,
        };
        self.rooms.remove(at).map(|_| at)
    }

    /// Returns the mailbox that takes what is sent to `mailbox`.
    pub(super) fn find(&self, mailbox: Mailbox) -> Option<MailboxRef> {
        self.by_number.get(&mailbox).copied().or(self.others)
    }

    #[inline]
    pub(super) fn room(&mut self, at: MailboxRef) -> Option<&mut Room> {
        self.rooms.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bytes_max: usize) -> MailboxOptions {
        MailboxOptions { bytes_max, ..MailboxOptions::default() }
    }

    #[test]
    fn a_mailbox_is_opened_once_and_others_take_the_rest() {
        let mut mailboxes = Mailboxes::default();
        mailboxes.open(Mailbox(1), &options(1)).unwrap();
        assert_eq!(mailboxes.open(Mailbox(1), &options(1)), Err(MailboxError::Open(Mailbox(1))));
        assert_eq!(mailboxes.find(Mailbox(2)), None);
        mailboxes.open_others(&options(2)).unwrap();
        assert_eq!(mailboxes.open_others(&options(2)), Err(MailboxError::OthersOpen));
        let others = mailboxes.find(Mailbox(2)).unwrap();
        assert_eq!(mailboxes.find(Mailbox(3)), Some(others));
        assert_ne!(mailboxes.find(Mailbox(1)), Some(others));
        assert_eq!(mailboxes.close(None), Some(others));
        assert_eq!(mailboxes.find(Mailbox(2)), None);
        mailboxes.open_others(&options(3)).unwrap();
    }

    #[test]
    fn a_closed_mailbox_is_not_the_one_that_is_opened_after_it() {
        let mut mailboxes = Mailboxes::default();
        mailboxes.open(Mailbox(1), &options(1)).unwrap();
        let first = mailboxes.find(Mailbox(1)).unwrap();
        assert_eq!(mailboxes.close(Some(Mailbox(1))), Some(first));
        mailboxes.open(Mailbox(1), &options(1)).unwrap();
        assert!(mailboxes.room(first).is_none());
    }

    #[test]
    fn what_is_awaited_comes_in_while_the_application_pops() {
        let mut mailboxes = Mailboxes::default();
        mailboxes.open(Mailbox(1), &options(100)).unwrap();
        let at = mailboxes.find(Mailbox(1)).unwrap();
        let room = mailboxes.room(at).unwrap();
        assert!(room.admits(1_000, false), "an empty mailbox takes one of any size");
        room.waiting = 90;
        assert!(room.admits(10, false));
        assert!(!room.admits(11, false));
        assert!(room.admits(11, true));
        room.used = 100;
        assert!(!room.admits(11, true));
    }
}
