//! What a producer has under way: which runs of its messages wait for whom, and so how far its
//! credit and its acknowledgement go.

use std::collections::VecDeque;

use quelea_elastic_proto::MessageSeq;

/// A run's number in its producer's ledger.
pub(crate) type EntryNumber = u64;

/// Who holds a run back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// The producer gets no credit for it.
    pub(crate) credit: bool,
    /// It is not acknowledged.
    pub(crate) acknowledgement: bool,
}

impl Holds {
    pub(crate) const NONE: Self = Self { credit: false, acknowledgement: false };
    pub(crate) const BOTH: Self = Self { credit: true, acknowledgement: true };
}

#[derive(Debug)]
struct Entry {
    /// One past its last message.
    next: MessageSeq,
    bytes: u32,
    credit: u32,
    acknowledgement: u32,
}

/// Runs in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    base: EntryNumber,
    /// The first entry that holds credit back, and the first that is not acknowledged.
    credit_at: EntryNumber,
    acknowledged_at: EntryNumber,
    /// Bytes of all entries before `credit_at`, since the beginning.
    released_bytes: u64,
    acknowledged: MessageSeq,
}

impl Ledger {
    /// Nothing is under way, and the first message is this one.
    pub(crate) fn start(&mut self, first: MessageSeq) {
        self.acknowledged = first;
    }

    /// Enters a run that came. It holds itself back until whoever pushed it releases it: see
    /// [`Ledger::hold`] for the others. Returns its number.
    pub(crate) fn push(&mut self, next: MessageSeq, bytes: usize) -> EntryNumber {
        // A run is part of one read: far below 4 GiB.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.entries.push_back(Entry { next, bytes, credit: 1, acknowledgement: 1 });
        self.base + self.entries.len() as u64 - 1
    }

    /// One more holds the run that was pushed last back.
    pub(crate) fn hold(&mut self, holds: Holds) {
        if let Some(entry) = self.entries.back_mut() {
            entry.credit += u32::from(holds.credit);
            entry.acknowledgement += u32::from(holds.acknowledgement);
        }
    }

    /// One that held a run does not any more.
    pub(crate) fn release(&mut self, number: EntryNumber, holds: Holds) {
        let Some(at) = number.checked_sub(self.base) else { return };
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        entry.credit -= u32::from(holds.credit);
        entry.acknowledgement -= u32::from(holds.acknowledgement);
        if number == self.credit_at || number == self.acknowledged_at {
            self.settle();
        }
    }

    fn settle(&mut self) {
        while let Some(entry) = self.entries.get((self.credit_at - self.base) as usize)
            && entry.credit == 0
        {
            self.released_bytes += u64::from(entry.bytes);
            self.credit_at += 1;
        }
        while let Some(entry) = self.entries.get((self.acknowledged_at - self.base) as usize)
            && entry.acknowledgement == 0
        {
            self.acknowledged = entry.next;
            self.acknowledged_at += 1;
        }
        while self.base < self.credit_at.min(self.acknowledged_at) {
            self.entries.pop_front();
            self.base += 1;
        }
    }

    /// Returns how many bytes are no longer under way, since the beginning.
    pub(crate) const fn released_bytes(&self) -> u64 {
        self.released_bytes
    }

    /// Returns the number below which all messages are done.
    pub(crate) const fn acknowledged(&self) -> MessageSeq {
        self.acknowledged
    }

    /// Returns whether nobody waits for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDIT: Holds = Holds { credit: true, acknowledgement: false };
    const ACKNOWLEDGEMENT: Holds = Holds { credit: false, acknowledgement: true };

    fn push(ledger: &mut Ledger, next: u64, bytes: usize, held_by: u32) {
        let number = ledger.push(MessageSeq(next), bytes);
        (0..held_by).for_each(|_| ledger.hold(Holds::BOTH));
        ledger.release(number, Holds::BOTH);
    }

    #[test]
    fn credit_and_acknowledgement_go_forward_in_order() {
        let mut ledger = Ledger::default();
        ledger.start(MessageSeq(10));
        push(&mut ledger, 12, 100, 1);
        push(&mut ledger, 15, 200, 2);
        push(&mut ledger, 16, 50, 0);
        assert_eq!((ledger.released_bytes(), ledger.acknowledged()), (0, MessageSeq(10)));
        ledger.release(1, Holds::BOTH);
        ledger.release(1, Holds::BOTH);
        assert_eq!((ledger.released_bytes(), ledger.acknowledged()), (0, MessageSeq(10)));
        ledger.release(0, CREDIT);
        assert_eq!((ledger.released_bytes(), ledger.acknowledged()), (350, MessageSeq(10)));
        assert!(!ledger.is_empty());
        ledger.release(0, ACKNOWLEDGEMENT);
        assert_eq!((ledger.released_bytes(), ledger.acknowledged()), (350, MessageSeq(16)));
        assert!(ledger.is_empty());
    }

    #[test]
    fn what_nobody_wants_is_done_at_once() {
        let mut ledger = Ledger::default();
        ledger.start(MessageSeq(0));
        push(&mut ledger, 7, 70, 0);
        assert_eq!((ledger.released_bytes(), ledger.acknowledged()), (70, MessageSeq(7)));
        assert!(ledger.is_empty());
    }
}
