//! Where in an index there is nothing to find for a walk from its end towards its head.

use quelea_model::Seq;

use crate::slot::Slot;

/// Numbers in a row of which none is what is looked for. Empty at first.
#[derive(Debug)]
pub(crate) struct ClearedRange {
    first: Seq,
    last: Seq,
    /// Slots looked at by all walks.
    #[cfg(test)]
    looked_at: u64,
}

impl Default for ClearedRange {
    fn default() -> Self {
        Self {
            first: Seq(u64::MAX),
            last: Seq(0),
            #[cfg(test)]
            looked_at: 0,
        }
    }
}

impl ClearedRange {
    /// There is nothing from `first` to `last`.
    pub(crate) const fn set(&mut self, first: Seq, last: Seq) {
        (self.first, self.last) = (first, last);
    }

    pub(crate) const fn first(&self) -> Seq {
        self.first
    }

    #[cfg(test)]
    pub(crate) const fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// A message of this number may be what is looked for from now on.
    pub(crate) const fn admit(&mut self, seq: Seq) {
        if self.first.0 <= seq.0 && seq.0 <= self.last.0 {
            self.first = seq.next();
        }
    }

    /// For tests: what a walk costs.
    pub(crate) const fn count_look(&mut self) {
        #[cfg(test)]
        {
            self.looked_at += 1;
        }
    }

    /// Returns whether all numbers of a slot are among them.
    pub(crate) fn has(&self, slot: &Slot) -> bool {
        self.first <= slot.first_seq() && slot.last_seq() <= self.last
    }
}
