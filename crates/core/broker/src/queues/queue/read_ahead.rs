//! Reads for the head of a queue, ahead of its consumers.

/// Reads for the head of a queue: how many are under way, and how much of what the last ones
/// brought is still to be given out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAhead {
    under_way: usize,
    read: usize,
    left: usize,
}

impl ReadAhead {
    pub(crate) const fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// A message was given out.
    pub(crate) const fn given_out(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns whether it is time to read more, so that the disk works while the consumers do.
    pub(crate) const fn is_low(&self) -> bool {
        self.under_way == 0 && self.read > 0 && self.left <= self.read / 2
    }

    pub(crate) const fn begin(&mut self, reads: usize) {
        *self = Self { under_way: reads, read: 0, left: 0 };
    }

    pub(crate) const fn has_read(&mut self, messages: usize) {
        self.under_way -= 1;
        self.read += messages;
        self.left += messages;
    }
}
